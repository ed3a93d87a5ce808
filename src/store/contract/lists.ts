// Pages of the API's lists, as finished JSON: a driver makes them where it reads, so that a page costs the main thread one
// write to a socket.
//
// Promises
// - What `contract/inbox.ts` promises of lists.
// - A page has at most MAX_PAGE_BYTES of entries, but at least one entry if there is any: a page may be short although
//   `next` is not null.
// - Between two turns a page is made by steps of at most STEP_BYTES or one entry.

import type { Tenant } from '../../model/principal.ts'
import type { EventFilter, EventPosition } from './inbox.ts'

export interface JsonPage {
  /** The entries: a JSON array in UTF-8. */
  readonly entries: Uint8Array
  /** Null at the end of the list. */
  readonly next: EventPosition | null
  /** The scan stopped before the page was full; there may be more below. */
  readonly partial: boolean
}

/** `now`: the time by which leases count as expired. */
export interface ListReader {
  /** With a filter by state every entry shows that state, otherwise the one in the default subscription. */
  events(
    tenant: Tenant,
    filter: EventFilter,
    after: EventPosition | null,
    limit: number,
    now: number,
    gone?: AbortSignal,
  ): Promise<JsonPage>
  revisions(tenant: Tenant, eventId: number, afterId: number, limit: number): Promise<JsonPage>
  conversations(tenant: Tenant, beforeEventId: number, limit: number): Promise<JsonPage>
  conversationEvents(
    tenant: Tenant,
    conversationId: number,
    afterId: number,
    limit: number,
    now: number,
  ): Promise<JsonPage>
  /** Newest first. */
  refusals(tenant: Tenant, beforeId: number, limit: number): Promise<JsonPage>
}
