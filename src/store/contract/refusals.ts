// Refused requests, kept for whoever wires up an integration. Bounded: the oldest make room.

import type { Tenant } from '../../model/principal.ts'
import type { Refusal, StoredRefusal } from '../../model/refusal.ts'

export interface RefusalBounds {
  /** For each tenant, so that none pushes out another's. */
  readonly maxCount: number
  readonly maxAgeMs: number
}

export interface Acceptance {
  readonly eventId: number
  readonly at: number
  /** The key id of the operator. */
  readonly by: string
}

export interface RefusalStore {
  add(refusals: readonly Refusal[], bounds: RefusalBounds, now: number): Promise<void>
  /** Newest first, below the given id. */
  list(tenant: Tenant, beforeId: number, limit: number): Promise<StoredRefusal[]>
  find(tenant: Tenant, id: number): Promise<StoredRefusal | null>
  /** Notes what it became. The first note stays. */
  accept(tenant: Tenant, id: number, as: Acceptance): Promise<void>
}
