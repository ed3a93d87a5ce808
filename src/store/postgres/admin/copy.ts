// Copy source or target on PostgreSQL. Triggers that raise an error freeze the database for all nodes at once; creating
// them waits for every write in progress.

import {
  type CopyIdentity,
  type CopyRow,
  type CopySide,
  type CopyState,
  type CopyTable,
  keyOf,
  type Stretch,
  type StretchRows,
} from '../../contract/copy.ts'
import { newUuid } from '../../../runtime/id.ts'
import { StoreRefused } from '../../contract/failure.ts'
import { decodeState, encodeState, FROZEN, servingProblem, stateAfter } from '../../copy-state.ts'
import { COPY_PAGE_BYTES, COPY_TABLES } from '../../copy-tables.ts'
import { packColumns, unnestedColumns } from '../connection/binary-array.ts'
import type { Connection, Value } from '../connection/connection.ts'
import { FROZEN_STATE, isRetryable, sqlState, storeFailure } from '../connection/failure.ts'
import { LOCKS } from '../connection/locks.ts'
import type { Pool } from '../connection/pool.ts'
import { readIdentity } from '../schema.ts'
import { readLiveNodes } from './nodes.ts'

const STATE = 'copy'
/** Written with the triggers and removed with them: tells one freeze from the next. */
const MARK = 'freeze'
const SET_MARK = 'INSERT INTO intray.meta (key, value) VALUES ($1, $2) ON CONFLICT DO NOTHING'
const COUNTED = 1_000_000
/** Rows of one read beside damaged ones. */
const PROBED_ROWS = 256
const LOCK_WAIT_MS = 5000
const LOCK_NOT_AVAILABLE = '55P03'
const SELECT_STATE = 'SELECT value FROM intray.meta WHERE key = $1'
const SAVE_STATE = `INSERT INTO intray.meta (key, value) VALUES ($1, $2)
  ON CONFLICT (key) DO UPDATE SET value = excluded.value`
const SELECT_LAST_IDS = `SELECT
  (SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM intray.event_ids) AS events,
  (SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM intray.resend_ids) AS resends,
  (SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM intray.refusal_ids) AS refusals`
/** A sequence that gave out nothing yet begins at 1. */
const SET_LAST_ID = 'SELECT setval($1::text::regclass, greatest($2::bigint, 1), $2::bigint > 0)'
const CREATE_REFUSAL = `CREATE OR REPLACE FUNCTION intray.refuse_frozen() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '${FROZEN}' USING ERRCODE = '${FROZEN_STATE}';
END $$`
const IS_FROZEN = `SELECT EXISTS (SELECT FROM pg_trigger WHERE tgname = 'frozen'
  AND tgrelid = 'intray.events'::regclass) AS frozen`

/** How a column is read and written where the two databases use different types. */
const READ_AS: Record<string, string> = { 'tokens.is_active': 'is_active::int::bigint' }
const WRITE_AS: Record<string, string> = { 'tokens.is_active': 'k.is_active <> 0' }

/** Why no server may open this database; null if one may. */
export async function copyProblem(connection: Connection): Promise<string | null> {
  return servingProblem(await readState(connection), await isFrozen(connection))
}

export async function isFrozen(connection: Connection): Promise<boolean> {
  const [row] = await connection.query<{ frozen: boolean }>(IS_FROZEN)
  return row!.frozen
}

export class PostgresCopy implements CopySide {
  readonly tables = COPY_TABLES
  readonly #pool: Pool

  constructor(pool: Pool) {
    this.#pool = pool
  }

