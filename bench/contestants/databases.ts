// Databases of the contestants: a new one for each, of the measured kind.
// Promises: PostgreSQL runs with its default settings and syncs on; it ends with the bench.

import { chmodSync, mkdirSync, mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { createDatabase } from '../../test/support/postgres/databases.ts'
import { createCluster, type PostgresServer, startPostgres } from '../../test/support/postgres/server.ts'
import type { Scope } from '../scope.ts'
import { UsageError } from '../usage-error.ts'

export const STORES = ['sqlite', 'postgres'] as const
export type StoreName = (typeof STORES)[number]

/** Parses --store. */
export function storeNamed(name = 'sqlite'): StoreName {
  const store = STORES.find((known) => known === name)
  if (!store) throw new UsageError(`--store knows ${STORES.join(', ')}, not "${name}".`)
  return store
}

export interface Databases {
  readonly store: StoreName
  /** The process of the database server, if there is one: its CPU time counts for the contestants. */
  readonly pid: number | null
  newUrl(): Promise<string>
  close(): Promise<void>
}

/** PostgreSQL's defaults where the tests' server differs from them. */
const DEFAULT_SETTINGS = {
  fsync: 'on',
  synchronous_commit: 'on',
  shared_buffers: '128MB',
  max_connections: '100',
  autovacuum_naptime: '1min',
}

export async function startDatabases(store: StoreName, scope: Scope): Promise<Databases> {
  if (store === 'sqlite') {
    const newUrl = async () => `sqlite:${join(mkdtempSync(join(scope.folder, 'sqlite-')), 'events.db')}`
    return { store, pid: null, newUrl, close: async () => {} }
  }
  // As root, the server runs as another user, which needs access to its folder.
  chmodSync(scope.folder, 0o711)
  const folder = join(scope.folder, 'postgres')
  mkdirSync(folder)
  const server: PostgresServer = await startPostgres(await createCluster(folder), DEFAULT_SETTINGS)
  return {
    store,
    pid: server.pid,
    newUrl: () => createDatabase(server.url('postgres')),
    close: () => server.kill(),
  }
}
