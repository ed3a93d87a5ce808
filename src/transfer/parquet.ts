// An export as Parquet, for analysis: one table, payloads as bytes. Written in row groups, so that memory does not grow with the
// export. Its library is loaded here alone, when it is used.

import type { ColumnSource } from 'hyparquet-writer'
import { type ColumnType, type ColumnValue, TABLE_COLUMNS, type TableRow, tableRow } from './columns.ts'
import { countRow, type ExportHeader, type Tally } from './export-file.ts'
import type { ExportedRow } from './export-row.ts'

const GROUP_ROWS = 20_000
const GROUP_BYTES = 16 * 1024 * 1024

const TYPES = { number: 'INT64', time: 'TIMESTAMP', text: 'STRING', bytes: 'BYTE_ARRAY' } as const

export interface GroupLimits {
  readonly rows: number
  readonly bytes: number
}

export async function* parquetBytes(
  header: ExportHeader,
  rows: AsyncIterable<ExportedRow>,
  tally: Tally,
  limits: GroupLimits = { rows: GROUP_ROWS, bytes: GROUP_BYTES },
): AsyncGenerator<Uint8Array> {
  const { ByteWriter, ParquetWriter, schemaFromColumnData } = await import('hyparquet-writer')
  const writer = new ByteWriter()
  const schema = schemaFromColumnData({ columnData: columnsOf([]) })
  const kvMetadata = Object.entries(header).map(([key, value]) => ({
    key: `intray.${key}`,
    value: JSON.stringify(value),
  }))
  const parquet = new ParquetWriter({ writer, schema, kvMetadata, createdBy: 'intray' })
  /** What was written since the last call. */
  const written = () => {
    const bytes = writer.getBytes().slice()
    writer.index = 0
    return bytes
  }
  for await (const group of groupsOf(rows, tally, limits)) {
    await parquet.write({ columnData: columnsOf(group), rowGroupSize: group.length })
    yield written()
  }
  await parquet.finish()
  yield written()
}

async function* groupsOf(
  rows: AsyncIterable<ExportedRow>,
  tally: Tally,
  limits: GroupLimits,
): AsyncGenerator<readonly TableRow[]> {
  let group: TableRow[] = []
  let bytes = 0
  for await (const row of rows) {
    countRow(tally, row)
    group.push(tableRow(row))
    bytes += row.event.size
    if (group.length < limits.rows && bytes < limits.bytes) continue
    yield group
    group = []
    bytes = 0
  }
  if (group.length > 0) yield group
}

function columnsOf(rows: readonly TableRow[]): ColumnSource[] {
  return TABLE_COLUMNS.map(({ name, type, read }) => ({
    name,
    type: TYPES[type],
    data: rows.map((row) => cellOf(read(row), type)),
  }))
}

function cellOf(value: ColumnValue, type: ColumnType): unknown {
  if (typeof value !== 'number') return value
  return type === 'time' ? new Date(value) : BigInt(value)
}
