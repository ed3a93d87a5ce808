// Arrays in PostgreSQL's binary form: a batch travels as one array for each column, without escaping, and bytes go as they
// are (as text, a bytea in an array is hexadecimal: twice the size, encoded here and decoded there).
//
//   dimensions int4 · has nulls int4 · element type oid · length int4 · lower bound int4 · { size int4 · bytes }…

const HEADER_BYTES = 20
const TYPES = { boolean: 16, bytea: 17, bigint: 20, text: 25 } as const

export type ElementType = keyof typeof TYPES

export class ArrayWriter {
  #buffer: Buffer
  #at = HEADER_BYTES
  #length = 0
  readonly #type: ElementType
  #lastText: string | null = null
  #lastAt = 0

  constructor(type: ElementType, expectedBytes: number) {
    this.#type = type
    this.#buffer = Buffer.allocUnsafe(HEADER_BYTES + expectedBytes)
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
    this.#lastText = value
    this.#lastAt = this.#at
    this.#reserve(4 + 3 * value.length)
    const written = this.#buffer.write(value, this.#at + 4, 'utf8')
    this.#buffer.writeInt32BE(written, this.#at)
    this.#at += 4 + written
    this.#length += 1
  }

  bytes(value: Uint8Array | null): void {
    if (value === null) {
      this.#null()
      return
    }
    this.#reserve(4 + value.byteLength)
    this.#buffer.writeInt32BE(value.byteLength, this.#at)
    this.#buffer.set(value, this.#at + 4)
    this.#at += 4 + value.byteLength
    this.#length += 1
  }

  /** A whole number that a JavaScript number holds exactly. */
  bigint(value: number | null): void {
    if (value === null) {
      this.#null()
      return
    }
    if (!Number.isSafeInteger(value)) throw new TypeError(`${value} is not a whole number`)
    this.#reserve(12)
    const high = Math.floor(value / 2 ** 32)
    this.#buffer.writeInt32BE(8, this.#at)
    this.#buffer.writeInt32BE(high, this.#at + 4)
    this.#buffer.writeUInt32BE(value - high * 2 ** 32, this.#at + 8)
    this.#at += 12
    this.#length += 1
  }

  boolean(value: boolean): void {
    this.#reserve(5)
    this.#buffer.writeInt32BE(1, this.#at)
    this.#buffer[this.#at + 4] = value ? 1 : 0
    this.#at += 5
    this.#length += 1
  }

  done(): Buffer {
    writeHeader(this.#buffer, TYPES[this.#type], this.#length)
    // An empty array has no dimension to describe.
    return this.#buffer.subarray(0, this.#length === 0 ? 12 : this.#at)
  }

  /** Most columns of a batch say the same in every row. */
  #again(): void {
    const size = 4 + this.#buffer.readInt32BE(this.#lastAt)
    this.#reserve(size)
    this.#buffer.copyWithin(this.#at, this.#lastAt, this.#lastAt + size)
    this.#at += size
    this.#length += 1
  }

  #null(): void {
    this.#reserve(4)
    this.#buffer.writeInt32BE(-1, this.#at)
    this.#at += 4
    this.#length += 1
  }

  #reserve(bytes: number): void {
    if (this.#at + bytes <= this.#buffer.length) return
    const larger = Buffer.allocUnsafe(Math.max(2 * this.#buffer.length, this.#at + bytes))
    this.#buffer.copy(larger, 0, 0, this.#at)
    this.#buffer = larger
  }
}

export function bigints(values: readonly (number | null)[]): Buffer {
  const writer = new ArrayWriter('bigint', 12 * values.length)
  for (const value of values) writer.bigint(value)
  return writer.done()
}

export function texts(values: readonly (string | null)[]): Buffer {
  const writer = new ArrayWriter('text', 32 * values.length)
  for (const value of values) writer.text(value)
  return writer.done()
}

export function byteas(values: readonly (Uint8Array | null)[]): Buffer {
  const writer = new ArrayWriter('bytea', 256 * values.length)
  for (const value of values) writer.bytes(value)
  return writer.done()
}

/**
 * The columns of a batch as parameters, from this number on: of 'bigint text', `unnest($1::bigint[]), unnest($2::text[])`.
 * For the list of a SELECT, where PostgreSQL walks them in step; in FROM it would first copy each into a table of its own.
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
  writeHeader(header, array.readInt32BE(8), to - from)
  return Buffer.concat([header, elements])
}

function writeHeader(buffer: Buffer, oid: number, length: number): void {
  buffer.writeInt32BE(length === 0 ? 0 : 1, 0)
  // Only a hint: the elements tell which of them are null.
  buffer.writeInt32BE(1, 4)
  buffer.writeInt32BE(oid, 8)
  buffer.writeInt32BE(length, 12)
  buffer.writeInt32BE(1, 16)
}
