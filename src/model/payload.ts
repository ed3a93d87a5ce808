// Checks that a payload still matches its digest, and that it can stand inside of a JSON document.

import { hash } from 'node:crypto'

/** About 1 µs for each KiB. */
export function isIntact(payload: Uint8Array, sha256: Uint8Array): boolean {
  return hash('sha256', payload, 'buffer').equals(sha256)
}

/** The `unindexed` reason of an event whose payload does not match its digest. */
export const DAMAGED = 'the payload no longer matches its digest'

/** Whether the bytes are JSON as they stand: without a BOM, and in valid UTF-8. Parses them: not for the main thread. */
export function isEmbeddable(payload: Uint8Array): boolean {
  try {
    JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(payload))
    return true
  } catch {
    return false
  }
}

/** The text without its BOM, which has no place inside of a document. `null` for bytes that intake would not have taken. */
export function jsonText(payload: Uint8Array): string {
  const text = Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength)
    .toString('utf8')
    .replace(/^\uFEFF/, '')
  try {
    JSON.parse(text)
    return text
  } catch {
    return 'null'
  }
}
