// Processing: what processors did with events. Primary data, in tables that nothing else writes.
//
// Promises
// - An event is handed out only after it is indexed, and to each subscription on its own.
// - A claim leases and answers in one transaction. No event is under two leases at once, whichever node is asked.
// - Ordered: the events of a lane are handed out in the order of their ids, in runs of consecutive ones, and a lane under
//   an ordered lease is nobody else's. Unordered: every event by itself, but nothing from a lane under an ordered lease;
//   an ordered claim waits for the unordered leases of its lane.
// - Ack, extend and release change an event only if the given lease holds it at the given time. Whatever the clocks of
//   several nodes say, two leases never both count: the lease id in the row decides.
// - An acknowledged event is never handed out again. A rebuild of the index changes nothing here.
// - The time is always given: nothing here asks a clock.

import type { StoredEvent } from '../../model/event.ts'
import type { Tenant } from '../../model/principal.ts'
import type { DeliveryState, HistoryEntry } from '../../model/processing.ts'
import type { LeaseItem, ReleaseItem, Settled } from '../../model/processing-plan.ts'

/** Whose queue, and which view of it. */
export interface QueueName {
  readonly tenant: Tenant
  readonly subscription: string
}

export interface ClaimRequest extends QueueName {
  readonly limit: number
  /** Payloads together, at most; one larger event is handed out alone. */
  readonly maxBytes: number
  readonly ordered: boolean
  /** Only events of this conversation. */
  readonly channelRef: string | null
  /** Minted by the caller; one for all events of the claim. */
  readonly leaseId: string
  readonly leaseExpiresAt: number
  readonly keyId: string
  readonly maxAttempts: number
  readonly now: number
}

export interface ClaimedEvent {
  readonly event: StoredEvent
  readonly conversationId: number | null
  readonly attempts: number
  readonly leaseId: string
  readonly leaseExpiresAt: number
  /** Null when it was erased, or no longer matches its digest. */
  readonly payload: Uint8Array | null
}

export interface SettleRequest extends QueueName {
  readonly now: number
}

export interface AckRequest extends SettleRequest {
  readonly items: readonly LeaseItem[]
}

export interface ExtendRequest extends AckRequest {
  readonly leaseExpiresAt: number
}

export interface ReleaseRequest extends SettleRequest {
  readonly items: readonly ReleaseItem[]
  readonly maxAttempts: number
  readonly keyId: string
  /** From 0 to below 1. */
  readonly jitter: number
}

/** Which of the dead ones. */
export interface DeadFilter {
  readonly ids: readonly number[] | null
  readonly channelRef: string | null
  readonly deadAfter: number | null
  readonly deadBefore: number | null
}

export interface RequeueRequest extends SettleRequest {
  readonly filter: DeadFilter
  readonly limit: number
  readonly keyId: string
}

export interface Subscription {
  readonly name: string
  readonly createdAt: number | null
  /** It takes what comes after this event. */
  readonly frontier: number
}

/** What one subscription made of an event. */
export interface DeliveryRecord {
  readonly subscription: string
  readonly state: DeliveryState
  readonly attempts: number
  readonly availableAt: number | null
  readonly leaseExpiresAt: number | null
  readonly keyId: string | null
  readonly settledAt: number | null
  readonly history: readonly HistoryEntry[]
}

export interface Readiness {
  /** A claim may find something now. */
  readonly ready: boolean
  /** If not: when it may, as far as is known. */
  readonly at: number | null
}

/** Where a method answers null, there is no such subscription. */
export interface ProcessingStore {
  claim(request: ClaimRequest): Promise<readonly ClaimedEvent[] | null>
  ack(request: AckRequest): Promise<readonly Settled[] | null>
  extend(request: ExtendRequest): Promise<readonly Settled[] | null>
  release(request: ReleaseRequest): Promise<readonly Settled[] | null>
  /** Brings back dead events, the oldest first; how many. */
  requeue(request: RequeueRequest): Promise<number | null>
  countDead(queue: QueueName, filter: DeadFilter): Promise<number | null>
  /** For each of the queues, cheaply and without a lock: is a claim worth while? */
  ready(queues: readonly (QueueName & { readonly ordered: boolean })[], now: number): Promise<readonly Readiness[]>

  /** `default` first, whether it was used or not; then in the order of creation. */
  subscriptions(tenant: Tenant): Promise<Subscription[]>
  /**
   * One that exists stays as it is. `now`: what is stored from now on; `beginning`: everything. Null if the tenant has `max`
   * already, `default` counted.
   */
  createSubscription(
    queue: QueueName,
    from: 'now' | 'beginning',
    at: number,
    max?: number,
  ): Promise<{ readonly subscription: Subscription; readonly created: boolean } | null>
  /** False when there is none. What it knew is cleared away in bounded steps. `default` cannot be deleted. */
  deleteSubscription(queue: QueueName, at: number): Promise<boolean>

  /** What every subscription made of an event. One that has not taken notice of it yet has it pending. */
  history(tenant: Tenant, eventId: number): Promise<DeliveryRecord[]>
  /**
   * How many events of a conversation (by its id) are done, and dead: what is unprocessed is the rest of those it counts.
   * Kept with each change, so that a list of conversations need not look at their events. None yet: no entry.
   */
  counts(
    queue: QueueName,
    conversationIds: readonly number[],
  ): Promise<ReadonlyMap<number, { readonly done: number; readonly dead: number }>>
  /** The states of those events that the subscription took notice of. Under a lease that has expired: pending. */
  states(queue: QueueName, ids: readonly number[], now: number): Promise<ReadonlyMap<number, DeliveryState>>
}
