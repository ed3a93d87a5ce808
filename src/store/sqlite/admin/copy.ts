// Copy source or target on SQLite. The source is frozen for a running server and for commands; while the rest is copied, the write
// transaction that freezes it makes them wait, and ends with the process.

import type { DatabaseSync } from 'node:sqlite'
import { newUuid } from '../../../runtime/id.ts'
import type {
  ChangedRows,
  CopyIdentity,
  CopyRow,
  CopySide,
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
import {
  CHECKPOINT_PAGES,
  inTransaction,
  openConnection,
  readFailure,
  requireFile,
  SQLITE,
  sqliteCode,
} from '../connection.ts'
import { openIndexWriter, prepareIndexFile } from '../index/index-file.ts'
import { prepareIndexing } from '../index/indexing.ts'
import { prepareIndexPurges } from '../index/index-purges.ts'
import { readSequence, setSequence } from '../journal/sequence.ts'
import { acquireServerLock, isServerRunning, type Lock } from '../lock.ts'
import { migrate, needsMigration, readMeta } from '../schema.ts'
import { findRows, insertRows, notePurges, readPage, readUpToDamage, removeKeys } from './copy-rows.ts'
import {
  forgetChanges,
  freezeTables,
  isFrozen,
  keepNoting,
  readChanges,
  readNoting,
  releaseTables,
  startNoting,
  stopNoting,
} from './copy-triggers.ts'
import { createTenantMove } from './tenant-move.ts'

const STATE = 'copy'
const FREEZE_TRIES = 5
/** Entries that one step removes from the index. */
const FOLLOW_ROWS = 200

export async function openSqliteCopy(path: string, mustExist: boolean): Promise<MoveSide> {
  if (mustExist) requireFile(path)
  const db = openConnection(path, 'tool')
  try {
    if (needsMigration(db) && isServerRunning(path)) {
      throw new StoreRefused('A server of another version is running on the database. Stop it first.')
    }
    migrate(db)
    return new SqliteCopy(db, path)
  } catch (error) {
    db.close()
    throw error
  }
}

/** A database that is open already. */
export function sideOf(db: DatabaseSync, path: string): CopySide {
  return new SqliteCopy(db, path)
}

/** Why no server may open this database; null if one may. */
export function copyProblem(db: DatabaseSync): string | null {
  return servingProblem(readState(db), isFrozen(db))
}

interface Index {
  readonly db: DatabaseSync
  readonly indexing: ReturnType<typeof prepareIndexing>
  readonly purges: ReturnType<typeof prepareIndexPurges>
}

class SqliteCopy implements MoveSide {
  readonly tables = COPY_TABLES
  readonly tenants: TenantMove
  readonly #db: DatabaseSync
  readonly #path: string
  #lock: Lock | null = null
  #index: Index | null = null

  constructor(db: DatabaseSync, path: string) {
    this.#db = db
    this.#path = path
    this.tenants = createTenantMove(db)
  }

  identity(): Promise<CopyIdentity> {
    return guard(() => {
      const refusals = this.#db.prepare("SELECT seq FROM sqlite_sequence WHERE name = 'refusals'").get()
      return {
        databaseUuid: Buffer.from(readMeta(this.#db, 'database_uuid')).toString(),
        dedupeKey: readMeta(this.#db, 'dedupe_key'),
        lastIds: {
          events: readSequence(this.#db, 'events'),
          resends: readSequence(this.#db, 'resends'),
          refusals: Number(refusals?.seq ?? 0),
        },
      }
    })
  }

  read(table: CopyTable, after: CopyRow | null, range: ReadRange = {}): Promise<CopyRow[]> {
    return guard(() => readPage(this.#db, table, after, range))
  }

  readStretch(table: CopyTable, stretch: Stretch): Promise<StretchRows> {
    return guard(() => readUpToDamage(this.#db, table, stretch))
  }

  find(table: CopyTable, keys: readonly CopyRow[]): Promise<(CopyRow | null)[]> {
    return guard(() => findRows(this.#db, table, keys))
  }

  count(table: CopyTable): Promise<number> {
    return guard(() => Number(this.#db.prepare(`SELECT count(*) AS count FROM ${table.name}`).get()?.count))
  }

  countExactly(table: CopyTable, upTo = Number.MAX_SAFE_INTEGER): Promise<RowCount> {
    return guard(() => {
      const isUpTo = table.follows ? `AND json_extract(key, '$[0]') <= ${upTo}` : ''
      const noted = readNoting(this.#db)
        ? `(SELECT coalesce(sum(rows), 0) FROM copy_changes WHERE name = '${table.name}' ${isUpTo})`
        : '0'
      const where = table.follows ? `WHERE id <= ${upTo}` : ''
      const found = this.#db.prepare(`SELECT count(*) AS rows, ${noted} AS noted FROM ${table.name} ${where}`).get()
      return found as unknown as RowCount
    })
  }

  watermark() {
    return guard(() => ({ events: readSequence(this.#db, 'events'), resends: readSequence(this.#db, 'resends') }))
  }

  noting(): Promise<Noting | null> {
    return guard(() => readNoting(this.#db))
  }

  startNoting(): Promise<string> {
    return this.#inTransaction(() => {
      const mark = newUuid()
      startNoting(this.#db, mark, Date.now())
      return mark
    })
  }

  keepNoting(mark: string): Promise<void> {
    return this.#inTransaction(() => {
      if (readNoting(this.#db)?.mark !== mark) throw new StoreRefused(NOTING_LOST)
      keepNoting(this.#db, Date.now())
    })
  }

  stopNoting(): Promise<void> {
    return this.#inTransaction(() => stopNoting(this.#db))
  }

  changes(limit: number): Promise<NotedChange[]> {
    return guard(() => readChanges(this.#db, limit))
  }

  forgetChanges(ids: readonly number[]): Promise<void> {
    return this.#inTransaction(() => forgetChanges(this.#db, ids))
  }

  async freeze<T>(copyRest: () => Promise<T>): Promise<T> {
    await guard(() => this.#lockForWriting())
    try {
      await guard(() => freezeTables(this.#db))
      const result = await copyRest()
      await guard(() => this.#db.exec('COMMIT'))
      return result
    } catch (error) {
      if (this.#db.isTransaction) this.#db.exec('ROLLBACK')
      throw error
    }
  }

  isFrozen(): Promise<boolean> {
    return guard(() => isFrozen(this.#db))
  }

  release(): Promise<void> {
    return this.#inTransaction(() => {
      releaseTables(this.#db)
      stopNoting(this.#db)
    })
  }

  state(): Promise<CopyState | null> {
    return guard(() => readState(this.#db))
  }

  async begin(sourceUuid: string): Promise<CopyState> {
    // Held until the copy is closed: no server can start in the meantime.
    this.#lock ??= acquireServerLock(this.#path)
    this.#db.exec(`PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES.journal}`)
    const state = readState(this.#db)
    if (state?.sourceUuid === sourceUuid) return state
    if (state) throw new StoreRefused('The target is a copy of another database. Give an empty one.')
    for (const { name } of COPY_TABLES) {
      if (this.#db.prepare(`SELECT 1 FROM ${name} LIMIT 1`).get()) {
        throw new StoreRefused(`The target is in use: it holds ${name}. Give an empty one.`)
      }
    }
    const begun = newState(sourceUuid, null)
    await this.#inTransaction(() => this.#saveState(begun))
    return begun
  }

  restart({ databaseUuid, dedupeKey }: CopyIdentity, mark: string): Promise<CopyState> {
    return this.#inTransaction(() => {
      requireOwn(readState(this.#db), databaseUuid)
      for (const { name } of COPY_TABLES) this.#db.exec(`DELETE FROM ${name}`)
      for (const name of ['events', 'resends'] as const) setSequence(this.#db, name, 0)
      setDedupeKey(this.#db, dedupeKey)
      const state = newState(databaseUuid, mark)
      this.#saveState(state)
      return state
    })
  }

  write(sourceUuid: string, table: CopyTable, after: CopyRow | null, rows: readonly CopyRow[]): Promise<void> {
    return this.#inTransaction(() => {
      const state = stateAfter(readState(this.#db), sourceUuid, table, after, rows)
      insertRows(this.#db, table, rows)
      // The indexer reads up to here.
      if (table.follows) setSequence(this.#db, table.follows, state.positions[table.name]?.[0] as number)
      this.#saveState(state)
    })
  }

  replace(sourceUuid: string, batch: number, changes: readonly ChangedRows[]): Promise<number[]> {
    return this.#inTransaction(() => {
      const state = stateAfterBatch(readState(this.#db), sourceUuid, batch)
      const grown = changes.map(({ table, keys, rows }) => {
        if (table.follows === 'events') notePurges(this.#db, keys.filter((_, n) => rows[n] === null).flat() as number[])
        const removed = removeKeys(this.#db, table, keys)
        const present = rows.filter((row) => row !== null)
        insertRows(this.#db, table, present)
        return present.length - removed
      })
      this.#saveState(state)
      return grown
    })
  }

  setWhole(sourceUuid: string): Promise<void> {
    return this.#inTransaction(() => this.#saveState({ ...requireOwn(readState(this.#db), sourceUuid), isWhole: true }))
  }

  index(limits: WordLimits): Promise<IndexProgress> {
    return guard(() => {
      const { indexing } = (this.#index ??= this.#openIndex())
      indexing.step(limits)
      return indexing.stepWords(limits)
    })
  }

  followPurges(): Promise<boolean> {
    return guard(() => (this.#index ??= this.#openIndex()).purges.follow(FOLLOW_ROWS))
  }

  finish({ lastIds }: CopyIdentity): Promise<void> {
    return this.#inTransaction(() => {
      setSequence(this.#db, 'events', lastIds.events)
      setSequence(this.#db, 'resends', lastIds.resends)
      this.#db.exec("DELETE FROM sqlite_sequence WHERE name = 'refusals'")
      this.#db.prepare("INSERT INTO sqlite_sequence (name, seq) VALUES ('refusals', ?)").run(lastIds.refusals)
      this.#saveState({ ...readState(this.#db)!, finished: true })
    })
  }

  adoptKey(dedupeKey: Uint8Array): Promise<void> {
    return this.#inTransaction(() => {
      if (this.#db.prepare('SELECT 1 FROM dedupe LIMIT 1').get()) throw new StoreRefused(KEY_IN_USE)
      setDedupeKey(this.#db, dedupeKey)
    })
  }

  async close(): Promise<void> {
    this.#index?.db.close()
    this.#db.close()
    this.#lock?.release()
  }

  /** Waits for a busy server up to 5 s in each attempt. */
  #lockForWriting(): void {
    for (let attempt = 1; ; attempt++) {
      try {
        this.#db.exec('BEGIN IMMEDIATE')
        return
      } catch (error) {
        if (attempt === FREEZE_TRIES || sqliteCode(error) !== SQLITE.BUSY) throw error
      }
    }
  }

  #openIndex(): Index {
    prepareIndexFile(this.#path)
    const db = openIndexWriter(this.#path)
    db.exec(`PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES.index}`)
    return { db, indexing: prepareIndexing(db), purges: prepareIndexPurges(db) }
  }

  #saveState(state: CopyState): void {
    this.#db
      .prepare('INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)')
      .run(STATE, Buffer.from(encodeState(state)))
  }

  /** While the database is being frozen, in that transaction. */
  #inTransaction<T>(work: () => T): Promise<T> {
    return guard(() => (this.#db.isTransaction ? work() : inTransaction(this.#db, work)))
  }
}

function setDedupeKey(db: DatabaseSync, key: Uint8Array): void {
  db.prepare("UPDATE meta SET value = ? WHERE key = 'dedupe_key'").run(key)
}

function readState(db: DatabaseSync): CopyState | null {
  const row = db.prepare('SELECT value FROM meta WHERE key = ?').get(STATE)
  return row ? decodeState(Buffer.from(row.value as Uint8Array).toString()) : null
}

async function guard<T>(work: () => T | Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof StoreRefused) throw error
    throw readFailure(error)
  }
}
