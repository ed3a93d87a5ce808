// URL → store. A driver is loaded only when it is used.

import { resolve } from 'node:path'
import { StoreRefused } from './contract/failure.ts'
import type { Store, StoreOptions } from './contract/store.ts'

export async function openStore(url: string, options: StoreOptions): Promise<Store> {
  if (url.startsWith('sqlite:')) {
    const { openSqliteStore } = await import('./sqlite/store.ts')
    return openSqliteStore(sqlitePath(url), options)
  }
  if (/^postgres(ql)?:/i.test(url)) {
    const { openPostgresStore } = await import('./postgres/store.ts')
    return openPostgresStore(url, options)
  }
  throw new StoreRefused(
    'INTRAY_DATABASE_URL must look like sqlite:./data/intray.db or postgres://user:password@host/database.',
  )
}

/** sqlite:./relative, sqlite:/absolute and sqlite:///absolute. */
function sqlitePath(url: string): string {
  const path = url.slice('sqlite:'.length).replace(/^\/\/(?=\/)/, '')
  if (path === '' || path === ':memory:') {
    throw new StoreRefused('INTRAY_DATABASE_URL must name a file, for example sqlite:./data/intray.db.')
  }
  return resolve(path)
}
