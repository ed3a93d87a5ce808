// Reading around rows that cannot be read: every other row comes once, whatever the kind of its key.

import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { describeRange, idsOf, type KeyRange } from '../../../src/cli/doctor/key-range.ts'
import { readAround } from '../../../src/cli/doctor/read-around.ts'
import { type Cell, type CopyRow, type CopyTable, keyOf, type Stretch } from '../../../src/store/contract/copy.ts'

const IDS: CopyTable = { name: 'rows', key: ['id'], page: 7, columns: { id: 'integer', text: 'text' } }
const DIGESTS: CopyTable = {
  name: 'keys',
  key: ['company_id', 'digest'],
  page: 7,
  columns: { company_id: 'integer', digest: 'bytes' },
}
const TEXTS: CopyTable = { name: 'texts', key: ['id'], page: 7, columns: { id: 'text' } }

function compareCells(a: Cell, b: Cell): number {
  if (a instanceof Uint8Array && b instanceof Uint8Array) return Buffer.compare(a, b)
  return a === b ? 0 : a! < b! ? -1 : 1
}

function compare(a: CopyRow, b: CopyRow): number {
  for (let at = 0; at < a.length; at++) {
    const found = compareCells(a[at]!, b[at]!)
    if (found !== 0) return found
  }
  return 0
}

/** A table of which some rows cannot be read. Counts the reads that met one of them. */
function damagedTable(table: CopyTable, rows: readonly CopyRow[], isDamaged: (row: CopyRow) => boolean) {
  const sorted = rows.toSorted((a, b) => compare(keyOf(table, a), keyOf(table, b)))
  const met = { count: 0 }
  const readStretch = async (_: CopyTable, { after, upTo, isBackwards }: Stretch) => {
    const inside = sorted.filter((row) => {
      const key = keyOf(table, row)
      const limit = upTo ? compare(key, upTo.key) : -1
      return (after === null || compare(key, after) > 0) && (limit < 0 || (limit === 0 && upTo!.isInclusive))
    })
    const found: CopyRow[] = []
    for (const row of isBackwards ? inside.toReversed() : inside) {
      if (found.length === table.page) break
      if (isDamaged(row)) {
        met.count += 1
        return { rows: found, damage: 'malformed' }
      }
      found.push(row)
    }
    return { rows: found, damage: null }
  }
  return { side: { readStretch }, met, readable: sorted.filter((row) => !isDamaged(row)) }
}

async function readAll(table: CopyTable, damaged: ReturnType<typeof damagedTable>, end?: number) {
  const rows: CopyRow[] = []
  const lost: KeyRange[] = []
  const options = { onLost: (range: KeyRange) => lost.push(range), ...(end === undefined ? {} : { end }) }
  for await (const page of readAround(damaged.side, table, options)) rows.push(...page)
  return { rows: rows.toSorted((a, b) => compare(keyOf(table, a), keyOf(table, b))), lost }
}

const numbered = (count: number): CopyRow[] => Array.from({ length: count }, (_, at) => [at + 1, `row ${at + 1}`])

test('without damage every row comes once, and nothing is lost', async () => {
  const table = damagedTable(IDS, numbered(100), () => false)
  const { rows, lost } = await readAll(IDS, table)
  assert.deepEqual(rows, numbered(100))
  assert.deepEqual([lost, table.met.count], [[], 0])
})

test('the ids that cannot be read are named exactly, at the beginning, in the middle and at the end', async () => {
  const bad = new Set([1, 2, 30, 32, 33, 34, 70, 99, 100])
  const table = damagedTable(IDS, numbered(100), ([id]) => bad.has(id as number))
  const { rows, lost } = await readAll(IDS, table, 101)
  assert.deepEqual(rows, table.readable)
  assert.equal(rows.length, 91)
  assert.ok(table.met.count >= bad.size)
  assert.deepEqual(
    lost.map((range) => describeRange(IDS, range)),
    ['id 1 to 2', 'id 30', 'id 32 to 34', 'id 70', 'id 99 to 100'],
  )
  assert.deepEqual(idsOf(IDS, lost[2]!), { first: 32, last: 34 })
})

test('rows between damaged ones are found by keys that are digests, and by keys that are text', async () => {
  const digests = Array.from({ length: 400 }, (_, at): CopyRow => [1 + (at % 3), randomBytes(16)])
  const texts = Array.from({ length: 200 }, (): CopyRow => [randomBytes(8).toString('hex')])
  for (const [table, all] of [
    [DIGESTS, digests],
    [TEXTS, texts],
  ] as const) {
    const bad = new Set(all.filter((_, at) => at % 40 === 0))
    const damaged = damagedTable(table, all, (row) => bad.has(row))
    const { rows, lost } = await readAll(table, damaged)
    assert.deepEqual(rows, damaged.readable)
    assert.equal(rows.length, all.length - bad.size)
    assert.ok(lost.length > 0 && lost.length <= bad.size)
  }
})

test('a table of which nothing can be read ends after a bounded number of reads', async () => {
  const table = damagedTable(DIGESTS, [[1, Buffer.alloc(16, 1)]], () => true)
  const readStretch = async () => {
    table.met.count += 1
    return { rows: [], damage: 'malformed' }
  }
  const { rows, lost } = await readAll(DIGESTS, { ...table, side: { readStretch } })
  assert.deepEqual(rows, [])
  assert.equal(lost.length, 1)
  assert.ok(table.met.count <= 20_010, String(table.met.count))
})

test('a page in the place of another one is named as lost, and is not read again and again', async () => {
  const numbers = (first: number) => Array.from({ length: 7 }, (_, at): CopyRow => [first + at, 'text'])
  // The third page was overwritten with the first one.
  const found = [1, 8, 1, 22].flatMap(numbers)
  let reads = 0
  const readStretch = async (_: CopyTable, { after, upTo, isBackwards }: Stretch) => {
    reads += 1
    assert.ok(reads < 100, 'bounded')
    // As a database does: it looks for the first row by the pages' own order, and ends with the first one outside.
    const page = (row: number) => Math.floor(row / 7)
    const isInside = ([id]: CopyRow) => upTo === null || Number(id) < Number(upTo.key[0])
    if (isBackwards) {
      const rows = found.filter((row, at) => page(at) === 3 && isInside(row)).toReversed()
      return { rows, damage: null }
    }
    const from = after === null ? 0 : Math.floor((Number(after[0]) - 1) / 7) * 7 + 7
    return { rows: found.slice(from, from + 7).filter(isInside), damage: null }
  }
  const lost: string[] = []
  const ids: unknown[] = []
  const options = { end: 29, onLost: (range: KeyRange) => lost.push(describeRange(IDS, range)) }
  for await (const page of readAround({ readStretch }, IDS, options)) ids.push(...page.map(([id]) => id))
  assert.deepEqual(
    ids.toSorted((a, b) => Number(a) - Number(b)),
    [...numbers(1), ...numbers(8), ...numbers(22)].map(([id]) => id),
  )
  assert.deepEqual(lost, ['id 15 to 21'])
})
