// The chunks of a body that arrives. Large ones are kept as they came and joined once, at the end: nothing of a body that never
// arrives is copied. Small ones are copied together: a million chunks of one byte, each with a Buffer object, would take 240 MB.

import type { BodyReservation } from './body-memory.ts'

const BLOCK_BYTES = 16 * 1024
const NONE = Buffer.alloc(0)

export class BodyChunks {
  readonly #reservation: BodyReservation | null
  readonly #chunks: Buffer[] = []
  /** Small chunks go here, up to `#used`. */
  #block: Buffer = NONE
  #used = 0
  /** What the chunks keep in memory. */
  #heldBytes = 0
  size = 0

  constructor(reservation: BodyReservation | null) {
    this.#reservation = reservation
  }

  /** Buffers that are kept. */
  get count(): number {
    return this.#chunks.length + (this.#used > 0 ? 1 : 0)
  }

  /** False if the memory for bodies is in use. */
  add(chunk: Buffer): boolean {
    // Most bodies are one chunk: the first is not copied.
    const isAdded = this.size === 0 || isLarge(chunk) ? this.#keep(chunk) : this.#copy(chunk)
    if (isAdded) this.size += chunk.length
    return isAdded
  }

  #keep(chunk: Buffer): boolean {
    if (!this.#hold(this.size === 0 ? chunk.length : chunk.buffer.byteLength)) return false
    this.#endBlock()
    this.#chunks.push(chunk)
    return true
  }

  #copy(chunk: Buffer): boolean {
    if (this.#used + chunk.length > this.#block.length) {
      const length = Math.max(BLOCK_BYTES, chunk.length)
      if (!this.#hold(length)) return false
      this.#endBlock()
      this.#block = Buffer.allocUnsafeSlow(length)
    }
    this.#used += chunk.copy(this.#block, this.#used)
    return true
  }

  #hold(bytes: number): boolean {
    const total = this.#heldBytes + bytes
    if (this.#reservation && !this.#reservation.growTo(total)) return false
    this.#heldBytes = total
    return true
  }

  #endBlock(): void {
    if (this.#used > 0) this.#chunks.push(this.#block.subarray(0, this.#used))
    this.#block = NONE
    this.#used = 0
  }

  /** So many bytes from the start, no more than arrived. Lets go of the chunks: the request lives until it is answered. */
  take(size: number): Buffer {
    this.#endBlock()
    const chunks = this.#chunks.splice(0)
    const [first = NONE, second] = chunks
    return second ? Buffer.concat(chunks, size) : first.subarray(0, size)
  }
}

/** Not of a much larger buffer, which it would keep in memory. */
function isLarge(chunk: Buffer): boolean {
  return chunk.length >= BLOCK_BYTES && 2 * chunk.length >= chunk.buffer.byteLength
}
