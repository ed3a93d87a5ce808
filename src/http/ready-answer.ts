// An answer that is made once and sent many times: its bytes, their gzip form and their ETag. A client that has the bytes gets
// 304. Compressed off the main thread, when the first client takes gzip.

import { createHash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { promisify } from 'node:util'
import { constants, gzip } from 'node:zlib'
import type { Answer } from './problem.ts'

const COMPRESS_FROM_BYTES = 1024
const gzipAsync = promisify(gzip)
const TAKES_GZIP = /(^|,)\s*gzip\s*(;\s*q=(?!0(\.0*)?\s*(,|$))|,|$)/i

export type Headers = Readonly<Record<string, string>>

export class ReadyAnswer {
  readonly #headers: Headers
  readonly #etag: string
  readonly #plain: Answer
  readonly #unchanged: Answer
  #gzipped: Promise<Answer> | null = null

  constructor(headers: Headers, bytes: Uint8Array) {
    // Weak, because the gzip form has other bytes.
    this.#etag = `W/"${createHash('sha256').update(bytes).digest('base64url').slice(0, 22)}"`
    this.#headers = { ...headers, ETag: this.#etag }
    this.#plain = { status: 200, headers: this.#headers, body: bytes }
    const { 'Content-Type': _, ...ofNothing } = this.#headers
    this.#unchanged = { status: 304, headers: ofNothing, body: '' }
  }

  /** Compressed only if its headers have `Vary`. */
  answer(req: Pick<IncomingMessage, 'headers'>): Answer | Promise<Answer> {
    if (this.#isKnown(req.headers['if-none-match'])) return this.#unchanged
    if (!this.#isCompressible || !TAKES_GZIP.test(String(req.headers['accept-encoding'] ?? ''))) return this.#plain
    this.#gzipped ??= this.#compress()
    return this.#gzipped
  }

  get #isCompressible(): boolean {
    return this.#headers.Vary !== undefined && this.#plain.body.length >= COMPRESS_FROM_BYTES
  }

  async #compress(): Promise<Answer> {
    const body = await gzipAsync(this.#plain.body, { level: constants.Z_BEST_COMPRESSION })
    return { status: 200, headers: { ...this.#headers, 'Content-Encoding': 'gzip' }, body }
  }

  #isKnown(etags: string | undefined): boolean {
    return etags?.split(',').some((etag) => etag.trim() === this.#etag) ?? false
  }
}
