// Where log lines wait: they are collected and written to a file descriptor in the background, in larger pieces. A reader
// that stalls or goes away costs lines, never the service.
//
// Written by hand, because pino's own destination measures all that is waiting anew for each line: 7 of 65 µs a request. Each line
// becomes bytes as it comes, while it is at hand: put together as text and turned into bytes later, it takes twice the time.

import { write } from 'node:fs'

const PIECE_BYTES = 65_536
/** What a piece has beyond that: room for the line that fills it. */
const MARGIN_BYTES = 8192
const USUAL_BYTES = PIECE_BYTES + MARGIN_BYTES
const FLUSH_EVERY_MS = 250
/** Lines that would wait beyond this for a stalled reader are dropped. */
const MAX_WAITING_BYTES = 16 * 1024 * 1024
const RETRY_MS = 50
/** Of a unit of text in UTF-8. */
const MOST_BYTES = 3

export class LineSink {
  readonly #fd: number
  /** Pieces that are full, and the one that is being filled. */
  #full: Buffer[] = []
  #fullBytes = 0
  #piece = newPiece()
  #filled = 0
  /** One that was written, to be filled again. */
  #spare: Buffer | null = null
  #writing: Promise<void> | null = null
  #writingBytes = 0

  constructor(fd: number) {
    this.#fd = fd
    setInterval(() => this.#begin(), FLUSH_EVERY_MS).unref()
  }

  write(line: string): void {
    const mostBytes = MOST_BYTES * line.length
    if (this.#writingBytes + this.#fullBytes + this.#filled + mostBytes > MAX_WAITING_BYTES) return
    if (this.#filled + mostBytes > this.#piece.length) this.#nextPiece(mostBytes)
    this.#filled += this.#piece.write(line, this.#filled)
    if (this.#filled >= PIECE_BYTES) this.#begin()
  }

  /** Resolves when all that was waiting is written, or can never be. */
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
          // A full pipe that does not block is tried again; any other reader is gone, and its lines with it.
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
