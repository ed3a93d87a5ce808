// Rows of the copied tables on SQLite, read and written by their keys.

import type { DatabaseSync } from 'node:sqlite'
import {
  type Cell,
  type CopyRow,
  type CopyTable,
  keyOf,
  ownKey,
  type ReadRange,
  type Stretch,
  type StretchRows,
  upToId,
} from '../../contract/copy.ts'
import { isDamage } from '../connection.ts'
import { COPY_PAGE_BYTES } from '../../copy-tables.ts'

const NOTE_PURGE = `INSERT INTO purges (company_id, account_id, event_id)
  SELECT company_id, account_id, id FROM events WHERE id = ?`

const columnsOf = (table: CopyTable): string => Object.keys(table.columns).join(', ')
const isKey = (table: CopyTable): string => table.key.map((column) => `${column} = ?`).join(' AND ')

export function readPage(
  db: DatabaseSync,
  table: CopyTable,
  after: CopyRow | null,
  { upTo, tenant, of }: ReadRange,
): CopyRow[] {
  const part: Part = { after, upTo: upToId(upTo), isBackwards: false, ...(tenant && { tenant }), ...(of && { of }) }
  return Array.from(rowsOf(db, table, part))
}

export function readUpToDamage(db: DatabaseSync, table: CopyTable, stretch: Stretch): StretchRows {
  const rows: CopyRow[] = []
  try {
    for (const row of rowsOf(db, table, stretch)) rows.push(row)
    return { rows, damage: null }
  } catch (error) {
    if (!isDamage(error)) throw error
    return { rows, damage: (error as Error).message }
  }
}

/** Of one tenant or some values, or of all. */
type Part = Stretch & Pick<ReadRange, 'tenant' | 'of'>

/** The first page of a part. */
function* rowsOf(
  db: DatabaseSync,
  table: CopyTable,
  { after, upTo, isBackwards, tenant, of }: Part,
): Generator<CopyRow> {
  const own = ownKey(table, tenant)
  const key = own.join(', ')
  const places = own.map(() => '?').join(', ')
  const ownOf = (row: CopyRow) => own.map((column) => row[table.key.indexOf(column)]!)
  const conditions: [sql: string, values: readonly Cell[]][] = []
  if (after) conditions.push([`(${key}) > (${places})`, ownOf(after)])
  if (upTo) conditions.push([`(${key}) ${upTo.isInclusive ? '<=' : '<'} (${places})`, ownOf(upTo.key)])
  if (tenant) conditions.push(['company_id = ?', [tenant.companyId]])
  if (tenant && 'account_id' in table.columns) conditions.push(['account_id = ?', [tenant.accountId]])
  if (of) conditions.push([`${of.column} IN (SELECT value FROM json_each(?))`, [JSON.stringify(of.values)]])
  const where = conditions.length > 0 ? `WHERE ${conditions.map(([sql]) => sql).join(' AND ')}` : ''
  const order = own.map((name) => (isBackwards ? `${name} DESC` : name)).join(', ')
  const statement = db.prepare(`SELECT ${columnsOf(table)} FROM ${table.name} ${where} ORDER BY ${order} LIMIT ? + 0`)
  statement.setReturnArrays(true)
  let bytes = 0
  for (const found of statement.iterate(...conditions.flatMap(([, values]) => values), table.page)) {
    const row = found as unknown as CopyRow
    yield row
    for (const cell of row) if (cell instanceof Uint8Array) bytes += cell.byteLength
    if (bytes >= COPY_PAGE_BYTES) return
  }
}

export function findRows(db: DatabaseSync, table: CopyTable, keys: readonly CopyRow[]): (CopyRow | null)[] {
  const statement = db.prepare(`SELECT ${columnsOf(table)} FROM ${table.name} WHERE ${isKey(table)}`)
  statement.setReturnArrays(true)
  return keys.map((key) => (statement.get(...(key as Cell[])) as unknown as CopyRow | undefined) ?? null)
}

export function insertRows(db: DatabaseSync, table: CopyTable, rows: readonly CopyRow[]): void {
  const places = Object.keys(table.columns).map(() => '?')
  const insert = db.prepare(`INSERT INTO ${table.name} (${columnsOf(table)}) VALUES (${places.join(', ')})`)
  for (const row of rows) insert.run(...(row as Cell[]))
}

/** Returns how many there were. */
export function removeKeys(db: DatabaseSync, table: CopyTable, keys: readonly CopyRow[]): number {
  const remove = db.prepare(`DELETE FROM ${table.name} WHERE ${isKey(table)}`)
  return keys.reduce((count, key) => count + Number(remove.run(...(key as Cell[])).changes), 0)
}

/** Lets the index know which events are removed, as retention does. */
export function notePurges(db: DatabaseSync, ids: readonly number[]): void {
  const note = db.prepare(NOTE_PURGE)
  for (const id of ids) note.run(id)
}

export function removeRows(db: DatabaseSync, table: CopyTable, rows: readonly CopyRow[]): void {
  removeKeys(
    db,
    table,
    rows.map((row) => keyOf(table, row)),
  )
}
