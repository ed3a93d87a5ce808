// Whether the bytes of a payload are still those that were taken in.

import { hash } from 'node:crypto'

/** About 1 µs for each KiB. */
export function isIntact(payload: Uint8Array, sha256: Uint8Array): boolean {
  return hash('sha256', payload, 'buffer').equals(sha256)
}

/** Why an event is not indexed whose bytes are not the ones that were taken in. */
export const DAMAGED = 'the payload no longer matches its digest'