  identity(): Promise<CopyIdentity> {
    return this.#use(async (connection) => {
      const { databaseUuid, dedupeKey } = await readIdentity(connection)
      const [lastIds] = await connection.query<CopyIdentity['lastIds'] & object>(SELECT_LAST_IDS)
      return { databaseUuid, dedupeKey, lastIds: lastIds! }
    })
  }

  read(table: CopyTable, after: CopyRow | null): Promise<CopyRow[]> {
    const stretch = { after, upTo: null, isBackwards: false }
    return this.#use(async (connection) => {
      const limit = await pageSize(connection, table, stretch)
      return readRows(connection, table, stretch, limit)
    })
  }

  /** A statement that meets a damaged page gives no row at all: it is repeated for fewer of them. */
  readStretch(table: CopyTable, stretch: Stretch): Promise<StretchRows> {
    return this.#use(async (connection) => {
      const rows: CopyRow[] = []
      let limit: number | null = null
      for (;;) {
        try {
          limit ??= await pageSize(connection, table, stretch)
          const found = await readRows(connection, table, restOf(table, stretch, rows), limit)
          rows.push(...found)
          if (found.length < limit || rows.length >= PROBED_ROWS) return { rows, damage: null }
        } catch (error) {
          const failure = storeFailure(error)
          if (failure.kind !== 'damaged') throw failure
          if (limit === 1) return { rows, damage: failure.message }
          limit = limit === null ? PROBED_ROWS : Math.max(1, Math.min(PROBED_ROWS, limit >> 2))
        }
      }
    })
  }

  count(table: CopyTable): Promise<number> {
    return this.#use(async (connection) => {
      // Only for progress: where counting would take long, the planner's estimate is used.
      const [estimate] = await connection.query<{ rows: number }>(
        `SELECT reltuples::bigint AS rows FROM pg_class WHERE oid = 'intray.${table.name}'::regclass`,
      )
      if (estimate!.rows > COUNTED) return estimate!.rows
      const [row] = await connection.query<{ count: number }>(`SELECT count(*) AS count FROM intray.${table.name}`)
      return row!.count
    })
  }

  async freeze(): Promise<string> {
    try {
      return await this.#transaction(async (connection) => {
        // A transaction that waits for a lock holds up all behind it: not for long.
        await connection.script(`SET LOCAL lock_timeout = ${LOCK_WAIT_MS}; ${CREATE_REFUSAL}`)
        await connection.query(SET_MARK, [MARK, Buffer.from(newUuid())])
        for (const { name } of COPY_TABLES) {
          await connection.script(`CREATE OR REPLACE TRIGGER frozen BEFORE INSERT OR UPDATE OR DELETE ON intray.${name}
            FOR EACH STATEMENT EXECUTE FUNCTION intray.refuse_frozen()`)
        }
        return (await readMark(connection))!
      })
    } catch (error) {
      if (!isBusy(error)) throw error
      throw new StoreRefused(
        'A transaction keeps the tables of the source busy, so it could not be frozen. ' +
          'End it (SELECT pid, xact_start, query FROM pg_stat_activity ORDER BY xact_start) and copy again.',
      )
    }
  }

  freezeMark(): Promise<string | null> {
    return this.#use(async (connection) => ((await isFrozen(connection)) ? readMark(connection) : null))
  }

  state(): Promise<CopyState | null> {
    return this.#use((connection) => readState(connection))
  }

  /** A table at a time: with several locks in one transaction it would deadlock with claims. `isFrozen` looks at `events`. */
  async release(): Promise<void> {
    const others = COPY_TABLES.map(({ name }) => name).filter((name) => name !== 'events')
    for (const name of [...others, 'events']) {
      await this.#transaction(async (connection) => {
        await connection.script(
          `SET LOCAL lock_timeout = ${LOCK_WAIT_MS}; DROP TRIGGER IF EXISTS frozen ON intray.${name}`,
        )
        if (name === 'events') await connection.query('DELETE FROM intray.meta WHERE key = $1', [MARK])
      }).catch((error: unknown) => {
        if (!isBusy(error)) throw error
        throw new StoreRefused(
          'A transaction keeps the tables busy, so the database is still frozen. Run the same command again, ' +
            'or end it first (SELECT pid, xact_start, query FROM pg_stat_activity ORDER BY xact_start).',
        )
      })
    }
  }

  begin(sourceUuid: string): Promise<CopyState> {
    return this.#transaction(async (connection) => {
      await connection.query('SELECT pg_advisory_xact_lock($1, $2)', LOCKS.copy)
      if ((await readLiveNodes(connection)).length > 0) {
        throw new StoreRefused('Servers are running on the target. Stop them, or give an empty database.')
      }
      const state = await readState(connection)
      if (state?.sourceUuid === sourceUuid) return state
      if (state) throw new StoreRefused('The target is a copy of another database. Give an empty one.')
      for (const { name } of COPY_TABLES) {
        if ((await connection.query(`SELECT 1 FROM intray.${name} LIMIT 1`)).length > 0) {
          throw new StoreRefused(`The target is in use: it holds ${name}. Give an empty one.`)
        }
      }
      const begun = { sourceUuid, finished: false, positions: {} }
      await saveState(connection, begun)
      return begun
    })
  }

  write(sourceUuid: string, table: CopyTable, after: CopyRow | null, rows: readonly CopyRow[]): Promise<void> {
    const names = Object.keys(table.columns)
    const types = Object.values(table.columns)
    const values = names.map((name) => WRITE_AS[`${table.name}.${name}`] ?? `k.${name}`).join(', ')
    return this.#transaction(async (connection) => {
      await connection.query('SELECT pg_advisory_xact_lock($1, $2)', LOCKS.copy)
      const state = followOn(await readState(connection), sourceUuid, table, after, rows)
      await connection.execute(
        `INSERT INTO intray.${table.name} (${names.join(', ')})
        SELECT ${values} FROM (SELECT ${unnestedColumns(types)}) AS k (${names.join(', ')})`,
        packColumns(types, rows),
      )
      await saveState(connection, state)
    })
  }

  finish({ dedupeKey, lastIds }: CopyIdentity): Promise<void> {
    return this.#transaction(async (connection) => {
      await connection.execute("UPDATE intray.meta SET value = $1 WHERE key = 'dedupe_key'", [dedupeKey])
      await connection.query(SET_LAST_ID, ['intray.event_ids', lastIds.events])
      await connection.query(SET_LAST_ID, ['intray.resend_ids', lastIds.resends])
      await connection.query(SET_LAST_ID, ['intray.refusal_ids', lastIds.refusals])
      await saveState(connection, { ...(await readState(connection))!, finished: true })
    })
  }

  close(): Promise<void> {
    return this.#pool.close()
  }

  async #use<T>(work: (connection: Connection) => Promise<T>): Promise<T> {
    try {
      return await this.#pool.use(work)
    } catch (error) {
      throw error instanceof StoreRefused ? error : storeFailure(error)
    }
  }

  #transaction<T>(work: (connection: Connection) => Promise<T>): Promise<T> {
    return this.#use((connection) => connection.transaction(() => work(connection)))
  }
}

