// Randomness that can be repeated: every random test prints its seed, and TEST_SEED=<seed> runs it again.

import { randomInt } from 'node:crypto'
import type { TestContext } from 'node:test'

/** Draws a seed and tells it, so that a failure can be run again. */
export function drawSeed(t: TestContext): number {
  const seed = Number(process.env.TEST_SEED ?? randomInt(2 ** 31))
  t.diagnostic(`seed ${seed} (repeat with TEST_SEED=${seed})`)
  return seed
}

export interface Random {
  /** A whole number from 0 to below the bound. */
  below(bound: number): number
  pick<T>(choices: readonly T[]): T
}

/** mulberry32: small, and the same on every machine. */
export function random(seed: number): Random {
  let state = seed >>> 0
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = state
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const below = (bound: number): number => Math.floor(next() * bound)
  return { below, pick: (choices) => choices[below(choices.length)]! }
}
