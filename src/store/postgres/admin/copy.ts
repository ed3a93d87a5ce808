// Copy source or target on PostgreSQL. While the rest is copied, the transaction that freezes the source makes writers wait, and
// ends with the connection.

import type {
  ChangedRows,
  CopyIdentity,
  CopyRow,
  CopyState,
  CopyTable,
  NotedChange,
  Noting,
  ReadRange,
  RowCount,
  Stretch,
  StretchRows,
} from '../../contract/copy.ts'
import { StoreRefused } from '../../contract/failure.ts'
import type { IndexProgress, WordLimits } from '../../contract/indexing.ts'
import type { MoveSide, TenantMove } from '../../contract/tenant-move.ts'
import {
  decodeState,
  encodeState,
  KEY_IN_USE,
  newState,
  NOTING_LOST,
  requireOwn,
  servingProblem,
  stateAfter,
  stateAfterBatch,
} from '../../copy-state.ts'
import { COPY_TABLES } from '../../copy-tables.ts'
import type { Connection } from '../connection/connection.ts'
import { isRetryable, storeFailure } from '../connection/failure.ts'
import { LOCKS } from '../connection/locks.ts'
import type { Pool } from '../connection/pool.ts'
import { DERIVED_TABLES } from '../index/clearing.ts'
import { followPurges } from '../index/index-purges.ts'
import { createIndexing } from '../index/indexing.ts'
import { type Ids, readLastIds, Watermark } from '../journal/watermark.ts'
import { readIdentity } from '../schema.ts'
import {
  countExactly,
  countRoughly,
  findRows,
  insertRows,
  notePurges,
  readPage,
  readUpToDamage,
  removeKeys,
} from './copy-rows.ts'
import {
  busy,
  freezeTables,
  forgetChanges,
  isBusy,
  isFrozen,
  keepNoting,
  readChanges,
  readNoting,
  releaseTables,
  startNoting,
  stopNoting,
} from './copy-triggers.ts'
import { readLiveNodes } from './nodes.ts'
import { FOLLOW_ROWS } from './retention.ts'
import { createTenantMove } from './tenant-move.ts'

const STATE = 'copy'
/** How often a watermark is waited for, 2 s each. */
const WATERMARK_TRIES = 15
/** A freeze that deadlocked with a claim is tried again. */
const FREEZE_TRIES = 5
/** A transaction that freezes is idle while the rest is copied. */
const FREEZE_IDLE_MS = 600_000
const SELECT_STATE = 'SELECT value FROM intray.meta WHERE key = $1'
const SAVE_STATE = `INSERT INTO intray.meta (key, value) VALUES ($1, $2)
  ON CONFLICT (key) DO UPDATE SET value = excluded.value`
const SELECT_LAST_IDS = `SELECT
  (SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM intray.event_ids) AS events,
  (SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM intray.resend_ids) AS resends,
  (SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM intray.refusal_ids) AS refusals`
/** A sequence that gave out nothing yet begins at 1. */
const SET_LAST_ID = 'SELECT setval($1::text::regclass, greatest($2::bigint, 1), $2::bigint > 0)'
const SEQUENCES = { events: 'intray.event_ids', resends: 'intray.resend_ids', refusals: 'intray.refusal_ids' } as const
/** Everything that a target may hold, with what was derived from it. */
const EMPTY = `TRUNCATE ${[...COPY_TABLES.map(({ name }) => name), 'purges', ...DERIVED_TABLES]
  .map((name) => `intray.${name}`)
  .join(', ')};
  UPDATE intray.index_cursors SET position = 0, watermark = 0, clearing = false`

/** Why no server may open this database; null if one may. */
export async function copyProblem(connection: Connection): Promise<string | null> {
  return servingProblem(await readState(connection), await isFrozen(connection))
}

type Indexing = ReturnType<typeof createIndexing>

export class PostgresCopy implements MoveSide {
  readonly tables = COPY_TABLES
  readonly tenants: TenantMove
  readonly #pool: Pool
  #indexing: Indexing | null = null
  #isFreezing = false

