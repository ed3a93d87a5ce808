// What stays of an erased message: HMACs under the database's own key, in place of its channel_ref and of the SHA-256 of its
// bytes. They keep its conversation and recognise a re-send, and cannot be tested against a guess.

import { createHmac } from 'node:crypto'
import { createDedupeDigest } from './dedupe.ts'
import type { IdGap } from './id-gaps.ts'
import type { Tenant } from './principal.ts'

/** Stored in place of the channel_ref of an erased event, before its conversation's key. */
export const ERASED_CHANNEL = 'erased:'

/** Stored in place of the media type, which the sender wrote; intake takes JSON only. */
export const ERASED_CONTENT_TYPE = 'application/json'

/** The domain of byte digests: no other HMAC under the key begins with these bytes. */
const BYTES = Buffer.from('bytes')

/** Rows that one transaction erases, and bytes of their payloads, which are overwritten in it. */
export const ERASE_ROWS = 100
export const ERASE_BYTES = 8 * 1024 * 1024

/** What to erase: a message by the id of any of its rows, a conversation by its id, or all that an address or a reference names. */
export type ErasureSelector =
  | { readonly event: number }
  | { readonly conversation: number }
  | { readonly email: string }
  | { readonly sourceRef: string }

interface ChannelRow extends Tenant {
  readonly channelRef: string | null
  readonly erasedAt: number | null
}

/** The key of a conversation: 32 hexadecimal digits. */
export type ConversationKeys = {
  of(tenant: Tenant, channelRef: string): string
  /** Null without a channel_ref. */
  ofRow(row: ChannelRow): string | null
}

export function createConversationKeys(hmacKey: Uint8Array): ConversationKeys {
  const digestOf = createDedupeDigest(hmacKey)
  const of = (tenant: Tenant, channelRef: string) => digestOf(tenant, 'con', channelRef).toString('hex')
  return {
    of,
    ofRow: (row) => {
      if (row.channelRef === null) return null
      return row.erasedAt === null ? of(row, row.channelRef) : row.channelRef.slice(ERASED_CHANNEL.length)
    },
  }
}

/** The digest that replaces a SHA-256. `intray.erased_digest` of the PostgreSQL schema computes the same. */
export function createErasedDigest(hmacKey: Uint8Array): (sha256: Uint8Array) => Buffer {
  return (sha256) => createHmac('sha256', hmacKey).update(BYTES).update(sha256).digest()
}

/** The SHA-256 of an event's bytes as it is shown; null once they are erased. */
export function digestText(event: { readonly sha256: Uint8Array; readonly erasedAt: number | null }): string | null {
  return event.erasedAt === null ? Buffer.from(event.sha256).toString('hex') : null
}

/** What tells the erasure logs of databases, and of the states of one database, apart. */
export interface ErasureLogId {
  /** Names the key of the digests, and says nothing about it. Databases may share a key. */
  readonly key: string
  readonly database: string
  /** Where its ids began after the last restore; 0 for a database that never was restored. */
  readonly epoch: number
}

/** The domain of names: no other HMAC under the key begins with these bytes. */
const LOG = Buffer.from('log')

export function erasureLogId(databaseUuid: string, hmacKey: Uint8Array, gaps: readonly IdGap[]): ErasureLogId {
  const key = createHmac('sha256', hmacKey).update(LOG).digest('hex').slice(0, 16)
  return { key, database: databaseUuid, epoch: gaps.at(-1)?.before ?? 0 }
}

/** One erased row of the journal, as the erasure log keeps it. */
export interface ErasureRecord extends Tenant {
  /** In the order of erasure. */
  readonly id: number
  readonly eventId: number
  readonly erasedAt: number
  /** The dedupe key of its reference; null without a reference. */
  readonly digest: Uint8Array | null
  /** The erased digest of its bytes. */
  readonly bytes: Uint8Array
}
