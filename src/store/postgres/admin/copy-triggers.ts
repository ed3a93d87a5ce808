// What a copy changes in its source: triggers that note changed rows while it runs, and triggers that freeze the database for all
// nodes at once. Without a copy there are none of them. Creating a trigger waits for every write in progress.

import { newUuid } from '../../../runtime/id.ts'
import type { CopyTable, NotedChange, Noting } from '../../contract/copy.ts'
import { StoreRefused } from '../../contract/failure.ts'
import { FROZEN, isStale, notedKey } from '../../copy-state.ts'
import { COPY_TABLES } from '../../copy-tables.ts'
import { bigints } from '../connection/binary-array.ts'
import type { Connection } from '../connection/connection.ts'
import { FROZEN_STATE, isRetryable, sqlState, storeFailure } from '../connection/failure.ts'

/** A transaction that waits for a lock holds up all behind it: not for long. */
export const LOCK_WAIT_MS = 5000
const LOCK_NOT_AVAILABLE = '55P03'
const CHANGES = ['INSERT', 'UPDATE', 'DELETE'] as const

/** Keys of `meta`: the mark of the notes, and when their copy was last seen. */
const MARK = 'copy_noting'
const SEEN = 'copy_seen'
const SET_META = `INSERT INTO intray.meta (key, value) VALUES ($1, $2)
  ON CONFLICT (key) DO UPDATE SET value = excluded.value`
const SELECT_META = `SELECT key, convert_from(value, 'UTF8') AS value FROM intray.meta WHERE key IN ('${MARK}', '${SEEN}')`
const FORGET_META = `DELETE FROM intray.meta WHERE key IN ('${MARK}', '${SEEN}')`
/** A log: a row that changes again while the copy reads it must be noted again. */
const CREATE_NOTES = `CREATE TABLE intray.copy_changes (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text NOT NULL, key jsonb NOT NULL, rows integer NOT NULL)`
const SELECT_NOTES = 'SELECT id, name, key::text AS key, rows FROM intray.copy_changes ORDER BY id LIMIT $1'
const CREATE_REFUSAL = `CREATE OR REPLACE FUNCTION intray.refuse_frozen() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '${FROZEN}' USING ERRCODE = '${FROZEN_STATE}';
END $$`
const IS_FROZEN = `SELECT EXISTS (SELECT FROM pg_trigger WHERE tgname = 'frozen'
  AND tgrelid = 'intray.events'::regclass) AS frozen`

/** Runs its work in a transaction of its own. */
export type InTransaction = <T>(work: (connection: Connection) => Promise<T>) => Promise<T>

/** A table at a time: with several locks in one transaction it would deadlock with claims. */
export async function startNoting(transaction: InTransaction): Promise<string> {
  await stopNoting(transaction)
  const mark = newUuid()
  await transaction(async (connection) => {
    await connection.script(CREATE_NOTES)
    await connection.query(SET_META, [MARK, Buffer.from(mark)])
    await keepNoting(connection)
  })
  for (const table of COPY_TABLES) {
    await lockBriefly(
      transaction,
      'so a copy of it could not begin',
      `${functionOf(table)}; ${triggersOf(table).join('; ')}`,
    )
  }
  return mark
}

function functionOf({ name, key, columns }: CopyTable): string {
  const cells = key.map((column) => (columns[column] === 'bytes' ? `encode(${column}, 'hex')` : column))
  return `CREATE OR REPLACE FUNCTION intray.note_${name}() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    INSERT INTO intray.copy_changes (name, key, rows)
    SELECT '${name}', jsonb_build_array(${cells.join(', ')}), CASE TG_OP WHEN 'INSERT' THEN 1 WHEN 'DELETE' THEN -1 ELSE 0 END
    FROM changed;
    RETURN NULL;
  END $$`
}

function triggersOf({ name, follows }: CopyTable): string[] {
  return CHANGES.filter((change) => change !== 'INSERT' || !follows).map(
    (change) => `CREATE OR REPLACE TRIGGER noted_${change.toLowerCase()} AFTER ${change} ON intray.${name}
    REFERENCING ${change === 'DELETE' ? 'OLD' : 'NEW'} TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION intray.note_${name}()`,
  )
}

