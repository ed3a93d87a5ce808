// Buffered log sink: collects lines and writes them to a file descriptor in the background, in larger pieces. If the reader
// stalls or goes away, lines are dropped and the service goes on.
//
// Lines are encoded as they arrive, because joining them as text and encoding later takes twice the time.

import { write } from 'node:fs'

const PIECE_BYTES = 65_536
/** Room for the line that fills a piece. */
const MARGIN_BYTES = 8192
const USUAL_BYTES = PIECE_BYTES + MARGIN_BYTES
const FLUSH_EVERY_MS = 250
/** Above this, lines are dropped. */
const MAX_WAITING_BYTES = 16 * 1024 * 1024
const RETRY_MS = 50
/** UTF-8 bytes of one UTF-16 unit, at most. */
const MAX_UNIT_BYTES = 3

export class LineSink {
  readonly #fd: number
  /** Full pieces; `#piece` is being filled. */
  #full: Buffer[] = []
  #fullBytes = 0
  #piece = newPiece()
  #filled = 0
  /** A written piece, for reuse. */
  #spare: Buffer | null = null
  #writing: Promise<void> | null = null
  #writingBytes = 0

  constructor(fd: number) {
    this.#fd = fd
    setInterval(() => this.#begin(), FLUSH_EVERY_MS).unref()
  }

  write(line: string): void {
    const maxBytes = MAX_UNIT_BYTES * line.length
    if (this.#writingBytes + this.#fullBytes + this.#filled + maxBytes > MAX_WAITING_BYTES) return
    if (this.#filled + maxBytes > this.#piece.length) this.#nextPiece(maxBytes)
    this.#filled += this.#piece.write(line, this.#filled)
    if (this.#filled >= PIECE_BYTES) this.#begin()
  }

  /** Resolves when all lines are written, or cannot be. */
  async flush(): Promise<void> {
    while (this.#writing || this.#fullBytes + this.#filled > 0) {
      this.#begin()
      await this.#writing
    }
  }

  #nextPiece(leastBytes: number): void {
    if (this.#filled > 0) {
      this.#full.push(this.#piece.subarray(0, this.#filled))
      this.#fullBytes += this.#filled
    }
    const spare = this.#spare
    this.#spare = null
    this.#piece = spare && spare.length >= leastBytes ? spare : newPiece(leastBytes)
    this.#filled = 0
  }

  #begin(): void {
    if (this.#writing || this.#fullBytes + this.#filled === 0) return
    const last = this.#piece
    this.#nextPiece(0)
    const pieces = this.#full
    this.#full = []
    this.#writingBytes = this.#fullBytes
    this.#fullBytes = 0
    this.#writing = this.#writeAll(pieces).finally(() => {
      if (last.length === USUAL_BYTES) this.#spare = last
      this.#writing = null
      this.#writingBytes = 0
      if (this.#fullBytes > 0) this.#begin()
    })
  }

  async #writeAll(pieces: readonly Buffer[]): Promise<void> {
    for (const piece of pieces) {
      for (let at = 0; at < piece.length; ) {
        try {
          at += await this.#writeSome(piece.subarray(at))
        } catch (error) {
          // A full non-blocking pipe is tried again; after any other error the lines are dropped.
          if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') return
          await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
        }
      }
    }
  }

  #writeSome(bytes: Buffer): Promise<number> {
    return new Promise((resolve, reject) => {
      write(this.#fd, bytes, (error, written) => (error ? reject(error) : resolve(written)))
    })
  }
}

function newPiece(leastBytes = 0): Buffer {
  return Buffer.allocUnsafeSlow(Math.max(USUAL_BYTES, leastBytes))
}
