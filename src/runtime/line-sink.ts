// Where log lines wait: they are collected and written to a file descriptor in the background, in larger pieces. A reader
// that stalls or goes away costs lines, never the service.
//
// Written by hand, because pino's own destination measures all that is waiting anew for each line: 7 of 65 µs a request.

import { write } from 'node:fs'

const PIECE_UNITS = 65_536
const FLUSH_EVERY_MS = 250
/** Lines that would wait beyond this for a stalled reader are dropped. */
const MAX_WAITING_UNITS = 16 * 1024 * 1024
const RETRY_MS = 50

export class LineSink {
  readonly #fd: number
  #waiting = ''
  #writing: Promise<void> | null = null

  constructor(fd: number) {
    this.#fd = fd
    setInterval(() => this.#begin(), FLUSH_EVERY_MS).unref()
  }

  write(line: string): void {
    if (this.#waiting.length + line.length > MAX_WAITING_UNITS) return
    this.#waiting += line
    if (this.#waiting.length >= PIECE_UNITS) this.#begin()
  }

  /** Resolves when all that was waiting is written, or can never be. */
  async flush(): Promise<void> {
    while (this.#writing || this.#waiting !== '') {
      this.#begin()
      await this.#writing
    }
  }

  #begin(): void {
    if (this.#writing || this.#waiting === '') return
    const piece = Buffer.from(this.#waiting)
    this.#waiting = ''
    this.#writing = this.#writeAll(piece).finally(() => {
      this.#writing = null
    })
  }

  async #writeAll(piece: Buffer): Promise<void> {
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

  #writeSome(bytes: Buffer): Promise<number> {
    return new Promise((resolve, reject) => {
      write(this.#fd, bytes, (error, written) => (error ? reject(error) : resolve(written)))
    })
  }
}
