// Decompresses gzip bodies, in the threads of zlib: up to a limit, a bounded number of bodies at once, and tenants in turn. The
// output is counted as it grows, because a kilobyte can become a megabyte.

import { createGunzip } from 'node:zlib'
import type { Problem } from '../../model/errors.ts'
import { FairQueue } from '../../runtime/fair-queue.ts'
import type { BodyReservation } from './body-memory.ts'

/** zlib takes 60 KB for each, beside the output. */
const MAX_AT_ONCE = 16

const NOT_GZIP: Problem = {
  code: 'invalid_json',
  message: 'The body is not valid gzip data. Compress it again, or send it uncompressed.',
}

export interface GunzipOptions {
  readonly maxBytes: number
  /** Whose turn is used up. */
  readonly holder: string
  /** Where the output is counted, after the body as it arrived. */
  readonly reservation: BodyReservation | null
}

export class Gunzipper {
  readonly #maxAtOnce: number
  readonly #waiting = new FairQueue<() => void>()
  #inProgress = 0

  constructor(maxAtOnce = MAX_AT_ONCE) {
    this.#maxAtOnce = maxAtOnce
  }

  get inProgress(): number {
    return this.#inProgress
  }

  async gunzip(bytes: Buffer, options: GunzipOptions): Promise<Buffer | Problem> {
    if (this.#inProgress >= this.#maxAtOnce) {
      await new Promise<void>((start) => this.#waiting.push(options.holder, start))
    } else this.#inProgress += 1
    try {
      return await gunzip(bytes, options)
    } finally {
      // The next one takes over the place of this one.
      const next = this.#waiting.next()
      if (next) next()
      else this.#inProgress -= 1
    }
  }
}

/** One for the process, because the threads are its own. */
const PROCESS = new Gunzipper()

export function gunzipBody(bytes: Buffer, options: GunzipOptions): Promise<Buffer | Problem> {
  return PROCESS.gunzip(bytes, options)
}

function gunzip(bytes: Buffer, { maxBytes, reservation }: GunzipOptions): Promise<Buffer | Problem> {
  return new Promise((resolve) => {
    const stream = createGunzip()
    const chunks: Buffer[] = []
    let size = 0
    const finish = (result: Buffer | Problem) => {
      stream.destroy()
      resolve(result)
    }
    stream.on('data', (chunk: Buffer) => {
      size += chunk.length
      chunks.push(chunk)
      if (size > maxBytes) finish({ code: 'payload_too_large', maxBytes })
      else if (reservation?.growTo(bytes.length + size) === false) finish({ code: 'overloaded' })
    })
    stream.on('end', () => finish(Buffer.concat(chunks, size)))
    stream.on('error', () => finish(NOT_GZIP))
    stream.end(bytes)
  })
}
