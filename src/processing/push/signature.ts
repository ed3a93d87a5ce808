// Signs deliveries by Standard Webhooks (standardwebhooks.com): HMAC-SHA-256 over id, time and body, so that a receiver can tell
// who sent it, and refuse an old one. During a rotation each secret signs, so that a receiver may know either.

import { createHmac, randomBytes } from 'node:crypto'
import { setImmediate as nextTurn } from 'node:timers/promises'

const PREFIX = 'whsec_'
/** As the specification asks for: 24 to 64 bytes. */
const SECRET_BYTES = { made: 32, min: 24, max: 64 } as const
/** Hashed in one turn of the event loop: a tenth of a millisecond. */
const SLICE_BYTES = 64 * 1024

export const SECRET_FORM = `must be ${PREFIX} and ${SECRET_BYTES.min} to ${SECRET_BYTES.max} bytes in base64`

export function makeSecret(): string {
  return PREFIX + randomBytes(SECRET_BYTES.made).toString('base64')
}

/** The key of a secret; null if the secret has another form. */
export function keyOfSecret(secret: string): Buffer | null {
  const text = secret.startsWith(PREFIX) ? secret.slice(PREFIX.length) : ''
  const key = Buffer.from(text, 'base64')
  const isBase64 = /^[0-9A-Za-z+/]+={0,2}$/.test(text) && key.toString('base64') === text
  return isBase64 && key.length >= SECRET_BYTES.min && key.length <= SECRET_BYTES.max ? key : null
}

export interface Signed {
  readonly 'webhook-id': string
  readonly 'webhook-timestamp': string
  readonly 'webhook-signature': string
}

/** `now` in milliseconds. A large body is hashed in several turns, because the main thread is everybody's. */
export async function sign(
  keys: readonly Uint8Array[],
  id: string,
  now: number,
  body: readonly Uint8Array[],
): Promise<Signed> {
  const timestamp = String(Math.floor(now / 1000))
  const macs = keys.map((key) => createHmac('sha256', key).update(`${id}.${timestamp}.`))
  let sinceTurn = 0
  for (const part of body) {
    for (let from = 0; from < part.byteLength; from += SLICE_BYTES) {
      const slice = part.subarray(from, from + SLICE_BYTES)
      for (const mac of macs) mac.update(slice)
      sinceTurn += slice.byteLength
      if (sinceTurn < SLICE_BYTES) continue
      sinceTurn = 0
      await nextTurn()
    }
  }
  const signatures = macs.map((mac) => `v1,${mac.digest('base64')}`)
  return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signatures.join(' ') }
}
