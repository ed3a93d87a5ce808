// New databases for a proof. PostgreSQL comes from npm and runs as a user would have it: syncs on, defaults otherwise.

import { chmodSync, mkdirSync, mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { createDatabase } from '../test/support/postgres/databases.ts'
import { createCluster, startPostgres } from '../test/support/postgres/server.ts'
import type { StoreName } from './proof.ts'

const AS_USERS_HAVE_IT = { fsync: 'on', synchronous_commit: 'on', shared_buffers: '128MB', max_connections: '100' }

export interface Databases {
  newUrl(): Promise<string>
  close(): Promise<void>
}

/** `serverUrl`: a PostgreSQL that runs already is used, and left alone. */
export async function openDatabases(store: StoreName, folder: string, serverUrl?: string): Promise<Databases> {
  if (store === 'sqlite') {
    const newUrl = async () => `sqlite:${join(mkdtempSync(join(folder, 'sqlite-')), 'intray.db')}`
    return { newUrl, close: async () => {} }
  }
  if (serverUrl !== undefined) return { newUrl: () => createDatabase(serverUrl), close: async () => {} }
  // As root the server runs as another user, who has to get to its folder.
  chmodSync(folder, 0o711)
  const home = join(folder, 'postgres')
  mkdirSync(home)
  const server = await startPostgres(await createCluster(home), AS_USERS_HAVE_IT)
  return { newUrl: () => createDatabase(server.url('postgres')), close: () => server.kill() }
}
