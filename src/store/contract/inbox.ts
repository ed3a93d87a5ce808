// Reading the inbox: a tenant's events and conversations by filter. All of it comes from the index; `coverage` tells
// how far the index is.
//
// Promises
// - Every call is bound to its tenant: it finds, counts and reads no row of another tenant.
// - Lists use keyset paging: they neither skip nor repeat rows that existed when paging began.
// - A page costs what it shows, not what is stored. Without an index for all filters, a page scans SCAN_ROWS and is
//   marked partial; continuing from `next` reaches the end.

import type { Conversation } from '../../model/conversation.ts'
import type { EventIndexEntry, EventKind, StoredEvent } from '../../model/event.ts'
import type { Tenant } from '../../model/principal.ts'
import type { DeliveryState } from '../../model/processing.ts'

/** Conditions on an event, all of which must hold. */
export interface EventFilter {
  // Filters with an index.
  readonly sourceRef?: string | undefined
  /** Each is a prefix of a word of the event. Cut by model/text-search.ts; never empty. */
  readonly words?: readonly string[] | undefined
  /** Compared without case. */
  readonly contactEmail?: string | undefined
  readonly channelRef?: string | undefined
  readonly kind?: EventKind | undefined
  /** At or after. */
  readonly receivedAfter?: number | undefined
  /** Strictly before. */
  readonly receivedBefore?: number | undefined
  readonly state?: StateFilter | undefined
  // Filters without an index: checked row by row.
  readonly scope?: string | undefined
  readonly keyId?: string | undefined
  readonly messageType?: string | undefined
}

/**
 * The state of an event in a subscription. An event that is not enqueued yet is pending, and so is one whose lease has
 * expired. Revisions, and events older than the subscription, have no state. A subscription that does not exist matches
 * nothing.
 */
export interface StateFilter {
  readonly is: DeliveryState
  readonly subscription: string
  /** The time by which leases count as expired. */
  readonly now: number
}

/** Where a page ended: lists by time use both fields, other lists the id. */
export interface EventPosition {
  readonly id: number
  readonly receivedAt: number | null
}

export interface ListedEvent {
  readonly event: StoredEvent
  readonly entry: EventIndexEntry
}

export interface EventPage {
  readonly events: readonly ListedEvent[]
  /** Null at the end of the list. */
  readonly next: EventPosition | null
  /** The scan stopped before the page was full; there may be more below. */
  readonly partial: boolean
}

/** How far the index follows the journal, in ids of events and of resends. Gaps are left out: differences count rows. */
export interface Coverage {
  readonly newest: { readonly events: number; readonly resends: number }
  /** `words`: events up to this id are found by a search. */
  readonly covered: { readonly events: number; readonly resends: number; readonly words: number }
}

export interface InboxReader {
  coverage(): Promise<Coverage>
  /**
   * Newest first: by id; or by time and id, if there is a bound of time and none of the filters above it. Ends
   * between two statements once the caller is gone.
   */
  events(
    tenant: Tenant,
    filter: EventFilter,
    after: EventPosition | null,
    limit: number,
    gone?: AbortSignal,
  ): Promise<EventPage>
  /** Revisions of an event, oldest first, from after the given id. */
  revisions(tenant: Tenant, eventId: number, afterId: number, limit: number): Promise<ListedEvent[]>
  /** Latest activity first: conversations whose last event is below the given id. */
  conversations(tenant: Tenant, beforeEventId: number, limit: number): Promise<Conversation[]>
  conversation(tenant: Tenant, id: number): Promise<Conversation | null>
  /** Oldest first, from after the given id. */
  conversationEvents(tenant: Tenant, conversationId: number, afterId: number, limit: number): Promise<ListedEvent[]>
}
