// A Bind message of PostgreSQL's protocol, followed by Execute and Sync, in one reusable buffer.
//
// `pg` would copy each parameter into a new buffer per statement and grow it step by step. For a batch of messages that
// is three times its bytes, and so much memory outside of the heap that V8 collected the whole heap five times a
// second.
//
//   'B' · length int4 · portal "" · statement · formats int2 1 · binary int2 1 · count int2 · { size int4 · bytes }… · int2 1 · text int2 0
//   'E' · length int4 · portal "" · all rows int4 0
//   'S' · length int4
//
// Promises: the bytes stay unchanged until the next write, which is refused after a failed try.

import { ArrayWriter, type ElementType, GrowableBuffer } from './binary-array.ts'

const FIRST_BYTES = 64 * 1024
const BIND = 0x42
const LENGTH_AT = 1
const EXECUTE_AND_SYNC = Buffer.from([0x45, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0x53, 0, 0, 0, 4])

export class BindMessage {
  readonly #out = new GrowableBuffer(FIRST_BYTES)
  /** Start and end of each parameter. */
  readonly #ranges: { readonly from: number; readonly to: number }[] = []
  #countAt = 0
  /** A try failed: part of the message may still be in flight on a connection, so it must not be rewritten. */
  mayBeInFlight = false

  /** Starts a new message in the buffer. */
  begin(statement: string): void {
    if (this.mayBeInFlight) throw new Error('this message may still be in flight')
    const out = this.#out
    this.#ranges.length = 0
    out.at = LENGTH_AT + 4
    out.reserve(2 + 3 * statement.length + 6)
    out.buffer[0] = BIND
    out.at = out.buffer.writeUInt8(0, out.at)
    out.at += out.buffer.write(statement, out.at, 'utf8')
    out.at = out.buffer.writeUInt8(0, out.at)
    out.at = out.buffer.writeInt16BE(1, out.at)
    out.at = out.buffer.writeInt16BE(1, out.at)
    this.#countAt = out.at
    out.at += 2
  }

  /** The next parameter: an array. */
  array(type: ElementType, fill: (writer: ArrayWriter) => void): void {
    this.#next(() => {
      const writer = new ArrayWriter(type, this.#out)
      fill(writer)
      writer.done()
    })
  }

  /** The next parameter: already in binary format. */
  value(bytes: Uint8Array): void {
    this.#next((out) => {
      out.reserve(bytes.byteLength)
      out.buffer.set(bytes, out.at)
      out.at += bytes.byteLength
    })
  }

  end(): void {
    const out = this.#out
    out.reserve(4 + EXECUTE_AND_SYNC.length)
    out.buffer.writeInt16BE(this.#ranges.length, this.#countAt)
    out.at = out.buffer.writeInt16BE(1, out.at)
    out.at = out.buffer.writeInt16BE(0, out.at)
    out.buffer.writeInt32BE(out.at - LENGTH_AT, LENGTH_AT)
    out.buffer.set(EXECUTE_AND_SYNC, out.at)
    out.at += EXECUTE_AND_SYNC.length
  }

  get bytes(): Buffer {
    return this.#out.buffer.subarray(0, this.#out.at)
  }

  get parameters(): Buffer[] {
    return this.#ranges.map(({ from, to }) => this.#out.buffer.subarray(from, to))
  }

  /** Allocated bytes, whatever is in use. */
  get capacity(): number {
    return this.#out.buffer.length
  }

  #next(write: (out: GrowableBuffer) => void): void {
    const out = this.#out
    out.reserve(4)
    out.at += 4
    const from = out.at
    write(out)
    out.buffer.writeInt32BE(out.at - from, from - 4)
    this.#ranges.push({ from, to: out.at })
  }
}