/** The mark goes last: while it is there, something may be left. */
export async function stopNoting(transaction: InTransaction): Promise<void> {
  if (!(await transaction(hasNotes))) return
  for (const { name } of COPY_TABLES) {
    const triggers = CHANGES.map((change) => `DROP TRIGGER IF EXISTS noted_${change.toLowerCase()} ON intray.${name}`)
    const statements = [...triggers, `DROP FUNCTION IF EXISTS intray.note_${name}`]
    await lockBriefly(transaction, 'so changes are still noted for a copy', statements.join('; '))
  }
  await transaction(async (connection) => {
    await connection.script(`DROP TABLE IF EXISTS intray.copy_changes; ${FORGET_META}`)
  })
}

async function hasNotes(connection: Connection): Promise<boolean> {
  const [row] = await connection.query<{ found: boolean }>(
    `SELECT to_regclass('intray.copy_changes') IS NOT NULL AS found`,
  )
  return row!.found || (await readNoting(connection)) !== null
}

export async function readNoting(connection: Connection): Promise<Noting | null> {
  const rows = await connection.query<{ key: string; value: string }>(SELECT_META)
  const value = (key: string) => rows.find((row) => row.key === key)?.value
  const mark = value(MARK)
  return mark === undefined ? null : { mark, seenAt: Number(value(SEEN) ?? 0) }
}

export async function keepNoting(connection: Connection): Promise<void> {
  await connection.query(SET_META, [SEEN, Buffer.from(String(Date.now()))])
}

/** Ends what a copy that was cut off has left. A table in use must not keep a server from starting: the next start tries again. */
export async function dropStaleNoting(connection: Connection): Promise<void> {
  const noting = await readNoting(connection)
  if (!noting || !isStale(noting, Date.now())) return
  await stopNoting((work) => connection.transaction(() => work(connection))).catch((error: unknown) => {
    if (!(error instanceof StoreRefused)) throw error
  })
}

export async function readChanges(connection: Connection, limit: number): Promise<NotedChange[]> {
  const rows = await connection.query<{ id: number; name: string; key: string; rows: number }>(SELECT_NOTES, [limit])
  return rows.map(({ id, name, key, rows }) => {
    const table = COPY_TABLES.find((one) => one.name === name)!
    return { id, table: name, key: notedKey(table, key), rows }
  })
}

export async function forgetChanges(connection: Connection, ids: readonly number[]): Promise<void> {
  await connection.query('DELETE FROM intray.copy_changes WHERE id = ANY ($1::bigint[])', [bigints(ids)])
}

/** In a transaction of the caller, which holds all tables from here on. */
export async function freezeTables(connection: Connection): Promise<void> {
  await connection.script(`SET LOCAL lock_timeout = ${LOCK_WAIT_MS}; ${CREATE_REFUSAL}`)
  for (const { name } of COPY_TABLES) {
    await connection.script(`CREATE OR REPLACE TRIGGER frozen BEFORE INSERT OR UPDATE OR DELETE ON intray.${name}
      FOR EACH STATEMENT EXECUTE FUNCTION intray.refuse_frozen()`)
  }
}

export async function isFrozen(connection: Connection): Promise<boolean> {
  const [row] = await connection.query<{ frozen: boolean }>(IS_FROZEN)
  return row!.frozen
}

/** `isFrozen` looks at `events`, which comes last. */
export async function releaseTables(transaction: InTransaction): Promise<void> {
  const others = COPY_TABLES.map(({ name }) => name).filter((name) => name !== 'events')
  for (const name of [...others, 'events']) {
    await lockBriefly(transaction, 'so the database is still frozen', `DROP TRIGGER IF EXISTS frozen ON intray.${name}`)
  }
}

export async function lockBriefly(transaction: InTransaction, consequence: string, statements: string): Promise<void> {
  try {
    await transaction((connection) => connection.script(`SET LOCAL lock_timeout = ${LOCK_WAIT_MS}; ${statements}`))
  } catch (error) {
    if (isBusy(error)) throw busy(consequence)
    throw error
  }
}

/** Another transaction holds a lock, or the two waited for each other. */
export function isBusy(error: unknown): boolean {
  const failure = storeFailure(error)
  return sqlState(failure.cause) === LOCK_NOT_AVAILABLE || isRetryable(failure)
}

export function busy(consequence: string): StoreRefused {
  return new StoreRefused(
    `A transaction keeps the tables of the source busy, ${consequence}. Run the same command again, or end it first ` +
      '(SELECT pid, xact_start, query FROM pg_stat_activity ORDER BY xact_start).',
  )
}
