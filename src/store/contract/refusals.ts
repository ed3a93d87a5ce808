// Refused requests, kept for developers of integrations. Bounded: the oldest are deleted. Retention deletes those that are too old.
//
// Promises
// - A refusal that was received before the last erasure of its tenant is not added any more: it waited in the memory of a node
//   while the erasure looked for refusals to delete. What an erasure does not find is added after it, or never.

import type { Tenant } from '../../model/principal.ts'
import type { Refusal, StoredRefusal } from '../../model/refusal.ts'

export interface RefusalBounds {
  /** Per tenant, so that no tenant displaces another's. */
  readonly maxCount: number
}

export interface Acceptance {
  readonly eventId: number
  readonly at: number
  /** The key id of the operator. */
  readonly by: string
}

export interface RefusalStore {
  add(refusals: readonly Refusal[], bounds: RefusalBounds): Promise<void>
  /** Newest first, below the given id. */
  list(tenant: Tenant, beforeId: number, limit: number): Promise<StoredRefusal[]>
  find(tenant: Tenant, id: number): Promise<StoredRefusal | null>
  /** Records the event created from it. The first record stays. */
  accept(tenant: Tenant, id: number, as: Acceptance): Promise<void>
}
