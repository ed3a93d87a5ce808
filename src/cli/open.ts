// Opens the store, or a side of a copy, for a command and closes it afterwards.

import { type Config, loadConfig } from '../config.ts'
import type { CopySide } from '../store/contract/copy.ts'
import type { Store } from '../store/contract/store.ts'
import { openCopySide, openStore } from '../store/open.ts'

export async function withStore<T>(
  use: (store: Store) => Promise<T> | T,
  config: Pick<Config, 'databaseUrl'> = loadConfig(process.env),
): Promise<T> {
  const store = await openStore(config.databaseUrl, { role: 'tool' })
  try {
    return await use(store)
  } finally {
    await store.close()
  }
}

export async function withSide<T>(url: string, mustExist: boolean, use: (side: CopySide) => Promise<T>): Promise<T> {
  const side = await openCopySide(url, { mustExist })
  try {
    return await use(side)
  } finally {
    await side.close()
  }
}
