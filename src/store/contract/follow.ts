// Following the journal: what a tenant has received since, in id order, as far as it is indexed.
//
// Promises
// - A page and how far it reaches are seen at one moment: whatever is at or below `through` is in this page or in an
//   earlier one, and nothing will ever appear there later. So a cursor that goes from `through` to `through` skips nothing
//   and repeats nothing, on whichever node it goes on.
// - While a rebuild has not reached the cursor again, `through` stands still.
// - A page costs what is in it, whatever other tenants store.

import type { FollowedEvent } from '../../model/followed-event.ts'
import type { Tenant } from '../../model/principal.ts'

export interface FollowedPage {
  /** Events and revisions, in id order. */
  readonly events: readonly FollowedEvent[]
  /** Everything up to here has been looked at; at least the id that was asked from. */
  readonly through: number
}

export interface FollowHead {
  /** The watermark: what is stored after this call has a higher id. */
  readonly newest: number
  /** How far events are indexed: as far as a page can reach. Falls back to 0 when a rebuild begins. */
  readonly indexed: number
}

export interface Follower {
  after(tenant: Tenant, afterId: number, limit: number): Promise<FollowedPage>
  head(): Promise<FollowHead>
  /** The tenants that have rows above the one id and up to the other, as far as they are indexed. Costs what lies between. */
  tenantsBetween(afterId: number, throughId: number): Promise<Tenant[]>
}
