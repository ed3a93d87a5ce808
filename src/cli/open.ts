// Opens the store, or a side of a copy, for a command and closes it afterwards. A command does not make a database: in the wrong folder
// it would find nothing in an empty one.

import { type Config, loadConfig } from '../config.ts'
import type { MoveSide } from '../store/contract/tenant-move.ts'
import type { Store } from '../store/contract/store.ts'
import { openCopySide, openStore } from '../store/open.ts'
import { nameDatabase } from './used-database.ts'

export async function withStore<T>(
  use: (store: Store) => Promise<T> | T,
  config: Pick<Config, 'databaseUrl'> = loadConfig(process.env),
): Promise<T> {
  return closeAfter(config.databaseUrl, await openStore(config.databaseUrl, { role: 'tool', mustExist: true }), use)
}

/** `mustExist` is false for the target of a copy, which its user names. */
export async function withSide<T>(url: string, mustExist: boolean, use: (side: MoveSide) => Promise<T>): Promise<T> {
  return closeAfter(url, await openCopySide(url, { mustExist }), use)
}

async function closeAfter<S extends { close(): Promise<void> }, T>(
  url: string,
  opened: S,
  use: (opened: S) => Promise<T> | T,
): Promise<T> {
  try {
    nameDatabase(url)
    return await use(opened)
  } finally {
    await opened.close()
  }
}
