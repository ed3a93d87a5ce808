// Processing: claims, leases and outcomes of events. Primary data, in tables that only processing writes.
//
// Promises
// - An event is handed out only after it is indexed, and to each subscription independently.
// - A claim leases and answers in one transaction. No event is under two leases at once, on any node.
// - Ordered: a lane's events are handed out in id order, in runs of consecutive ones, and a lane under an ordered lease
//   is closed to other claims. Unordered: each event by itself, but none from a lane under an ordered lease; an ordered
//   claim waits for the unordered leases of its lane.
// - Ack, extend and release change an event only if the given lease holds it at the given time. The lease id in the row
//   decides, so two leases never both count, whatever the clocks of the nodes say.
// - An acknowledged event is never handed out again, unless it is replayed. A rebuild of the index changes nothing here.
// - Every call gets the time as an argument: the store reads no clock.

import type { StoredEvent } from '../../model/event.ts'
import type { Tenant } from '../../model/principal.ts'
import type { DeliveryState, HistoryEntry, OwnRetryRules } from '../../model/processing.ts'
import type { LeaseItem, ReleaseItem, Settled } from '../../model/processing-plan.ts'

/** A tenant's queue, as one subscription sees it. */
export interface QueueName {
  readonly tenant: Tenant
  readonly subscription: string
}

export interface ClaimRequest extends QueueName {
  readonly limit: number
  /** Most payload bytes in total; one larger event is handed out alone. */
  readonly maxBytes: number
  readonly ordered: boolean
  /** Only events of this conversation. */
  readonly channelRef: string | null
  /** Minted by the caller; one for all events of the claim. */
  readonly leaseId: string
  readonly leaseExpiresAt: number
  readonly keyId: string
  /** Of subscriptions that set no number of their own. */
  readonly maxAttempts: number
  readonly now: number
}

export interface ClaimedEvent {
  readonly event: StoredEvent
  readonly conversationId: number | null
  readonly attempts: number
  readonly leaseId: string
  readonly leaseExpiresAt: number
  /** Null if it was erased or does not match its digest. */
  readonly payload: Uint8Array | null
  /** The payload can stand inside of a JSON document as it is. */
  readonly isJson: boolean
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
  /** Of subscriptions that set no number of their own. */
  readonly maxAttempts: number
  readonly keyId: string
  /** From 0 to below 1. */
  readonly jitter: number
}

/** Selects dead events. */
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

/** Done and dead events of these ids. */
export interface SettledRange {
  readonly fromId: number
  readonly toId: number
}

export interface ReplayRequest extends SettleRequest {
  readonly range: SettledRange
  readonly limit: number
  readonly keyId: string
}

export interface Replayed {
  readonly count: number
  /** The last event that was replayed; null: none was left. */
  readonly lastId: number | null
}

export interface Subscription extends OwnRetryRules {
  readonly name: string
  readonly createdAt: number | null
  /** Index entries up to this id are enqueued, or older than the subscription. */
  readonly enqueuedUpTo: number
}

export interface SubscriptionOptions extends Partial<OwnRetryRules> {
  readonly max?: number
}

/** The state of an event in one subscription. */
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
  /** If not ready: when it may be, if known. */
  readonly at: number | null
}

/** A method returns null if there is no such subscription. */
export interface ProcessingStore {
  claim(request: ClaimRequest): Promise<readonly ClaimedEvent[] | null>
  ack(request: AckRequest): Promise<readonly Settled[] | null>
  extend(request: ExtendRequest): Promise<readonly Settled[] | null>
  release(request: ReleaseRequest): Promise<readonly Settled[] | null>
  /** Requeues dead events, the oldest first; returns how many. */
  requeue(request: RequeueRequest): Promise<number | null>
  countDead(queue: QueueName, filter: DeadFilter): Promise<number | null>
  countSettled(queue: QueueName, range: SettledRange): Promise<number | null>
  /** Requeues events that are done or dead, the oldest first. */
  replay(request: ReplayRequest): Promise<Replayed | null>
  /** For each queue: is a claim worthwhile? Cheap and without locks. */
  ready(queues: readonly (QueueName & { readonly ordered: boolean })[], now: number): Promise<readonly Readiness[]>

  /** `default` first, used or not; then in order of creation. */
  subscriptions(tenant: Tenant): Promise<Subscription[]>
  /**
   * An existing subscription keeps its place, and the rules that are not given. `now`: events stored from now on;
   * `beginning`: all events. Null if the tenant already has `max` subscriptions, `default` included.
   */
  createSubscription(
    queue: QueueName,
    from: 'now' | 'beginning',
    at: number,
    options?: SubscriptionOptions,
  ): Promise<{ readonly subscription: Subscription; readonly created: boolean } | null>
  /** False if there is none. Its rows are deleted in bounded steps. `default` cannot be deleted. */
  deleteSubscription(queue: QueueName, at: number): Promise<boolean>

  /** The state of an event in every subscription. Not enqueued yet: pending. */
  history(tenant: Tenant, eventId: number): Promise<DeliveryRecord[]>
  /**
   * How many events of each conversation (by its id) are done, and dead; its other events are unprocessed. Every change
   * keeps these counts current, so that a list of conversations need not read their events. No entry: none yet.
   */
  counts(
    queue: QueueName,
    conversationIds: readonly number[],
  ): Promise<ReadonlyMap<number, { readonly done: number; readonly dead: number }>>
  /** The states of those events that are enqueued. With an expired lease: pending. */
  states(queue: QueueName, ids: readonly number[], now: number): Promise<ReadonlyMap<number, DeliveryState>>
  /** The errors of their latest failures: EXPIRED if the lease expired. No entry: none, or a requeue since. */
  lastErrors(queue: QueueName, ids: readonly number[]): Promise<ReadonlyMap<number, string>>
}
