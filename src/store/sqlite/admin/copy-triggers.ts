// What a copy changes in its source: triggers that note changed rows while it runs, and triggers that freeze the database in the
// end. Without a copy there are none of them.

import type { DatabaseSync } from 'node:sqlite'
import type { CopyTable, NotedChange, Noting } from '../../contract/copy.ts'
import { FROZEN, isStale, notedKey } from '../../copy-state.ts'
import { COPY_TABLES } from '../../copy-tables.ts'

const CHANGES = ['INSERT', 'UPDATE', 'DELETE'] as const
type Change = (typeof CHANGES)[number]
/** How many rows more there are. */
const ROWS = { INSERT: 1, UPDATE: 0, DELETE: -1 } as const

/** Keys of `meta`: the mark of the notes, and when their copy was last seen. */
const MARK = 'copy_noting'
const SEEN = 'copy_seen'
const SET_META = 'INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)'
const SELECT_META = 'SELECT CAST(value AS TEXT) AS value FROM meta WHERE key = ?'
/** A log: a row that changes again while the copy reads it must be noted again. */
const CREATE_NOTES = `CREATE TABLE copy_changes (
  id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, key TEXT NOT NULL, rows INTEGER NOT NULL) STRICT`
const SELECT_NOTES = 'SELECT id, name, key, rows FROM copy_changes ORDER BY id LIMIT ? + 0'

/** Inside a transaction of the caller, as everything here. */
export function startNoting(db: DatabaseSync, mark: string, now: number): void {
  stopNoting(db)
  db.exec(CREATE_NOTES)
  for (const [trigger, table, change] of triggers('noted')) {
    if (change === 'INSERT' && table.follows) continue
    const row = change === 'DELETE' ? 'OLD' : 'NEW'
    const cells = table.key.map((column) =>
      table.columns[column] === 'bytes' ? `hex(${row}.${column})` : `${row}.${column}`,
    )
    db.exec(`CREATE TRIGGER ${trigger} AFTER ${change} ON ${table.name} BEGIN
      INSERT INTO copy_changes (name, key, rows) VALUES ('${table.name}', json_array(${cells.join(', ')}), ${ROWS[change]});
    END`)
  }
  db.prepare(SET_META).run(MARK, Buffer.from(mark))
  keepNoting(db, now)
}

export function stopNoting(db: DatabaseSync): void {
  for (const [trigger] of triggers('noted')) db.exec(`DROP TRIGGER IF EXISTS ${trigger}`)
  db.exec(`DROP TABLE IF EXISTS copy_changes; DELETE FROM meta WHERE key IN ('${MARK}', '${SEEN}')`)
}

export function keepNoting(db: DatabaseSync, now: number): void {
  db.prepare(SET_META).run(SEEN, Buffer.from(String(now)))
}

export function readNoting(db: DatabaseSync): Noting | null {
  const mark = db.prepare(SELECT_META).get(MARK)
  if (!mark) return null
  return { mark: String(mark.value), seenAt: Number(db.prepare(SELECT_META).get(SEEN)?.value ?? 0) }
}

/** Ends what a copy that was cut off has left. */
export function dropStaleNoting(db: DatabaseSync, now: number): void {
  const noting = readNoting(db)
  if (noting && isStale(noting, now)) stopNoting(db)
}

export function readChanges(db: DatabaseSync, limit: number): NotedChange[] {
  return db
    .prepare(SELECT_NOTES)
    .all(limit)
    .map((row) => {
      const table = COPY_TABLES.find(({ name }) => name === row.name)!
      return { id: Number(row.id), table: table.name, key: notedKey(table, String(row.key)), rows: Number(row.rows) }
    })
}

export function forgetChanges(db: DatabaseSync, ids: readonly number[]): void {
  const remove = db.prepare('DELETE FROM copy_changes WHERE id = ?')
  for (const id of ids) remove.run(id)
}

export function freezeTables(db: DatabaseSync): void {
  for (const [trigger, { name }, change] of triggers('frozen')) {
    db.exec(
      `CREATE TRIGGER IF NOT EXISTS ${trigger} BEFORE ${change} ON ${name} BEGIN SELECT RAISE(ABORT, '${FROZEN}'); END`,
    )
  }
}

export function releaseTables(db: DatabaseSync): void {
  for (const [trigger] of triggers('frozen')) db.exec(`DROP TRIGGER IF EXISTS ${trigger}`)
}

export function isFrozen(db: DatabaseSync): boolean {
  return db.prepare("SELECT 1 FROM sqlite_master WHERE type = 'trigger' AND name LIKE 'frozen_%'").get() !== undefined
}

function triggers(kind: 'noted' | 'frozen'): [trigger: string, table: CopyTable, change: Change][] {
  return COPY_TABLES.flatMap((table) =>
    CHANGES.map((change): [string, CopyTable, Change] => [
      `${kind}_${table.name}_${change.toLowerCase()}`,
      table,
      change,
    ]),
  )
}
