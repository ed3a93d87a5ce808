// Arrays in PostgreSQL's binary format: a batch is sent as one array per column, without escaping, and bytes as they
// are (in text format a bytea is hexadecimal: twice the size, encoded here and decoded there).
//
//   dimensions int4 · has nulls int4 · element type oid · length int4 · lower bound int4 · { size int4 · bytes }…

import type { Cell, ColumnType } from '../../contract/copy.ts'

const HEADER_BYTES = 20
const TYPES = { bytea: 17, bigint: 20, text: 25 } as const

export type ElementType = keyof typeof TYPES

/** A buffer that is written from start to end and reallocated when full. */
export class GrowableBuffer {
  buffer: Buffer
  at = 0

  constructor(expectedBytes: number) {
    this.buffer = Buffer.allocUnsafe(expectedBytes)
  }

  reserve(bytes: number): void {
    if (this.at + bytes <= this.buffer.length) return
    const needed = this.at + bytes
    // A large buffer gets little spare room: the data after a large value is small.
    const larger = Buffer.allocUnsafe(Math.max(2 * this.buffer.length, needed + (needed >> 4)))
    this.buffer.copy(larger, 0, 0, this.at)
    this.buffer = larger
  }
}

export class ArrayWriter {
  readonly #out: GrowableBuffer
  readonly #from: number
  #length = 0
  readonly #type: ElementType
  #lastText: string | null = null
  #lastAt = 0

  constructor(type: ElementType, out: GrowableBuffer) {
    this.#type = type
    this.#out = out
    this.#from = out.at
    out.reserve(HEADER_BYTES)
    out.at += HEADER_BYTES
  }

  text(value: string | null): void {
    if (value === null) {
      this.#null()
      return
    }
    if (value === this.#lastText) {
      this.#again()
      return
    }
    const out = this.#out
    this.#lastText = value
    this.#lastAt = out.at
    out.reserve(4 + 3 * value.length)
    const written = out.buffer.write(value, out.at + 4, 'utf8')
    out.buffer.writeInt32BE(written, out.at)
    out.at += 4 + written
    this.#length += 1
  }

  bytes(value: Uint8Array | null): void {
    if (value === null) {
      this.#null()
      return
    }
    const out = this.#out
    out.reserve(4 + value.byteLength)
    out.buffer.writeInt32BE(value.byteLength, out.at)
    out.buffer.set(value, out.at + 4)
    out.at += 4 + value.byteLength
    this.#length += 1
  }

  /** A whole number that a JavaScript number holds exactly. */
  bigint(value: number | null): void {
    if (value === null) {
      this.#null()
      return
    }
    if (!Number.isSafeInteger(value)) throw new TypeError(`${value} is not a whole number`)
    const out = this.#out
    out.reserve(12)
    const high = Math.floor(value / 2 ** 32)
    out.buffer.writeInt32BE(8, out.at)
    out.buffer.writeInt32BE(high, out.at + 4)
    out.buffer.writeUInt32BE(value - high * 2 ** 32, out.at + 8)
    out.at += 12
    this.#length += 1
  }

  done(): Buffer {
    const out = this.#out
    writeHeader(out.buffer, this.#from, TYPES[this.#type], this.#length)
    // An empty array has no dimension to describe.
    if (this.#length === 0) out.at = this.#from + 12
    return out.buffer.subarray(this.#from, out.at)
  }

  /** Most columns of a batch repeat the previous row's value. */
  #again(): void {
    const out = this.#out
    const size = 4 + out.buffer.readInt32BE(this.#lastAt)
    out.reserve(size)
    out.buffer.copyWithin(out.at, this.#lastAt, this.#lastAt + size)
    out.at += size
    this.#length += 1
  }

  #null(): void {
    const out = this.#out
    out.reserve(4)
    out.buffer.writeInt32BE(-1, out.at)
    out.at += 4
    this.#length += 1
  }
}

export function bigints(values: readonly (number | null)[]): Buffer {
  const writer = new ArrayWriter('bigint', new GrowableBuffer(HEADER_BYTES + 12 * values.length))
  for (const value of values) writer.bigint(value)
  return writer.done()
}

export function texts(values: readonly (string | null)[]): Buffer {
  const writer = new ArrayWriter('text', new GrowableBuffer(HEADER_BYTES + 32 * values.length))
  for (const value of values) writer.text(value)
  return writer.done()
}

export function byteas(values: readonly (Uint8Array | null)[]): Buffer {
  const writer = new ArrayWriter('bytea', new GrowableBuffer(HEADER_BYTES + 256 * values.length))
  for (const value of values) writer.bytes(value)
  return writer.done()
}

const COLUMN_TYPES = { integer: 'bigint', text: 'text', bytes: 'bytea' } as const
const PACK = { integer: bigints, text: texts, bytes: byteas } as const

/** Rows as one array for each column. */
export function packColumns(types: readonly ColumnType[], rows: readonly (readonly Cell[])[]): Buffer[] {
  return types.map((type, n) => PACK[type](rows.map((row) => row[n]) as never[]))
}

/** The SQL for the parameters of `packColumns`. */
export function unnestedColumns(types: readonly ColumnType[]): string {
  return unnested(types.map((type) => COLUMN_TYPES[type]).join(' '))
}

/**
 * The columns of a batch as parameters, from this number on: for 'bigint text', `unnest($1::bigint[]),
 * unnest($2::text[])`. For a SELECT list, where PostgreSQL walks them in step; in FROM it would first copy each array
 * into a table.
 */
export function unnested(types: string, from = 1): string {
  return types
    .split(' ')
    .map((type, n) => `unnest($${from + n}::${type}[])`)
    .join(', ')
}

/** The elements from `from` to before `to`, as an array of their own. */
export function sliceArray(array: Buffer, from: number, to: number): Buffer {
  let at = HEADER_BYTES
  const skip = (count: number): number => {
    for (let n = 0; n < count; n++) at += 4 + Math.max(0, array.readInt32BE(at))
    return at
  }
  const elements = array.subarray(skip(from), skip(to - from))
  const header = Buffer.alloc(HEADER_BYTES)
  writeHeader(header, 0, array.readInt32BE(8), to - from)
  return Buffer.concat([header, elements])
}

function writeHeader(buffer: Buffer, at: number, oid: number, length: number): void {
  buffer.writeInt32BE(length === 0 ? 0 : 1, at)
  // Only a hint: the size of an element tells whether it is null.
  buffer.writeInt32BE(1, at + 4)
  buffer.writeInt32BE(oid, at + 8)
  buffer.writeInt32BE(length, at + 12)
  buffer.writeInt32BE(1, at + 16)
}
