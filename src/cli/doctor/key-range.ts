// A range of keys of a table, and its middle. Keys are compared as numbers: the columns beside each other, with as many bits as
// their values have.

import type { Cell, ColumnType, CopyRow, CopyTable, Stretch } from '../../store/contract/copy.ts'

/** The keys after one and up to another: null where the table begins or ends. */
export type KeyRange = Pick<Stretch, 'after' | 'upTo'>

/** Bits of a value: ids, digests of dedupe keys, and 40 characters of ASCII, which every text key of ours is. */
const BITS = { integer: 53, bytes: 128, text: 280 } as const satisfies Record<ColumnType, number>
const CHARACTER = 7

/** A key that divides the range into two smaller ones, the lower including it; null for a range of one key. */
export function middleOf(table: CopyTable, range: KeyRange): CopyRow | null {
  const [first, last] = boundsOf(table, range)
  if (last <= first) return null
  const middle = decode(table, (first + last) >> 1n)
  const found = encode(table, middle)
  return found >= first && found < last ? middle : null
}

/** Whether one key is before the other. */
export function isBefore(table: CopyTable, one: CopyRow, other: CopyRow): boolean {
  return encode(table, one) < encode(table, other)
}

/** The ids of a range, for a table whose key is one; null for other tables. */
export function idsOf(table: CopyTable, range: KeyRange): { readonly first: number; readonly last: number } | null {
  if (table.key.length > 1 || table.columns[table.key[0]!] !== 'integer') return null
  const [first, last] = boundsOf(table, range)
  return { first: Number(first), last: Number(last) }
}

/** For people: `ids 12 to 17`, or the keys around the range. */
export function describeRange(table: CopyTable, range: KeyRange): string {
  const ids = idsOf(table, range)
  if (ids) {
    if (range.upTo === null) return `${table.key[0]} ${ids.first} and above`
    return ids.first === ids.last ? `${table.key[0]} ${ids.first}` : `${table.key[0]} ${ids.first} to ${ids.last}`
  }
  const shown = (key: CopyRow | null, none: string) => (key === null ? none : `(${key.map(shownCell).join(', ')})`)
  return `${table.key.join(', ')} between ${shown(range.after, 'the first')} and ${shown(range.upTo?.key ?? null, 'the last')}`
}

export const shownCell = (cell: Cell): string =>
  cell instanceof Uint8Array ? Buffer.from(cell).toString('hex') : String(cell)

/** In key order, with ranges that touch each other as one. */
export function joined(table: CopyTable, ranges: readonly KeyRange[]): KeyRange[] {
  const all = ranges
    .map((range) => ({ range, bounds: boundsOf(table, range) }))
    .toSorted((a, b) => (a.bounds[0] < b.bounds[0] ? -1 : 1))
  const found: { range: KeyRange; bounds: readonly [bigint, bigint] }[] = []
  for (const one of all) {
    const before = found.at(-1)
    if (!before || one.bounds[0] > before.bounds[1] + 1n) found.push(one)
    else {
      const range = { after: before.range.after, upTo: one.range.upTo }
      found.splice(-1, 1, { range, bounds: [before.bounds[0], one.bounds[1]] })
    }
  }
  return found.map(({ range }) => range)
}

/** The first and the last key that may be in the range. */
function boundsOf(table: CopyTable, { after, upTo }: KeyRange): readonly [bigint, bigint] {
  const first = after === null ? 0n : encode(table, after) + 1n
  if (upTo === null) return [first, (1n << BigInt(bitsOf(table).reduce((sum, bits) => sum + bits, 0))) - 1n]
  return [first, encode(table, upTo.key) - (upTo.isInclusive ? 0n : 1n)]
}

const bitsOf = ({ key, columns }: CopyTable): number[] => key.map((name) => BITS[columns[name]!])

function encode(table: CopyTable, key: CopyRow): bigint {
  return bitsOf(table).reduce((sum, bits, at) => (sum << BigInt(bits)) | codeOf(key[at]!, bits), 0n)
}

function codeOf(cell: Cell, bits: number): bigint {
  if (cell instanceof Uint8Array) {
    const bytes = Buffer.alloc(bits / 8)
    bytes.set(cell.subarray(0, bytes.length))
    return BigInt(`0x${bytes.toString('hex')}`)
  }
  if (typeof cell === 'number') return BigInt(Math.max(0, cell))
  let value = 0n
  for (let at = 0; at < bits / CHARACTER; at++) {
    const code = at < (cell ?? '').length ? Math.min(cell!.charCodeAt(at), 127) : 0
    value = (value << BigInt(CHARACTER)) | BigInt(code)
  }
  return value
}

function decode(table: CopyTable, code: bigint): CopyRow {
  const cells: Cell[] = []
  let rest = code
  for (const [at, bits] of bitsOf(table).entries().toArray().toReversed()) {
    const value = rest & ((1n << BigInt(bits)) - 1n)
    rest >>= BigInt(bits)
    cells.unshift(cellOf(table.columns[table.key[at]!]!, value, bits))
  }
  return cells
}

function cellOf(type: ColumnType, value: bigint, bits: number): Cell {
  if (type === 'integer') return Number(value)
  if (type === 'bytes') return Buffer.from(value.toString(16).padStart(bits / 4, '0'), 'hex')
  let text = ''
  for (let shift = bits - CHARACTER; shift >= 0; shift -= CHARACTER) {
    const character = Number((value >> BigInt(shift)) & 127n)
    // PostgreSQL takes no U+0000; a text ends there.
    if (character === 0) break
    text += String.fromCharCode(character)
  }
  return text
}
