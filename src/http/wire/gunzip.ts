// Decompresses gzip bodies, in the threads of zlib: up to a limit, a bounded number of bodies at once, and tenants in turn. The
// output is counted as it grows, because a kilobyte can become a megabyte.

import { createGunzip } from 'node:zlib'
import type { Problem } from '../../model/errors.ts'
import { FairSlots } from '../../runtime/fair-slots.ts'
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

export function newGunzipSlots(maxAtOnce = MAX_AT_ONCE): FairSlots {
  return new FairSlots({ slots: maxAtOnce, maxPerHolder: maxAtOnce, maxWaitingPerHolder: Number.POSITIVE_INFINITY })
}

/** One for the process, because the threads are its own. */
const PROCESS = newGunzipSlots()

export async function gunzipBody(bytes: Buffer, options: GunzipOptions, slots = PROCESS): Promise<Buffer | Problem> {
  return (await slots.run(options.holder, () => gunzip(bytes, options))) ?? { code: 'overloaded' }
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
