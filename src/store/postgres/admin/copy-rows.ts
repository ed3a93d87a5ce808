// Rows of the copied tables on PostgreSQL, read and written by their keys.

import {
  type CopyRow,
  type CopyTable,
  keyOf,
  ownKey,
  type ReadRange,
  type RowCount,
  type Stretch,
  type StretchRows,
  upToId,
} from '../../contract/copy.ts'
import { COPY_PAGE_BYTES } from '../../copy-tables.ts'
import { bigints, packColumns, unnestedColumns } from '../connection/binary-array.ts'
import type { Connection, Value } from '../connection/connection.ts'
import { storeFailure } from '../connection/failure.ts'
import { readNoting } from './copy-triggers.ts'

/** Beyond this many rows a count for progress is the planner's estimate. */
const COUNTED = 1_000_000
/** What one statement counts well before its timeout. */
const COUNTED_EXACTLY = 50_000_000
/** Rows of one read beside damaged ones. */
const PROBED_ROWS = 256

/** How a column is read and written where the two databases use different types. */
const READ_AS: Record<string, string> = { 'tokens.is_active': 'is_active::int::bigint' }
const WRITE_AS: Record<string, string> = { 'tokens.is_active': 'k.is_active <> 0' }

/** Of one tenant or some values, or of all. */
type Part = Stretch & Pick<ReadRange, 'tenant' | 'of'>

export async function readPage(
  connection: Connection,
  table: CopyTable,
  after: CopyRow | null,
  { upTo, tenant, of }: ReadRange,
): Promise<CopyRow[]> {
  const part: Part = { after, upTo: upToId(upTo), isBackwards: false, ...(tenant && { tenant }), ...(of && { of }) }
  return readRows(connection, table, part, await pageSize(connection, table, part))
}

/** A statement that meets a damaged page gives no row at all: it is repeated for fewer of them. */
export async function readUpToDamage(connection: Connection, table: CopyTable, stretch: Stretch): Promise<StretchRows> {
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
}

/** What is left of a stretch after these rows. */
function restOf(table: CopyTable, stretch: Stretch, rows: readonly CopyRow[]): Stretch {
  const last = rows.at(-1)
  if (!last) return stretch
  const key = keyOf(table, last)
  return stretch.isBackwards ? { ...stretch, upTo: { key, isInclusive: false } } : { ...stretch, after: key }
}

function rangeOf(table: CopyTable, { after, upTo, isBackwards, tenant, of }: Part) {
  const own = ownKey(table, tenant)
  const key = own.join(', ')
  const values: Value[] = []
  const places = (row: CopyRow) =>
    own.map((column) => `$${values.push(row[table.key.indexOf(column)] as Value)}`).join(', ')
  const conditions = [
    ...(after ? [`(${key}) > (${places(after)})`] : []),
    ...(upTo ? [`(${key}) ${upTo.isInclusive ? '<=' : '<'} (${places(upTo.key)})`] : []),
    ...(tenant ? [`company_id = ${tenant.companyId}`] : []),
    ...(tenant && 'account_id' in table.columns ? [`account_id = ${tenant.accountId}`] : []),
  ]
  const from = of ? lookedUp(table, of.column, `$${values.push(bigints(of.values))}`) : `intray.${table.name}`
  const order = own.map((name) => (isBackwards ? `${name} DESC` : name)).join(', ')
  return { sql: `FROM ${from} WHERE ${conditions.join(' AND ') || 'true'} ORDER BY ${order}`, values }
}

function readRows(connection: Connection, table: CopyTable, stretch: Part, limit: number): Promise<CopyRow[]> {
  const { sql, values } = rangeOf(table, stretch)
  return connection.rows(`SELECT ${readColumns(table)} ${sql} LIMIT ${limit}`, values)
}

/** Each value is looked up in the index, however few rows the planner takes the table to have. */
function lookedUp(table: CopyTable, column: string, values: string): string {
  return `(SELECT found.* FROM unnest(${values}::bigint[]) AS k (value)
    CROSS JOIN LATERAL (SELECT * FROM intray.${table.name} WHERE ${column} = k.value OFFSET 0) AS found) AS found`
}

/** The limit makes the planner look each key up in the index, however few rows it takes the table to have. */
export async function findRows(
  connection: Connection,
  table: CopyTable,
  keys: readonly CopyRow[],
): Promise<(CopyRow | null)[]> {
  if (keys.length === 0) return []
  const rows = await connection.rows<CopyRow>(
    `SELECT found.* FROM (SELECT ${keyArrays(table)}) AS k (${keyNames(table)})
    CROSS JOIN LATERAL (SELECT ${readColumns(table)} FROM intray.${table.name} WHERE ${isKey(table)} LIMIT 1) found`,
    packColumns(keyTypes(table), keys),
  )
  const byKey = new Map(rows.map((row) => [textOf(keyOf(table, row)), row]))
  return keys.map((key) => byKey.get(textOf(key)) ?? null)
}

