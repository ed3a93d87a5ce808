// Copy source or target on SQLite. Triggers that raise an error freeze the database, for a running server and for
// commands.

import type { DatabaseSync } from 'node:sqlite'
import { newUuid } from '../../../runtime/id.ts'
import type {
  Cell,
  CopyIdentity,
  CopyRow,
  CopySide,
  CopyState,
  CopyTable,
  Stretch,
  StretchRows,
} from '../../contract/copy.ts'
import { StoreRefused } from '../../contract/failure.ts'
import { decodeState, encodeState, FROZEN, servingProblem, stateAfter } from '../../copy-state.ts'
import { COPY_PAGE_BYTES, COPY_TABLES } from '../../copy-tables.ts'
import { CHECKPOINT_PAGES, inTransaction, isDamage, openConnection, readFailure, requireFile } from '../connection.ts'
import { readSequence } from '../journal/sequence.ts'
import { acquireServerLock, isServerRunning, type ServerLock } from '../lock.ts'
import { migrate, needsMigration, readMeta } from '../schema.ts'

const CHANGES = ['INSERT', 'UPDATE', 'DELETE'] as const
const STATE = 'copy'
/** Written with the triggers and removed with them: tells one freeze from the next. */
const MARK = 'freeze'

export async function openSqliteCopy(path: string, mustExist: boolean): Promise<CopySide> {
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

class SqliteCopy implements CopySide {
  readonly tables = COPY_TABLES
  readonly #db: DatabaseSync
  readonly #path: string
  #lock: ServerLock | null = null

  constructor(db: DatabaseSync, path: string) {
    this.#db = db
    this.#path = path
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

  read(table: CopyTable, after: CopyRow | null): Promise<CopyRow[]> {
    return guard(() => Array.from(this.#rows(table, { after, upTo: null, isBackwards: false })))
  }

  readStretch(table: CopyTable, stretch: Stretch): Promise<StretchRows> {
    return guard(() => {
      const rows: CopyRow[] = []
      try {
        for (const row of this.#rows(table, stretch)) rows.push(row)
        return { rows, damage: null }
      } catch (error) {
        if (!isDamage(error)) throw error
        return { rows, damage: (error as Error).message }
      }
    })
  }

  *#rows(table: CopyTable, { after, upTo, isBackwards }: Stretch): Generator<CopyRow> {
    const key = table.key.join(', ')
    const places = table.key.map(() => '?').join(', ')
    const conditions = [
      ...(after ? [`(${key}) > (${places})`] : []),
      ...(upTo ? [`(${key}) ${upTo.isInclusive ? '<=' : '<'} (${places})`] : []),
    ]
    const where = conditions.length > 0 ? `WHERE ${conditions.join(' AND ')}` : ''
    const order = table.key.map((name) => (isBackwards ? `${name} DESC` : name)).join(', ')
    const statement = this.#db.prepare(
      `SELECT ${Object.keys(table.columns).join(', ')} FROM ${table.name} ${where} ORDER BY ${order} LIMIT ? + 0`,
    )
    statement.setReturnArrays(true)
    let bytes = 0
    for (const found of statement.iterate(...(after ?? []), ...(upTo?.key ?? []), table.page)) {
      const row = found as unknown as CopyRow
      yield row
      for (const cell of row) if (cell instanceof Uint8Array) bytes += cell.byteLength
      if (bytes >= COPY_PAGE_BYTES) return
    }
  }

  count(table: CopyTable): Promise<number> {
    return guard(() => Number(this.#db.prepare(`SELECT count(*) AS count FROM ${table.name}`).get()?.count))
  }

  freeze(): Promise<string> {
    return this.#inTransaction(() => {
      this.#db.prepare('INSERT OR IGNORE INTO meta (key, value) VALUES (?, ?)').run(MARK, Buffer.from(newUuid()))
      for (const [trigger, table, change] of freezeTriggers()) {
        this.#db.exec(
          `CREATE TRIGGER IF NOT EXISTS ${trigger} BEFORE ${change} ON ${table} BEGIN SELECT RAISE(ABORT, '${FROZEN}'); END`,
        )
      }
      return readMark(this.#db)
    })
  }

  release(): Promise<void> {
    return this.#inTransaction(() => {
      this.#db.prepare('DELETE FROM meta WHERE key = ?').run(MARK)
      for (const [trigger] of freezeTriggers()) this.#db.exec(`DROP TRIGGER IF EXISTS ${trigger}`)
    })
  }

  freezeMark(): Promise<string | null> {
    return guard(() => (isFrozen(this.#db) ? readMark(this.#db) : null))
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
    const begun = { sourceUuid, finished: false, positions: {} }
    await this.#inTransaction(() => this.#saveState(begun))
    return begun
  }

  write(sourceUuid: string, table: CopyTable, after: CopyRow | null, rows: readonly CopyRow[]): Promise<void> {
    const names = Object.keys(table.columns)
    return this.#inTransaction(() => {
      const state = stateAfter(readState(this.#db), sourceUuid, table, after, rows)
      const insert = this.#db.prepare(
        `INSERT INTO ${table.name} (${names.join(', ')}) VALUES (${names.map(() => '?').join(', ')})`,
      )
      for (const row of rows) insert.run(...(row as Cell[]))
      this.#saveState(state)
    })
  }

  finish(source: CopyIdentity): Promise<void> {
    return this.#inTransaction(() => {
      this.#db.prepare("UPDATE meta SET value = ? WHERE key = 'dedupe_key'").run(source.dedupeKey)
      const { events, resends, refusals } = source.lastIds
      const setLastId = this.#db.prepare('UPDATE sequences SET value = ? WHERE name = ?')
      setLastId.run(events, 'events')
      setLastId.run(resends, 'resends')
      this.#db.exec("DELETE FROM sqlite_sequence WHERE name = 'refusals'")
      this.#db.prepare("INSERT INTO sqlite_sequence (name, seq) VALUES ('refusals', ?)").run(refusals)
      this.#saveState({ ...readState(this.#db)!, finished: true })
    })
  }

  async close(): Promise<void> {
    this.#db.close()
    this.#lock?.release()
  }

  #saveState(state: CopyState): void {
    this.#db
      .prepare('INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)')
      .run(STATE, Buffer.from(encodeState(state)))
  }

  #inTransaction<T>(work: () => T): Promise<T> {
    return guard(() => inTransaction(this.#db, work))
  }
}

function freezeTriggers(): [trigger: string, table: string, change: string][] {
  return COPY_TABLES.flatMap(({ name }) =>
    CHANGES.map((change): [string, string, string] => [`frozen_${name}_${change.toLowerCase()}`, name, change]),
  )
}

export function isFrozen(db: DatabaseSync): boolean {
  return db.prepare("SELECT 1 FROM sqlite_master WHERE type = 'trigger' AND name LIKE 'frozen_%'").get() !== undefined
}

function readMark(db: DatabaseSync): string {
  const row = db.prepare('SELECT value FROM meta WHERE key = ?').get(MARK)
  return Buffer.from((row?.value ?? '') as Uint8Array).toString()
}

function readState(db: DatabaseSync): CopyState | null {
  const row = db.prepare('SELECT value FROM meta WHERE key = ?').get(STATE)
  return row ? decodeState(Buffer.from(row.value as Uint8Array).toString()) : null
}

async function guard<T>(work: () => T | Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw readFailure(error)
  }
}
