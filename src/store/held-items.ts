// Decides, for both drivers, whether a database holds the message of an import, from what is stored under its dedupe key.

import type { Held, ImportedItem } from './contract/transfer.ts'

/** What is stored under the dedupe key of an item. */
export interface StoredKey {
  readonly eventId: number
  /** Of the first event's bytes, or of their HMAC; empty without a reference. */
  readonly keySha256: Uint8Array
  /** The first event; null if it was purged. */
  readonly event: {
    readonly sha256: Uint8Array
    readonly receivedAt: number
    readonly erasedAt: number | null
  } | null
  /** A revision has the bytes. */
  readonly isRevision: boolean
  /** An erased revision had them. */
  readonly isErasedRevision: boolean
}

/** `erased`: the HMAC that replaces the SHA-256 of erased bytes. */
export function heldAs(item: ImportedItem, erased: Uint8Array, stored: StoredKey): Held | null {
  const { eventId, keySha256, event } = stored
  const is = (state: Held['state']): Held => ({ state, eventId })
  if (item.sourceRef === null && item.idempotencyKey === null) {
    // Without a reference, the key says nothing about the bytes: they and the time do, as long as they are there.
    if (event === null) return is('same')
    if (event.erasedAt !== null) return is(isEqual(event.sha256, erased) ? 'erased' : 'taken')
    return is(event.receivedAt === item.receivedAt && isEqual(event.sha256, item.sha256) ? 'same' : 'taken')
  }
  if (isEqual(keySha256, item.sha256) || stored.isRevision) return is('same')
  // The digest of purged bytes is hidden as that of erased ones.
  if (event === null && isEqual(keySha256, erased)) return is('same')
  if (isEqual(keySha256, erased) || stored.isErasedRevision) return is('erased')
  return null
}

function isEqual(one: Uint8Array, other: Uint8Array): boolean {
  return Buffer.compare(one, other) === 0
}
