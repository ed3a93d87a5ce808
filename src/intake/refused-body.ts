// What is kept of a refused body: its beginning, with tokens masked. A token in compressed bytes cannot be masked, so gzip is
// unpacked, and nothing is kept of a body in another encoding.

import { constants, createGunzip } from 'node:zlib'
import { REFUSAL_BODY_BYTES } from '../model/refusal.ts'
import { redactBytes } from '../runtime/redact.ts'

const READABLE_ENCODINGS = ['', 'identity', 'gzip', 'x-gzip']
const NOTHING = new Uint8Array()

/** `encoding`: the Content-Encoding header. The body may be unpacked already, or cut off. */
export async function keptBody(body: Uint8Array, encoding = ''): Promise<Uint8Array> {
  if (!READABLE_ENCODINGS.includes(encoding.trim().toLowerCase())) return NOTHING
  const start = body.subarray(0, REFUSAL_BODY_BYTES)
  if (!isGzip(start)) return redactBytes(start)
  const unpacked = await unpackStart(start)
  return isGzip(unpacked) ? NOTHING : redactBytes(unpacked)
}

function isGzip(bytes: Uint8Array): boolean {
  return bytes[0] === 0x1f && bytes[1] === 0x8b
}

/** As much as can be unpacked: the bytes may be damaged, or only the start of a body. */
function unpackStart(bytes: Uint8Array): Promise<Uint8Array> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = []
    let size = 0
    const gunzip = createGunzip({ finishFlush: constants.Z_SYNC_FLUSH })
    gunzip.on('data', (chunk: Buffer) => {
      chunks.push(chunk)
      size += chunk.length
      if (size >= REFUSAL_BODY_BYTES) gunzip.destroy()
    })
    gunzip.on('error', () => {})
    gunzip.once('close', () => resolve(Buffer.concat(chunks).subarray(0, REFUSAL_BODY_BYTES)))
    gunzip.end(bytes)
  })
}
