// Choices that can be played again: the same numbers for the same seed.

export interface Random {
  /** A whole number from 0 to below − 1. */
  below(limit: number): number
  pick<T>(from: readonly T[]): T
  /** True that many times in a hundred. */
  percent(share: number): boolean
  /** An independent source for a part of the run, whatever the other parts draw. */
  fork(name: string): Random
}

export function seededRandom(seed: number): Random {
  let state = seed >>> 0
  const below = (limit: number): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) % limit
  }
  return {
    below,
    pick: (from) => from[below(from.length)]!,
    percent: (share) => below(100) < share,
    fork: (name) => {
      let mixed = seed >>> 0
      for (const letter of name) mixed = (Math.imul(mixed, 31) + letter.codePointAt(0)!) >>> 0
      return seededRandom(mixed)
    },
  }
}