function followOn(...args: Parameters<typeof stateAfter>): CopyState {
  try {
    return stateAfter(...args)
  } catch (error) {
    throw new StoreRefused((error as Error).message)
  }
}

/** What is left of a stretch after these rows. */
function restOf(table: CopyTable, stretch: Stretch, rows: readonly CopyRow[]): Stretch {
  const last = rows.at(-1)
  if (!last) return stretch
  const key = keyOf(table, last)
  return stretch.isBackwards ? { ...stretch, upTo: { key, isInclusive: false } } : { ...stretch, after: key }
}

function rangeOf(table: CopyTable, { after, upTo, isBackwards }: Stretch) {
  const key = table.key.join(', ')
  const values: Value[] = []
  const places = (row: CopyRow) => row.map((cell) => `$${values.push(cell as Value)}`).join(', ')
  const conditions = [
    ...(after ? [`(${key}) > (${places(after)})`] : []),
    ...(upTo ? [`(${key}) ${upTo.isInclusive ? '<=' : '<'} (${places(upTo.key)})`] : []),
  ]
  const order = table.key.map((name) => (isBackwards ? `${name} DESC` : name)).join(', ')
  return { sql: `WHERE ${conditions.join(' AND ') || 'true'} ORDER BY ${order}`, values }
}

function readRows(connection: Connection, table: CopyTable, stretch: Stretch, limit: number): Promise<CopyRow[]> {
  const columns = Object.keys(table.columns).map((name) => READ_AS[`${table.name}.${name}`] ?? name)
  const { sql, values } = rangeOf(table, stretch)
  return connection.rows(`SELECT ${columns.join(', ')} FROM intray.${table.name} ${sql} LIMIT ${limit}`, values)
}

/** Rows per page by payload size; tables without a `size` column have small pages. */
async function pageSize(connection: Connection, table: CopyTable, stretch: Stretch): Promise<number> {
  if (!('size' in table.columns)) return table.page
  const { sql, values } = rangeOf(table, stretch)
  const sizes = await connection.query<{ size: number }>(
    `SELECT size FROM intray.${table.name} ${sql} LIMIT ${table.page}`,
    values,
  )
  let bytes = 0
  const full = sizes.findIndex(({ size }) => (bytes += size) >= COPY_PAGE_BYTES)
  return full === -1 ? table.page : full + 1
}

/** Another transaction holds a lock, or the two waited for each other. */
function isBusy(error: unknown): boolean {
  const failure = storeFailure(error)
  return sqlState(failure.cause) === LOCK_NOT_AVAILABLE || isRetryable(failure)
}

async function readMark(connection: Connection): Promise<string | null> {
  const [row] = await connection.query<{ value: Buffer }>(SELECT_STATE, [MARK])
  return row?.value.toString() ?? null
}

async function readState(connection: Connection): Promise<CopyState | null> {
  const [row] = await connection.query<{ value: Buffer }>(SELECT_STATE, [STATE])
  return row ? decodeState(row.value.toString()) : null
}

async function saveState(connection: Connection, state: CopyState): Promise<void> {
  await connection.execute(SAVE_STATE, [STATE, Buffer.from(encodeState(state))])
}
