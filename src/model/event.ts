// An event: one inbound message, kept as sent. A revision is a row of the same journal: a re-send under the same
// source_ref whose bytes differ from the first.

import type { Tenant } from './principal.ts'

export type EventKind = 'event' | 'revision'
/** `promotion`: made from a revision; its route names which one. */
export const EVENT_ORIGINS = ['intake', 'accepted_refusal', 'promotion', 'test'] as const

export type EventOrigin = (typeof EVENT_ORIGINS)[number]

/** Metadata of an event: everything but its payload. */
export interface EventMeta extends Tenant {
  readonly receivedAt: number
  readonly keyId: string
  readonly scope: string
  /** The request path. */
  readonly route: string
  readonly sourceRef: string | null
  readonly channelRef: string | null
  readonly idempotencyKey: string | null
  readonly contentType: string
  readonly origin: EventOrigin
  readonly requestId: string
  readonly traceparent: string | null
  readonly userAgent: string | null
  readonly remoteAddr: string | null
  /** The recipe by which a hook read it, such as `telegram/1`; null for every other event. */
  readonly recipe: string | null
}

/** A row of the journal, without its bytes. */
export interface StoredEvent extends EventMeta {
  readonly id: number
  readonly kind: EventKind
  /** For a revision: the id of the event it revises. For an event: of a message under its reference that retention deleted. */
  readonly revises: number | null
  readonly size: number
  readonly sha256: Uint8Array
  readonly erasedAt: number | null
}

/** Fields that the indexer extracted from an event; null until it is indexed. */
export interface EventIndexEntry {
  readonly conversationId: number | null
  readonly contactName: string | null
  readonly contactEmail: string | null
  readonly messageType: string | null
  readonly snippet: string | null
  readonly warnings: readonly Warning[]
  /** Why the event could not be indexed; null if it was. */
  readonly unindexed: string | null
}

/** A field whose type is not the documented one. The event is accepted and keeps it. */
export interface Warning {
  /** JSON Pointer. */
  readonly path: string
  readonly expected: string
  readonly got: string
}

/** How often an event was sent again. */
export interface Repeats {
  readonly resends: number
  readonly revisions: number
  readonly lastSeenAt: number
}
