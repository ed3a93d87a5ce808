// Watches the calls of a server for damaged pages. A damaged index is emptied in place and filled again from the messages; damage
// in the journal fails the calls that meet it and nothing else. The server goes on: a restart would meet the same page.

import { StoreFailure } from '../contract/failure.ts'
import type { Store } from '../contract/store.ts'

/** The capabilities that read the index or events. */
const WATCHED = ['journal', 'events', 'inbox', 'lists', 'follow', 'index', 'processing', 'traffic', 'metrics'] as const

/** A look reads the whole index, and damage in the journal would ask for one with every call. */
const LOOK_EVERY_MS = 10 * 60_000

const REPAIRED = 'the index is damaged; it was emptied and is being filled again from the messages'
const IN_JOURNAL = 'the journal is damaged: ./intray doctor names the rows, ./intray salvage copies all others'

/** `repairIndex` resolves with false if the index is intact, and fails fatally if it can neither be used nor emptied. */
export function watchingForDamage(store: Store, repairIndex: () => Promise<boolean>): Store {
  const listeners: ((finding: string) => void)[] = []
  let lookedAt = Number.NEGATIVE_INFINITY
  const look = async () => {
    const finding = (await repairIndex()) ? REPAIRED : IN_JOURNAL
    for (const listener of listeners) listener(finding)
  }
  const note = (error: unknown): never => {
    const isDamaged = error instanceof StoreFailure && error.kind === 'damaged'
    if (isDamaged && performance.now() - lookedAt >= LOOK_EVERY_MS) {
      lookedAt = performance.now()
      // The store announces a failure to its listeners.
      look().catch(() => {})
    }
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
