// Watches the calls of a server for damaged pages. A damaged index is emptied in place and filled again from the messages; damage
// in the journal fails the calls that meet it and nothing else. The server goes on: a restart would meet the same page.

import { StoreFailure } from '../contract/failure.ts'
import type { Store } from '../contract/store.ts'

/** The capabilities that read the index or events. */
const WATCHED = [
  'journal',
  'events',
  'inbox',
  'lists',
  'follow',
  'index',
  'processing',
  'traffic',
  'metrics',
  'retention',
] as const

/** A look reads the whole index, and damage in the journal would ask for one with every call. */
const LOOK_EVERY_MS = 10 * 60_000
/** On a disk that damages the index again and again, a rebuild would follow the other. */
const LONGEST_PAUSE_MS = 24 * 60 * 60_000

const REPAIRED = 'the index is damaged; it was emptied and is being filled again from the messages'
const IN_JOURNAL = 'the journal is damaged: ./intray doctor names the rows, ./intray salvage copies all others'

/** When the next look may begin. Each repair soon after another one doubles the pause. */
export class LookPauses {
  #lookedAt = Number.NEGATIVE_INFINITY
  #pauseMs = LOOK_EVERY_MS
  #isAgain = false

  /** True if a look may begin now; it then has begun. */
  begin(now: number): boolean {
    const sinceMs = now - this.#lookedAt
    if (sinceMs < this.#pauseMs) return false
    this.#isAgain = sinceMs < 2 * this.#pauseMs
    this.#lookedAt = now
    return true
  }

  ended(isRepaired: boolean): void {
    const isRepeated = isRepaired && this.#isAgain
    this.#pauseMs = isRepeated ? Math.min(2 * this.#pauseMs, LONGEST_PAUSE_MS) : LOOK_EVERY_MS
  }
}

/** `repairIndex` resolves with false if the index is intact, and fails fatally if it can neither be used nor emptied. */
export function watchingForDamage(store: Store, repairIndex: () => Promise<boolean>): Store {
  const listeners: ((finding: string) => void)[] = []
  const pauses = new LookPauses()
  const look = async () => {
    const isRepaired = await repairIndex()
    pauses.ended(isRepaired)
    for (const listener of listeners) listener(isRepaired ? REPAIRED : IN_JOURNAL)
  }
  const note = (error: unknown): never => {
    const isDamaged = error instanceof StoreFailure && error.kind === 'damaged'
    // The store announces a failure to its listeners.
    if (isDamaged && pauses.begin(performance.now())) look().catch(() => {})
    throw error
  }
  const watched = WATCHED.map((name) => {
    const calls = Object.entries(store[name] as unknown as Record<string, (...args: unknown[]) => Promise<unknown>>)
    return [
      name,
      Object.fromEntries(calls.map(([call, run]) => [call, (...args: unknown[]) => run(...args).catch(note)])),
    ]
  })
  return { ...store, ...Object.fromEntries(watched), onDamage: (listener) => listeners.push(listener) } as Store
}
