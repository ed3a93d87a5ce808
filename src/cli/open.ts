// Opens the store for a command and closes it afterwards.

import { type Config, loadConfig } from '../config.ts'
import type { Store } from '../store/contract/store.ts'
import { openStore } from '../store/open.ts'

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
