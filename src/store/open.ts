// Opens a store by its URL. A driver is loaded only if it is used.

import { closeSync, openSync, readSync } from 'node:fs'
import { resolve } from 'node:path'
import type { BackupFile, BackupSource, Restore } from './contract/backup.ts'
import type { SalvageTarget } from './contract/copy.ts'
import type { MoveSide } from './contract/tenant-move.ts'
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

export async function openCopySide(url: string, { mustExist }: CopyOptions): Promise<MoveSide> {
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

/** The file in which a salvage of this database belongs: beside it, or in the folder of the command. */
export function salvageFile(url: string): string {
  return url.startsWith('sqlite:') ? sqlitePath(url).replace(/(\.db)?$/, '.salvaged.db') : 'salvaged.db'
}

/** The URL of the database in a file. */
export function urlOfFile(file: string): string {
  return /^\w+:/.test(file) ? file : `sqlite:${file}`
}

/** A new database on SQLite, whatever the damaged one is. Refuses a file that exists. */
export async function openSalvageTarget(url: string): Promise<SalvageTarget> {
  if (!url.startsWith('sqlite:')) throw new StoreRefused('Give a file: a salvage makes a SQLite database.')
  const { openSqliteSalvage } = await import('./sqlite/admin/salvage.ts')
  return openSqliteSalvage(sqlitePath(url))
}

export async function openBackupSource(url: string): Promise<BackupSource> {
  if (url.startsWith('sqlite:')) {
    const { openSqliteBackup } = await import('./sqlite/admin/backup.ts')
    return openSqliteBackup(sqlitePath(url))
  }
  if (POSTGRES.test(url)) {
    const { openPostgresBackup } = await import('./postgres/admin/backup.ts')
    return openPostgresBackup(url)
  }
  throw unknownUrl('INTRAY_DATABASE_URL')
}

/** Of either kind, told by its first bytes. */
export async function openBackupFile(file: string): Promise<BackupFile> {
  if (kindOf(file) === 'sqlite') {
    const { openSqliteBackupFile } = await import('./sqlite/admin/backup.ts')
    return openSqliteBackupFile(file)
  }
  const { openPostgresBackupFile } = await import('./postgres/admin/backup.ts')
  return openPostgresBackupFile(file)
}

/** Refuses a target that exists, and one of another kind than the backup. */
export async function openRestore(file: string, url: string): Promise<Restore> {
  const kind = kindOf(file)
  if (url.startsWith('sqlite:') && kind === 'sqlite') {
    const { openSqliteRestore } = await import('./sqlite/admin/restore.ts')
    return openSqliteRestore(sqlitePath(url), file)
  }
  if (POSTGRES.test(url) && kind === 'postgres') {
    const { openPostgresRestore } = await import('./postgres/admin/restore.ts')
    return openPostgresRestore(url, file)
  }
  if (!url.startsWith('sqlite:') && !POSTGRES.test(url)) throw unknownUrl('--to')
  throw new StoreRefused(
    'The backup is of the other kind of database. Restore it to its own kind, then run: ./intray copy --from URL --to URL',
  )
}

const FIRST_BYTES = { sqlite: 'SQLite format 3\0', postgres: 'PGDMP' } as const

function kindOf(path: string): keyof typeof FIRST_BYTES {
  const first = firstBytes(path, 16)
  if (first.startsWith(FIRST_BYTES.sqlite)) return 'sqlite'
  if (first.startsWith(FIRST_BYTES.postgres)) return 'postgres'
  throw new StoreRefused(`${path} is not a backup of Intray: its first bytes are of no database.`)
}

function firstBytes(path: string, count: number): string {
  try {
    const file = openSync(path, 'r')
    try {
      const bytes = Buffer.alloc(count)
      return bytes.toString('latin1', 0, readSync(file, bytes))
    } finally {
      closeSync(file)
    }
  } catch (error) {
    throw new StoreRefused(`${path} cannot be read: ${(error as Error).message}.`)
  }
}

function unknownUrl(what: string): StoreRefused {
  return new StoreRefused(`${what} must look like sqlite:./data/intray.db or postgres://user:password@host/database.`)
}

/** The URL without password and parameters, and with an absolute path: safe to show, and right in every folder. */
export function publicUrl(url: string): string {
  if (url.startsWith('sqlite:')) return `sqlite:${sqlitePath(url)}`
  const [, scheme = '', user = '', place = ''] = /^([^:]+:\/\/)(?:([^:/?#]*)[^/?#]*@)?([^?#]*)/.exec(url) ?? []
  return `${scheme}${user === '' ? '' : `${user}@`}${place}`
}

/** The file of a database that is a file; null for one on a database server. */
export function databaseFile(url: string): string | null {
  return url.startsWith('sqlite:') ? sqlitePath(url) : null
}

/** The key file of sealed secrets, beside a database that is a file; null for one on a database server. */
export function secretsKeyFile(url: string): string | null {
  return databaseFile(url)?.replace(/(\.db)?$/, '.secrets.key') ?? null
}

/** sqlite:./relative, sqlite:/absolute and sqlite:///absolute. */
function sqlitePath(url: string): string {
  const path = url.slice('sqlite:'.length).replace(/^\/\/(?=\/)/, '')
  if (path === '' || path === ':memory:') {
    throw new StoreRefused('INTRAY_DATABASE_URL must name a file, for example sqlite:./data/intray.db.')
  }
  return resolve(path)
}
