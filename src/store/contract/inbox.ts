// Reading the inbox: what a tenant has, by what it is looked for. Everything here comes from the index, so it is as new as
// the index is; `coverage` tells how new that is.
//
// Promises
// - Every call is bound to its tenant: nothing of another is found, counted, or paid for.
// - Lists are read by key, never by number: paging neither skips nor repeats what was there when it began.
// - A page costs what it shows, not what is stored. Where no index leads to the rows, SCAN_ROWS are looked at and the page
//   says that it is partial; going on from `next` comes to the end.

import type { Conversation } from '../../model/conversation.ts'
import type { EventIndexEntry, EventKind, StoredEvent } from '../../model/event.ts'
import type { Tenant } from '../../model/principal.ts'
import type { DeliveryState } from '../../model/processing.ts'

/** What an event has to be to be listed; all of it, where several are given. */
export interface EventFilter {
  // An index leads to these.
  readonly sourceRef?: string | undefined
  /** Every one of them is the beginning of a word of the event. Cut by model/words.ts; never empty. */
  readonly words?: readonly string[] | undefined
  /** In any case. */
  readonly contactEmail?: string | undefined
  readonly channelRef?: string | undefined
  readonly kind?: EventKind | undefined
  /** At or after. */
  readonly receivedAfter?: number | undefined
  /** Before, and not at. */
  readonly receivedBefore?: number | undefined
  readonly state?: StateFilter | undefined
  // These are looked for among the rows that the others, or nothing, leave.
  readonly scope?: string | undefined
  readonly keyId?: string | undefined
  readonly messageType?: string | undefined
}

/**
 * What a subscription makes of an event. One that it has not taken notice of yet is pending, and so is one under a lease that
 * has expired; revisions, and what was there before the subscription, have no state. Of a subscription that does not exist
 * nothing is found.
 */
export interface StateFilter {
  readonly is: DeliveryState
  readonly subscription: string
  /** By which leases are told to be expired. */
  readonly now: number
}

/** Where a page ended. Lists by time go by both, the others by the id. */
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
  /** The look stopped before the page was full, and there may be more below. */
  readonly partial: boolean
}

/** How far the index follows the journal, in ids of events and of resends. */
export interface Coverage {
  readonly newest: { readonly events: number; readonly resends: number }
  readonly covered: { readonly events: number; readonly resends: number }
}

export interface InboxReader {
  coverage(): Promise<Coverage>
  /**
   * Newest first: by id, or, where a time is what leads to them, by time and id. A list by time is one with a bound of time
   * and none of the filters above it.
   */
  events(tenant: Tenant, filter: EventFilter, after: EventPosition | null, limit: number): Promise<EventPage>
  /** Revisions of an event, oldest first, from after the given id. */
  revisions(tenant: Tenant, eventId: number, afterId: number, limit: number): Promise<ListedEvent[]>
  /** Latest activity first: those whose last event is below the given id. */
  conversations(tenant: Tenant, beforeEventId: number, limit: number): Promise<Conversation[]>
  conversation(tenant: Tenant, id: number): Promise<Conversation | null>
  /** Oldest first, from after the given id. */
  conversationEvents(tenant: Tenant, conversationId: number, afterId: number, limit: number): Promise<ListedEvent[]>
}
