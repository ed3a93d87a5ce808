// Watches the reads of a server for damaged pages. Damage in the index ends the server, since its next start rebuilds the index;
// damage in the journal fails the reads that meet it and nothing else.

import { StoreFailure } from '../contract/failure.ts'
import type { Store } from '../contract/store.ts'

/** The capabilities that read the index or events. */
const WATCHED = ['events', 'inbox', 'lists', 'follow', 'processing', 'traffic', 'metrics'] as const

/** `checkIndex` reads the whole index and fails fatally if it is damaged. It is called once, at the first damaged page. */
export function watchingForDamage(store: Store, checkIndex: () => Promise<void>): Store {
  let checked = false
  const note = (error: unknown): never => {
    if (!checked && error instanceof StoreFailure && error.kind === 'damaged') {
      checked = true
      // The store announces the failure to its listeners.
      checkIndex().catch(() => {})
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
  return { ...store, ...Object.fromEntries(watched) } as Store
}