export async function countRoughly(connection: Connection, table: CopyTable): Promise<number> {
  const rows = await estimate(connection, table)
  if (rows > COUNTED) return rows
  const [row] = await connection.query<{ count: number }>(`SELECT count(*) AS count FROM intray.${table.name}`)
  return row!.count
}

export async function countExactly(
  connection: Connection,
  table: CopyTable,
  upTo: number | undefined,
): Promise<RowCount | null> {
  if ((await estimate(connection, table)) > COUNTED_EXACTLY) return null
  const isUpTo = upTo === undefined ? '' : `AND (key ->> 0)::bigint <= ${upTo}`
  const noted = (await readNoting(connection))
    ? `(SELECT coalesce(sum(rows), 0)::bigint FROM intray.copy_changes WHERE name = '${table.name}' ${isUpTo})`
    : '0'
  const where = upTo === undefined ? '' : `WHERE id <= ${upTo}`
  const [row] = await connection.query<RowCount & Record<string, never>>(
    `SELECT count(*) AS rows, ${noted} AS noted FROM intray.${table.name} ${where}`,
  )
  return row!
}

const NOTE_PURGES = `INSERT INTO intray.purges (company_id, account_id, event_id)
  SELECT company_id, account_id, id FROM intray.events WHERE id = ANY ($1::bigint[])`

const columnsOf = (table: CopyTable): string => Object.keys(table.columns).join(', ')
const readColumns = (table: CopyTable): string =>
  Object.keys(table.columns)
    .map((name) => (READ_AS[`${table.name}.${name}`] ? `${READ_AS[`${table.name}.${name}`]} AS ${name}` : name))
    .join(', ')
const keyTypes = (table: CopyTable) => table.key.map((column) => table.columns[column]!)
const keyArrays = (table: CopyTable): string => unnestedColumns(keyTypes(table))
const isKey = (table: CopyTable): string => table.key.map((column, n) => `${column} = k.k${n}`).join(' AND ')
const keyNames = (table: CopyTable): string => table.key.map((_, n) => `k${n}`).join(', ')
const textOf = (key: CopyRow): string =>
  JSON.stringify(key.map((cell) => (cell instanceof Uint8Array ? Buffer.from(cell).toString('hex') : cell)))

async function estimate(connection: Connection, { name }: CopyTable): Promise<number> {
  const [row] = await connection.query<{ rows: number }>(
    `SELECT reltuples::bigint AS rows FROM pg_class WHERE oid = 'intray.${name}'::regclass`,
  )
  return row!.rows
}

export async function insertRows(connection: Connection, table: CopyTable, rows: readonly CopyRow[]): Promise<void> {
  if (rows.length === 0) return
  const types = Object.values(table.columns)
  const values = Object.keys(table.columns).map((name) => WRITE_AS[`${table.name}.${name}`] ?? `k.${name}`)
  await connection.execute(
    `INSERT INTO intray.${table.name} (${columnsOf(table)})
    SELECT ${values.join(', ')} FROM (SELECT ${unnestedColumns(types)}) AS k (${columnsOf(table)})`,
    packColumns(types, rows),
  )
}

/** Returns how many there were. */
export async function removeKeys(connection: Connection, table: CopyTable, keys: readonly CopyRow[]): Promise<number> {
  if (keys.length === 0) return 0
  return connection.execute(
    `DELETE FROM intray.${table.name} WHERE ctid = ANY (ARRAY(
      SELECT found.ctid FROM (SELECT ${keyArrays(table)}) AS k (${keyNames(table)})
      CROSS JOIN LATERAL (SELECT ctid FROM intray.${table.name} WHERE ${isKey(table)} LIMIT 1) found))`,
    packColumns(keyTypes(table), keys),
  )
}

/** Lets the index know which events are removed, as retention does. */
export async function notePurges(connection: Connection, ids: readonly number[]): Promise<void> {
  if (ids.length > 0) await connection.query(NOTE_PURGES, [bigints(ids)])
}

/** Rows per page by payload size; tables without a `size` column have small pages. */
async function pageSize(connection: Connection, table: CopyTable, stretch: Part): Promise<number> {
  if (!('size' in table.columns)) return table.page
  const { sql, values } = rangeOf(table, stretch)
  const sizes = await connection.query<{ size: number }>(`SELECT size ${sql} LIMIT ${table.page}`, values)
  let bytes = 0
  const full = sizes.findIndex(({ size }) => (bytes += size) >= COPY_PAGE_BYTES)
  return full === -1 ? table.page : full + 1
}

export async function removeRows(connection: Connection, table: CopyTable, rows: readonly CopyRow[]): Promise<void> {
  await removeKeys(
    connection,
    table,
    rows.map((row) => keyOf(table, row)),
  )
}
