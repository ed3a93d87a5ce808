// What every command beside the server needs: the settings, the store, and the store closed again.

import { loadConfig } from '../config.ts'
import type { Store } from '../store/contract/store.ts'
import { openStore } from '../store/open.ts'

export async function withStore<T>(use: (store: Store) => Promise<T>): Promise<T> {
  const config = loadConfig(process.env)
  const store = await openStore(config.databaseUrl, { role: 'tool' })
  try {
    return await use(store)
  } finally {
    await store.close()
  }
}
