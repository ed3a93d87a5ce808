// Opens the store, or a side of a copy, for a command and closes it afterwards. Only commands that prepare a first start
// create a database: in the wrong folder, any other would find nothing in an empty one.

import { type Config, loadConfig } from '../config.ts'
import type { CopySide } from '../store/contract/copy.ts'
import { DatabaseMissing } from '../store/contract/failure.ts'
import type { Store } from '../store/contract/store.ts'
import { openCopySide, openStore } from '../store/open.ts'
import { note } from './output.ts'

export async function withStore<T>(
  use: (store: Store) => Promise<T> | T,
  config: Pick<Config, 'databaseUrl'> = loadConfig(process.env),
): Promise<T> {
  return closeAfter(await openStore(config.databaseUrl, { role: 'tool', mustExist: true }), use)
}

/** Creates the database if there is none, and says so. */
export async function withNewStore<T>(use: (store: Store) => Promise<T> | T): Promise<T> {
  const { databaseUrl } = loadConfig(process.env)
  let store: Store
  try {
    store = await openStore(databaseUrl, { role: 'tool', mustExist: true })
  } catch (error) {
    if (!(error instanceof DatabaseMissing)) throw error
    store = await openStore(databaseUrl, { role: 'tool' })
    note(`The database is new: ${store.facts.path ?? store.facts.database}`)
  }
  return closeAfter(store, use)
}

export async function withSide<T>(url: string, mustExist: boolean, use: (side: CopySide) => Promise<T>): Promise<T> {
  return closeAfter(await openCopySide(url, { mustExist }), use)
}

async function closeAfter<S extends { close(): Promise<void> }, T>(
  opened: S,
  use: (opened: S) => Promise<T> | T,
): Promise<T> {
  try {
    return await use(opened)
  } finally {
    await opened.close()
  }
}