  constructor(pool: Pool) {
    this.#pool = pool
    this.tenants = createTenantMove((work) => this.#transaction(work))
  }

  identity(): Promise<CopyIdentity> {
    return this.#use(async (connection) => {
      const { databaseUuid, dedupeKey } = await readIdentity(connection)
      const [lastIds] = await connection.query<CopyIdentity['lastIds'] & object>(SELECT_LAST_IDS)
      return { databaseUuid, dedupeKey, lastIds: lastIds! }
    })
  }

  read(table: CopyTable, after: CopyRow | null, range: ReadRange = {}): Promise<CopyRow[]> {
    return this.#use((connection) => readPage(connection, table, after, range))
  }

  readStretch(table: CopyTable, stretch: Stretch): Promise<StretchRows> {
    return this.#use((connection) => readUpToDamage(connection, table, stretch))
  }

  find(table: CopyTable, keys: readonly CopyRow[]): Promise<(CopyRow | null)[]> {
    return this.#use((connection) => findRows(connection, table, keys))
  }

  count(table: CopyTable): Promise<number> {
    return this.#use((connection) => countRoughly(connection, table))
  }

  countExactly(table: CopyTable, upTo?: number): Promise<RowCount | null> {
    return this.#use((connection) => countExactly(connection, table, upTo))
  }

  /** Waits for open transactions, for half a minute at most. */
  watermark(): Promise<Ids> {
    return this.#use(async (connection) => {
      // Nobody else writes, and the transaction that freezes would be waited for.
      if (this.#isFreezing) return readLastIds(connection)
      const watermark = new Watermark()
      for (let attempt = 0; attempt < WATERMARK_TRIES; attempt++) {
        const found = await watermark.find(connection, { events: -1, resends: -1 }, true)
        if (found) return found
      }
      throw busy('so it is not known which rows are committed')
    })
  }

  noting(): Promise<Noting | null> {
    return this.#use(readNoting)
  }

  startNoting(): Promise<string> {
    return startNoting((work) => this.#transaction(work))
  }

  keepNoting(mark: string): Promise<void> {
    return this.#transaction(async (connection) => {
      if ((await readNoting(connection))?.mark !== mark) throw new StoreRefused(NOTING_LOST)
      await keepNoting(connection)
    })
  }

  stopNoting(): Promise<void> {
    return stopNoting((work) => this.#transaction(work))
  }

  changes(limit: number): Promise<NotedChange[]> {
    return this.#use((connection) => readChanges(connection, limit))
  }

  forgetChanges(ids: readonly number[]): Promise<void> {
    return this.#use((connection) => forgetChanges(connection, ids))
  }

  async freeze<T>(copyRest: () => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#transaction(async (connection) => {
          await connection.script(`SET LOCAL idle_in_transaction_session_timeout = ${FREEZE_IDLE_MS}`)
          await freezeTables(connection)
          this.#isFreezing = true
          return copyRest()
        })
      } catch (error) {
        if (this.#isFreezing || !isBusy(error)) throw error
        if (attempt === FREEZE_TRIES || !isRetryable(storeFailure(error))) throw busy('so it could not be frozen')
      } finally {
        this.#isFreezing = false
      }
    }
  }

  isFrozen(): Promise<boolean> {
    return this.#use(isFrozen)
  }

  async release(): Promise<void> {
    await releaseTables((work) => this.#transaction(work))
    await this.stopNoting()
  }

  state(): Promise<CopyState | null> {
    return this.#use((connection) => readState(connection))
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
      const begun = newState(sourceUuid, null)
      await saveState(connection, begun)
      return begun
    })
  }

  restart({ databaseUuid, dedupeKey }: CopyIdentity, mark: string): Promise<CopyState> {
    return this.#change(databaseUuid, async (connection) => {
      await connection.script(EMPTY)
      for (const sequence of Object.values(SEQUENCES)) await connection.query(SET_LAST_ID, [sequence, 0])
      await setDedupeKey(connection, dedupeKey)
      return newState(databaseUuid, mark)
    })
  }

  async write(sourceUuid: string, table: CopyTable, after: CopyRow | null, rows: readonly CopyRow[]): Promise<void> {
    await this.#change(sourceUuid, async (connection, found) => {
      const state = stateAfter(found, sourceUuid, table, after, rows)
      await insertRows(connection, table, rows)
      // The indexer reads up to here.
      if (table.follows) {
        await connection.query(SET_LAST_ID, [SEQUENCES[table.follows], state.positions[table.name]?.[0] as number])
      }
      return state
    })
  }

  async replace(sourceUuid: string, batch: number, changes: readonly ChangedRows[]): Promise<number[]> {
    const grown: number[] = []
    await this.#change(sourceUuid, async (connection, found) => {
      const state = stateAfterBatch(found, sourceUuid, batch)
      for (const { table, keys, rows } of changes) {
        const isGone = (_: CopyRow, n: number) => rows[n] === null
        if (table.follows === 'events') await notePurges(connection, keys.filter(isGone).flat() as number[])
        const removed = await removeKeys(connection, table, keys)
        const present = rows.filter((row) => row !== null)
        await insertRows(connection, table, present)
        grown.push(present.length - removed)
      }
      return state
    })
    return grown
  }

  async setWhole(sourceUuid: string): Promise<void> {
    await this.#change(sourceUuid, async (_, state) => ({ ...state, isWhole: true }))
  }

  index(limits: WordLimits): Promise<IndexProgress> {
    return this.#indexed(async (indexing) => {
      await indexing.step(limits)
      return indexing.stepWords(limits)
    })
  }

  followPurges(): Promise<boolean> {
    return this.#use((connection) => followPurges(connection, FOLLOW_ROWS))
  }

  async finish({ databaseUuid, lastIds }: CopyIdentity): Promise<void> {
    await this.#change(databaseUuid, async (connection, state) => {
      for (const name of ['events', 'resends', 'refusals'] as const) {
        await connection.query(SET_LAST_ID, [SEQUENCES[name], lastIds[name]])
      }
      return { ...state, finished: true }
    })
  }

  adoptKey(dedupeKey: Uint8Array): Promise<void> {
    return this.#transaction(async (connection) => {
      if ((await connection.query('SELECT 1 FROM intray.dedupe LIMIT 1')).length > 0) throw new StoreRefused(KEY_IN_USE)
      await setDedupeKey(connection, dedupeKey)
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

  async #indexed<T>(work: (indexing: Indexing) => Promise<T>): Promise<T> {
    this.#indexing ??= createIndexing(this.#pool, (await this.identity()).dedupeKey)
    try {
      return await work(this.#indexing)
    } catch (error) {
      throw storeFailure(error)
    }
  }

  /** Changes the target and stores the state that `work` answers with. One copy at a time. */
  #change(
    sourceUuid: string,
    work: (connection: Connection, state: CopyState) => Promise<CopyState>,
  ): Promise<CopyState> {
    return this.#transaction(async (connection) => {
      await connection.query('SELECT pg_advisory_xact_lock($1, $2)', LOCKS.copy)
      const state = await work(connection, requireOwn(await readState(connection), sourceUuid))
      await saveState(connection, state)
      return state
    })
  }

  #transaction<T>(work: (connection: Connection) => Promise<T>): Promise<T> {
    return this.#use((connection) => connection.transaction(() => work(connection)))
  }
}

async function setDedupeKey(connection: Connection, key: Uint8Array): Promise<void> {
  await connection.execute("UPDATE intray.meta SET value = $1 WHERE key = 'dedupe_key'", [key])
}

async function readState(connection: Connection): Promise<CopyState | null> {
  const [row] = await connection.query<{ value: Buffer }>(SELECT_STATE, [STATE])
  return row ? decodeState(row.value.toString()) : null
}

async function saveState(connection: Connection, state: CopyState): Promise<void> {
  await connection.execute(SAVE_STATE, [STATE, Buffer.from(encodeState(state))])
}
