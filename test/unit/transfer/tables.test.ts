// An export as a table: CSV that a spreadsheet reads and does not run, and Parquet that another library reads back.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parquetMetadata, parquetReadObjects, parquetSchema } from 'hyparquet'
import { TABLE_COLUMNS } from '../../../src/transfer/columns.ts'
import { csvLines, textCell } from '../../../src/transfer/csv.ts'
import { FORMAT_VERSION, Tally } from '../../../src/transfer/export-file.ts'
import { parquetBytes } from '../../../src/transfer/parquet.ts'
import { each, exportedRow } from './exported-row.ts'

const MESSAGE = {
  contact: { name: 'Zoë "Z"', email: '=cmd|calc!A0' },
  message: { type: 'form', text: 'one\r\ntwo; three' },
}
const ODD = Buffer.from([0xff, 0, 10])
const LARGE = 2 ** 53 - 1

const ROWS = [
  exportedRow(1, Buffer.from(JSON.stringify(MESSAGE)), { channelRef: '@c', receivedAt: 1_793_000_000_123 }),
  exportedRow(2, ODD, { kind: 'revision', revises: 1, accountId: LARGE }),
  exportedRow(3, null, { erasedAt: 1_793_000_000_999, sourceRef: null, channelRef: 'erased:0123456789abcdef' }),
  { ...exportedRow(LARGE, Buffer.from('{}')), state: 'pending' as const },
]

/** RFC 4180, after the BOM. */
function parse(text: string): Record<string, string>[] {
  const rows: string[][] = []
  const cell = /(?:"((?:[^"]|"")*)"|([^,\r\n"]*))(,|\r\n)/y
  for (let row: string[] = []; cell.lastIndex < text.length; ) {
    const match = cell.exec(text)
    assert.ok(match, 'the rest is no cell')
    row.push(match[1]?.replaceAll('""', '"') ?? match[2]!)
    if (match[3] !== '\r\n') continue
    rows.push(row)
    row = []
  }
  const [names, ...values] = rows
  return values.map((row) => {
    assert.equal(row.length, names!.length)
    return Object.fromEntries(row.map((value, n) => [names![n]!, value]))
  })
}

test('CSV has a line for each row and a cell for each column, whatever the cells hold', async () => {
  const tally = new Tally()
  const text = (await Array.fromAsync(csvLines(each(ROWS), tally))).join('')
  assert.ok(text.startsWith('\uFEFFid,kind,'))
  const [first, revision, erased, last] = parse(text.slice(1))
  assert.equal(first!.contact_name, 'Zoë "Z"')
  assert.equal(first!.contact_email, "'=cmd|calc!A0")
  assert.equal(first!.channel_ref, "'@c")
  assert.equal(first!.text, 'one\r\ntwo; three')
  assert.deepEqual(JSON.parse(first!.payload!), MESSAGE)
  assert.equal(first!.received_at, '2026-10-26T07:33:20.123Z')
  assert.deepEqual([revision!.kind, revision!.revises, revision!.account_id], ['revision', '1', String(LARGE)])
  assert.deepEqual([erased!.channel_ref, erased!.sha256, erased!.payload], ['', '', ''])
  assert.deepEqual([last!.id, last!.state], [String(LARGE), 'pending'])
  assert.deepEqual([tally.manifest().rows, tally.manifest().erased], [4, 1])
})

test('a cell that a spreadsheet would run gets an apostrophe, and no other', () => {
  for (const text of ['=1+1', '+1', '-1', '@SUM(A1)', '\t=1', '\r=1', '\n=1', '＝1']) {
    assert.match(textCell(text), /^"?'/, JSON.stringify(text))
  }
  for (const text of ['1+1', 'a=b', ' text', '', "'"]) assert.doesNotMatch(textCell(text), /^"?'./, text)
})

async function parquet(rows: typeof ROWS, limits?: { rows: number; bytes: number }) {
  const header = {
    intray_export: FORMAT_VERSION,
    database: 'd',
    exported_at: 't',
    through_id: 9,
    filters: { account: 7 },
  }
  const chunks = await Array.fromAsync(parquetBytes(header, each(rows), new Tally(), limits))
  const { buffer, byteOffset, byteLength } = new Uint8Array(Buffer.concat(chunks))
  return {
    file: buffer.slice(byteOffset, byteOffset + byteLength),
    largest: Math.max(...chunks.map(({ length }) => length)),
  }
}

test('Parquet is read back by its reader with every value, times as times and payloads as bytes', async () => {
  const { file } = await parquet(ROWS)
  const metadata = parquetMetadata(file)
  assert.deepEqual(
    parquetSchema(metadata).children.map(({ element }) => element.name),
    TABLE_COLUMNS.map(({ name }) => name),
  )
  assert.equal(metadata.key_value_metadata?.find(({ key }) => key === 'intray.filters')?.value, '{"account":7}')
  const [first, revision, erased, last] = await parquetReadObjects({ file, utf8: false })
  assert.equal(first!.contact_name, 'Zoë "Z"')
  assert.equal(first!.contact_email, '=cmd|calc!A0', 'nothing runs here')
  assert.deepEqual(first!.received_at, new Date(1_793_000_000_123))
  assert.deepEqual(Buffer.from(revision!.payload as Uint8Array), ODD)
  assert.deepEqual([revision!.account_id, revision!.revises], [BigInt(LARGE), 1n])
  for (const name of ['payload', 'channel_ref', 'sha256']) assert.equal(erased![name] ?? null, null, name)
  assert.deepEqual([last!.id, last!.state], [BigInt(LARGE), 'pending'])
})

test('Parquet is written in groups, so that no part of it grows with the rows', async () => {
  const rows = Array.from({ length: 500 }, (_, n) => exportedRow(n + 1, Buffer.from(`{"n":"${'x'.repeat(900)}${n}"}`)))
  const { file, largest } = await parquet(rows, { rows: 60, bytes: 1e9 })
  assert.equal(parquetMetadata(file).row_groups.length, 9)
  assert.ok(largest < file.byteLength / 3, `${largest} of ${file.byteLength} bytes at once`)
  const byBytes = await parquet(rows, { rows: 1e9, bytes: 10_000 })
  assert.ok(parquetMetadata(byBytes.file).row_groups.length > 40)
  for (const { file: one } of [{ file }, byBytes]) {
    const read = await parquetReadObjects({ file: one, columns: ['id'] })
    assert.deepEqual(
      read.map(({ id }) => Number(id)),
      rows.map(({ event }) => event.id),
    )
  }
})

test('an export without rows is a table without rows', async () => {
  const { file } = await parquet([])
  assert.equal(Number(parquetMetadata(file).num_rows), 0)
  assert.deepEqual(parse((await Array.fromAsync(csvLines(each([]), new Tally()))).join('').slice(1)), [])
})
