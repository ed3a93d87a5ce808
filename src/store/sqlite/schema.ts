// Migrates the file to the schema of this code, and gives a new database its identity.

import { randomBytes } from 'node:crypto'
import type { DatabaseSync } from 'node:sqlite'
import { newUuid } from '../../runtime/id.ts'
import { StoreRefused } from '../contract/failure.ts'
import { type AppliedMigration, type Migration, pendingMigrations, readMigrations } from '../migrations.ts'
import { inTransaction } from './connection.ts'

const MIGRATIONS = readMigrations(new URL('./migrations/', import.meta.url))

const CREATE_LEDGER = `CREATE TABLE IF NOT EXISTS schema_migrations (
  version INTEGER PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL, applied_at INTEGER NOT NULL) STRICT`
const SELECT_APPLIED = 'SELECT version, name, checksum FROM schema_migrations ORDER BY version'
const INSERT_APPLIED = 'INSERT INTO schema_migrations (version, name, checksum, applied_at) VALUES (?, ?, ?, ?)'
const INSERT_META = 'INSERT OR IGNORE INTO meta (key, value) VALUES (?, ?)'

/** Refuses a database that is ahead of this code, or belongs to another program. */
export function needsMigration(db: DatabaseSync, known: readonly Migration[] = MIGRATIONS): boolean {
  const names = db
    .prepare('SELECT name FROM sqlite_master')
    .all()
    .map((row) => row.name)
  if (names.includes('schema_migrations')) {
    return pendingMigrations(known, appliedMigrations(db)).length > 0
  }
  if (names.length === 0) return true
  throw new StoreRefused(
    `The database ${db.location()} belongs to another program. Set INTRAY_DATABASE_URL to a file of its own.`,
  )
}

/** Returns the schema version. Holds the write lock throughout: two processes cannot both migrate. */
export function migrate(db: DatabaseSync, known: readonly Migration[] = MIGRATIONS): number {
  if (!needsMigration(db, known)) return known.length
  return inTransaction(db, () => {
    db.exec(CREATE_LEDGER)
    for (const migration of pendingMigrations(known, appliedMigrations(db))) {
      db.exec(migration.sql)
      db.prepare(INSERT_APPLIED).run(migration.version, migration.name, migration.checksum, Date.now())
    }
    const meta = db.prepare(INSERT_META)
    meta.run('database_uuid', Buffer.from(newUuid()))
    meta.run('dedupe_key', randomBytes(32))
    return known.length
  })
}

export function readMeta(db: DatabaseSync, key: 'database_uuid' | 'dedupe_key'): Uint8Array {
  const row = db.prepare('SELECT value FROM meta WHERE key = ?').get(key)
  if (!row) throw new Error(`meta ${key} is missing`)
  return row.value as Uint8Array
}

function appliedMigrations(db: DatabaseSync): AppliedMigration[] {
  return db.prepare(SELECT_APPLIED).all() as unknown as AppliedMigration[]
}
