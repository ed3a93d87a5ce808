// Migrates the database to the schema of this code, and gives a new one its identity. Several nodes may start at once:
// one migrates under a lock, the others wait and find nothing left to do.

import { randomBytes } from 'node:crypto'
import { newUuid } from '../../runtime/id.ts'
import { StoreRefused } from '../contract/failure.ts'
import type { StoreOptions } from '../contract/store.ts'
import { type AppliedMigration, type Migration, pendingMigrations, readMigrations } from '../migrations.ts'
import { readLiveNodes } from './admin/nodes.ts'
import { refuseUnfinished } from './admin/restore-mark.ts'
import { byteas, texts } from './connection/binary-array.ts'
import type { Connection } from './connection/connection.ts'
import { LOCKS } from './connection/locks.ts'

/** A migration of a large database, or the wait for another node's, may take long. */
const NO_TIMEOUT_MS = 2 ** 31 - 1

const MIGRATIONS = readMigrations(new URL('./migrations/', import.meta.url))

const SELECT_TABLES = `SELECT relname AS name FROM pg_class
  WHERE relnamespace = to_regnamespace('intray') AND relkind IN ('r', 'p')`
const SELECT_APPLIED = 'SELECT version, name, checksum FROM intray.schema_migrations ORDER BY version'
const CREATE_LEDGER = `CREATE SCHEMA IF NOT EXISTS intray;
CREATE TABLE IF NOT EXISTS intray.schema_migrations (
  version integer PRIMARY KEY, name text NOT NULL, checksum text NOT NULL, applied_at bigint NOT NULL)`
const INSERT_APPLIED =
  'INSERT INTO intray.schema_migrations (version, name, checksum, applied_at) VALUES ($1, $2, $3, $4)'
const INSERT_META = `INSERT INTO intray.meta (key, value) SELECT * FROM unnest($1::text[], $2::bytea[])
  ON CONFLICT DO NOTHING`
const SELECT_META = 'SELECT key, value FROM intray.meta'

export interface Identity {
  readonly databaseUuid: string
  readonly dedupeKey: Uint8Array
}

interface SchemaState {
  readonly isNew: boolean
  readonly pending: readonly Migration[]
}

export interface SchemaOptions {
  readonly known?: readonly Migration[]
  /** The restore that opens the database. */
  readonly restore?: string | null
}

/** Refuses a database that is ahead of this code, belongs to another program, or was not restored to the end. */
export async function readSchema(
  connection: Connection,
  { known = MIGRATIONS, restore = null }: SchemaOptions = {},
): Promise<SchemaState> {
  await refuseUnfinished(connection, restore)
  const tables = (await connection.query<{ name: string }>(SELECT_TABLES)).map(({ name }) => name)
  if (tables.length === 0) return { isNew: true, pending: known }
  if (!tables.includes('schema_migrations')) {
    throw new StoreRefused(
      'The schema "intray" of the database belongs to another program. Set INTRAY_DATABASE_URL to a database of its own.',
    )
  }
  const pending = pendingMigrations(known, await connection.query<AppliedMigration>(SELECT_APPLIED))
  return { isNew: false, pending }
}

/**
 * Migrates if needed and returns the schema version. A starting server migrates; a command leaves it to the servers
 * while any is running.
 */
export async function prepareSchema(
  connection: Connection,
  role: StoreOptions['role'],
  options: SchemaOptions = {},
): Promise<number> {
  const { known = MIGRATIONS } = options
  const { isNew, pending } = await readSchema(connection, options)
  if (pending.length === 0) return known.length
  if (role === 'tool' && !isNew && (await readLiveNodes(connection)).length > 0) {
    throw new StoreRefused(
      'This version of Intray needs to change the schema, but servers are running on the database. Update a server first.',
    )
  }
  await migrate(connection, options)
  return known.length
}

/** Applies all pending migrations in one transaction. */
async function migrate(connection: Connection, options: SchemaOptions): Promise<void> {
  await connection.transaction(async () => {
    await connection.script('SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0')
    await connection.script(`SELECT pg_advisory_xact_lock(${LOCKS.migrations.join(', ')})`, NO_TIMEOUT_MS)
    const { pending } = await readSchema(connection, options)
    if (pending.length === 0) return
    await connection.script(CREATE_LEDGER)
    for (const { version, name, checksum, sql } of pending) {
      await connection.script(sql, NO_TIMEOUT_MS)
      await connection.query(INSERT_APPLIED, [version, name, checksum, Date.now()])
    }
    const meta = { database_uuid: Buffer.from(newUuid()), dedupe_key: randomBytes(32), fence: Buffer.alloc(1) }
    await connection.query(INSERT_META, [texts(Object.keys(meta)), byteas(Object.values(meta))])
  })
}

export async function readIdentity(connection: Connection): Promise<Identity> {
  const rows = await connection.query<{ key: string; value: Buffer }>(SELECT_META)
  const value = (key: string): Buffer => {
    const row = rows.find((one) => one.key === key)
    if (!row) throw new StoreRefused(`The database has lost its ${key}. Restore it from a backup.`)
    return row.value
  }
  return { databaseUuid: value('database_uuid').toString(), dedupeKey: value('dedupe_key') }
}
