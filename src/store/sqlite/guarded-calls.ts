// Calls that run on a connection of this process: callers get promises, and failures as StoreFailure.

import type { DatabaseSync } from 'node:sqlite'
import { readFailure } from './connection.ts'
import type { Calls, Executor } from './operations.ts'

/** Runs a short synchronous read: callers get a promise, and failures as StoreFailure. */
export async function guard<T>(read: () => T): Promise<T> {
  try {
    return read()
  } catch (error) {
    throw readFailure(error)
  }
}

/** The same for a capability whose calls are asynchronous. */
export function guardAll<T extends object>(capability: T): T {
  const calls = Object.entries(capability as Record<string, (...args: readonly unknown[]) => Promise<unknown>>)
  return Object.fromEntries(
    calls.map(([name, call]) => [
      name,
      (...args: readonly unknown[]) =>
        call(...args).catch((error: unknown) => {
          throw readFailure(error)
        }),
    ]),
  ) as T
}

/** Runs operations in this process. */
export function runInProcess<O extends Calls>(db: DatabaseSync, operations: O): Executor<O> {
  return {
    run: async (name, args) => {
      try {
        return (await operations[name]!(...args)) as never
      } catch (error) {
        throw readFailure(error)
      }
    },
    onFatal: () => {},
    close: async () => {
      if (db.isOpen) db.close()
    },
  }
}
