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

import { ArrayWriter, type ElementType, Room } from './binary-array.ts'

const FIRST_BYTES = 64 * 1024
const BIND = 0x42
const LENGTH_AT = 1
const EXECUTE_AND_SYNC = Buffer.from([0x45, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0x53, 0, 0, 0, 4])

export class BindMessage {
  readonly #room = new Room(FIRST_BYTES)
  /** Start and end of each parameter. */
  readonly #places: { readonly from: number; readonly to: number }[] = []
  #countAt = 0
  /** A try failed: part of the message may still be in flight on a connection, so it must not be rewritten. */
  isSpoiled = false

  /** Starts a new message in the buffer. */
  begin(statement: string): void {
    if (this.isSpoiled) throw new Error('this message may still be on its way')
    const room = this.#room
    this.#places.length = 0
    room.at = LENGTH_AT + 4
    room.reserve(2 + 3 * statement.length + 6)
    room.buffer[0] = BIND
    room.at = room.buffer.writeUInt8(0, room.at)
    room.at += room.buffer.write(statement, room.at, 'utf8')
    room.at = room.buffer.writeUInt8(0, room.at)
    room.at = room.buffer.writeInt16BE(1, room.at)
    room.at = room.buffer.writeInt16BE(1, room.at)
    this.#countAt = room.at
    room.at += 2
  }

  /** The next parameter: an array. */
  array(type: ElementType, fill: (writer: ArrayWriter) => void): void {
    this.#next(() => {
      const writer = new ArrayWriter(type, this.#room)
      fill(writer)
      writer.done()
    })
  }

  /** The next parameter: already in binary format. */
  value(bytes: Uint8Array): void {
    this.#next((room) => {
      room.reserve(bytes.byteLength)
      room.buffer.set(bytes, room.at)
      room.at += bytes.byteLength
    })
  }

  end(): void {
    const room = this.#room
    room.reserve(4 + EXECUTE_AND_SYNC.length)
    room.buffer.writeInt16BE(this.#places.length, this.#countAt)
    room.at = room.buffer.writeInt16BE(1, room.at)
    room.at = room.buffer.writeInt16BE(0, room.at)
    room.buffer.writeInt32BE(room.at - LENGTH_AT, LENGTH_AT)
    room.buffer.set(EXECUTE_AND_SYNC, room.at)
    room.at += EXECUTE_AND_SYNC.length
  }

  get bytes(): Buffer {
    return this.#room.buffer.subarray(0, this.#room.at)
  }

  get parameters(): Buffer[] {
    return this.#places.map(({ from, to }) => this.#room.buffer.subarray(from, to))
  }

  /** Allocated bytes, whatever is in use. */
  get capacity(): number {
    return this.#room.buffer.length
  }

  #next(write: (room: Room) => void): void {
    const room = this.#room
    room.reserve(4)
    room.at += 4
    const from = room.at
    write(room)
    room.buffer.writeInt32BE(room.at - from, from - 4)
    this.#places.push({ from, to: room.at })
  }
}
