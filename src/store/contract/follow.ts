// Following the journal: a tenant's indexed events after a cursor, in id order.
//
// Promises
// - A page and its reach are read in one snapshot: every row at or below `through` is in this page or in an earlier
//   one, and none appears there later. So a cursor that moves from `through` to `through` skips and repeats nothing, on
//   any node.
// - During a rebuild `through` stands still until the index has reached the cursor again.
// - A page costs what is in it, whatever other tenants store.

import type { FollowedEvent } from '../../model/followed-event.ts'
import type { Tenant } from '../../model/principal.ts'

export interface FollowedPage {
  /** Events and revisions, in id order. */
  readonly events: readonly FollowedEvent[]
  /** Every id up to this was looked at; at least `afterId`. */
  readonly through: number
}

export interface FollowHead {
  /** The watermark: messages stored after this call have higher ids. */
  readonly newest: number
  /** How far events are indexed: the limit of every page. Falls back to 0 when a rebuild begins. */
  readonly indexed: number
}

export interface Follower {
  after(tenant: Tenant, afterId: number, limit: number): Promise<FollowedPage>
  head(): Promise<FollowHead>
  /** The tenants with indexed rows above the one id and up to the other. Costs the rows in between. */
  tenantsBetween(afterId: number, throughId: number): Promise<Tenant[]>
}
