// Opens a store by its URL. A driver is loaded only if it is used.

import { resolve } from 'node:path'
import type { CopySide } from './contract/copy.ts'
import { StoreRefused } from './contract/failure.ts'
import type { Store, StoreOptions } from './contract/store.ts'

const POSTGRES = /^postgres(ql)?:/i

export async function openStore(url: string, options: StoreOptions): Promise<Store> {
  if (url.startsWith('sqlite:')) {
    const { openSqliteStore } = await import('./sqlite/store.ts')
    return openSqliteStore(sqlitePath(url), options)
  }
  if (POSTGRES.test(url)) {
    const { openPostgresStore } = await import('./postgres/store.ts')
    return openPostgresStore(url, options)
  }
  throw unknownUrl('INTRAY_DATABASE_URL')
}

export interface CopyOptions {
  /** For the source of a copy: a missing database is not created. */
  readonly mustExist: boolean
}

export async function openCopySide(url: string, { mustExist }: CopyOptions): Promise<CopySide> {
  if (url.startsWith('sqlite:')) {
    const { openSqliteCopy } = await import('./sqlite/admin/copy.ts')
    return openSqliteCopy(sqlitePath(url), mustExist)
  }
  if (POSTGRES.test(url)) {
    const { openPostgresCopy } = await import('./postgres/store.ts')
    return openPostgresCopy(url, mustExist)
  }
  throw unknownUrl('A database')
}

function unknownUrl(what: string): StoreRefused {
  return new StoreRefused(`${what} must look like sqlite:./data/intray.db or postgres://user:password@host/database.`)
}

/** sqlite:./relative, sqlite:/absolute and sqlite:///absolute. */
function sqlitePath(url: string): string {
  const path = url.slice('sqlite:'.length).replace(/^\/\/(?=\/)/, '')
  if (path === '' || path === ':memory:') {
    throw new StoreRefused('INTRAY_DATABASE_URL must name a file, for example sqlite:./data/intray.db.')
  }
  return resolve(path)
}
