// Checks that a payload still matches its digest.

import { hash } from 'node:crypto'

/** About 1 µs for each KiB. */
export function isIntact(payload: Uint8Array, sha256: Uint8Array): boolean {
  return hash('sha256', payload, 'buffer').equals(sha256)
}

/** The `unindexed` reason of an event whose payload does not match its digest. */
export const DAMAGED = 'the payload no longer matches its digest'
