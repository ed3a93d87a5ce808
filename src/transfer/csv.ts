// An export as CSV (RFC 4180), for spreadsheets and people. Not exact: bytes that are no UTF-8 are replaced, and a cell that a
// spreadsheet would run as a formula gets an apostrophe before it.

import { isoTime } from '../runtime/clock.ts'
import { type ColumnType, type ColumnValue, TABLE_COLUMNS, tableRow } from './columns.ts'
import { countRow, type Tally } from './export-file.ts'
import type { ExportedRow } from './export-row.ts'

/** Spreadsheets take a file without it for one in their own encoding. */
const BOM = '\uFEFF'

const FORMULA = /^[=+\-@\t\r\n＝＋－＠]/
const NEEDS_QUOTES = /[",;\t\r\n]|^\s|\s$/

export async function* csvLines(rows: AsyncIterable<ExportedRow>, tally: Tally): AsyncGenerator<string> {
  yield `${BOM}${TABLE_COLUMNS.map(({ name }) => name).join(',')}\r\n`
  for await (const row of rows) {
    const table = tableRow(row)
    countRow(tally, row)
    yield `${TABLE_COLUMNS.map(({ type, read }) => cellOf(read(table), type)).join(',')}\r\n`
  }
}

function cellOf(value: ColumnValue, type: ColumnType): string {
  if (value === null) return ''
  if (typeof value === 'number') return type === 'time' ? isoTime(value) : String(value)
  return textCell(typeof value === 'string' ? value : Buffer.from(value).toString())
}

export function textCell(text: string): string {
  const safe = FORMULA.test(text) ? `'${text}` : text
  return NEEDS_QUOTES.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}
