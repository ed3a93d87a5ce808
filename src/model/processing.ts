// State machine of a delivery, which is one event in one subscription:
//
//                    hand-out (attempts + 1)
//        ┌─ pending ─────────────────────────► leased ── ack ──► done
//        │     ▲                                 │
//        │     ├── released with an error, or lease expired, attempts < max
//        │     └── given back (attempts − 1): released without an error, or behind an event of its run that was
//        │         released or expired           │
//        │                                       │
//        └──────────── requeue (attempts = 0) ◄─ dead ◄── released as dead; or, attempts = max, with an error or expired
//
// Max attempts and the delays after a failure are rules of the subscription. `done` is final, except that an operator may replay
// events: a requeue of done ones. Every transition out of `leased`
// by a processor requires the lease id in the row and an unexpired lease: that is the fencing. No timer expires leases: the
// next claim that takes the lane does.
//
// A lane is the unit of ordering: a conversation, or a single event without channel_ref. Lane ids cannot clash, since a
// conversation has the id of its first event.

export type DeliveryState = 'pending' | 'leased' | 'done' | 'dead'

export const STATES: readonly DeliveryState[] = ['pending', 'leased', 'done', 'dead']

export const DEFAULT_SUBSCRIPTION = 'default'

export const CLAIM_LIMITS = {
  events: { min: 1, max: 200, fallback: 10 },
  leaseS: { min: 1, max: 43_200, fallback: 30 },
  waitS: { min: 0, max: 20, fallback: 0 },
  delayS: { min: 0, max: 43_200 },
  /** Items of one ack, extend or release. */
  items: { min: 1, max: 1000 },
  requeue: { min: 1, max: 1000, fallback: 1000 },
  errorUnits: 1000,
} as const

/** Ranges of what a subscription may set for itself. */
export const RETRY_LIMITS = {
  attempts: { min: 1, max: 1000 },
  delayS: { min: 1, max: 43_200 },
} as const

/** How often an event may fail, and how long it waits after a failure. */
export interface RetryRules {
  readonly maxAttempts: number
  readonly firstDelayMs: number
  readonly maxDelayMs: number
}

/** What a subscription sets for itself; null: the default. */
export type OwnRetryRules = { readonly [Rule in keyof RetryRules]: RetryRules[Rule] | null }

export const NO_OWN_RULES: OwnRetryRules = { maxAttempts: null, firstDelayMs: null, maxDelayMs: null }

const DEFAULT_DELAYS = { firstDelayMs: 1000, maxDelayMs: 3_600_000 } as const

export function retryRules(own: OwnRetryRules, defaultMaxAttempts: number): RetryRules {
  return {
    maxAttempts: own.maxAttempts ?? defaultMaxAttempts,
    firstDelayMs: own.firstDelayMs ?? DEFAULT_DELAYS.firstDelayMs,
    maxDelayMs: own.maxDelayMs ?? DEFAULT_DELAYS.maxDelayMs,
  }
}

/** One event in one subscription. */
export interface Delivery {
  readonly eventId: number
  readonly lane: number
  readonly state: DeliveryState
  /** Hand-outs that count against `maxAttempts`. */
  readonly attempts: number
  /** While pending: the earliest hand-out. */
  readonly availableAt: number
  /** Id of the live lease; kept when done, to recognise a repeated ack. */
  readonly leaseId: string | null
  readonly leaseExpiresAt: number | null
  /** The lease holds the whole lane. */
  readonly ordered: boolean
  /** The token that claimed it last. */
  readonly keyId: string | null
  /** When it became done or dead. */
  readonly settledAt: number | null
  /** Number of history entries. */
  readonly entries: number
}

export interface Lease {
  readonly id: string
  readonly expiresAt: number
  readonly ordered: boolean
  readonly keyId: string
}

/** Stands for the error of a hand-out whose lease expired. */
export const EXPIRED = 'The lease expired.'

/** Why an event was parked whose row is gone or damaged: there is nothing to hand out. */
export const LOST_EVENT = 'The message cannot be read: its row is damaged or gone. Run ./intray doctor.'

/** One entry of an event's history: a hand-out that failed, or a requeue. */
export interface HistoryEntry {
  readonly eventId: number
  readonly number: number
  readonly at: number
  readonly what: 'released' | 'expired' | 'requeued'
  /** The state afterwards. */
  readonly state: DeliveryState
  readonly attempts: number
  readonly keyId: string | null
  readonly error: string | null
}

export interface Change {
  readonly delivery: Delivery
  readonly entry: HistoryEntry | null
}

export function newDelivery(eventId: number, lane: number, now: number): Delivery {
  return {
    eventId,
    lane,
    state: 'pending',
    attempts: 0,
    availableAt: now,
    leaseId: null,
    leaseExpiresAt: null,
    ordered: false,
    keyId: null,
    settledAt: null,
    entries: 0,
  }
}

export function handOut(delivery: Delivery, lease: Lease): Delivery {
  return {
    ...delivery,
    state: 'leased',
    attempts: delivery.attempts + 1,
    leaseId: lease.id,
    leaseExpiresAt: lease.expiresAt,
    ordered: lease.ordered,
    keyId: lease.keyId,
  }
}

/** Whether this lease still holds the event. */
export function isHeld(delivery: Delivery | undefined, leaseId: string, now: number): delivery is Delivery {
  return delivery?.state === 'leased' && delivery.leaseId === leaseId && !isExpired(delivery, now)
}

export function isExpired(delivery: Delivery, now: number): boolean {
  return (delivery.leaseExpiresAt ?? 0) <= now
}

export function acknowledge(delivery: Delivery, now: number): Delivery {
  return { ...delivery, state: 'done', leaseExpiresAt: null, settledAt: now }
}

export interface Failure {
  readonly what: 'released' | 'expired'
  readonly at: number
  readonly availableAt: number
  readonly maxAttempts: number
  /** The processor says that no attempt will succeed. */
  readonly isFinal?: boolean
  readonly keyId: string | null
  readonly error: string | null
}

/** A failed hand-out: pending again later, or dead. */
export function fail(delivery: Delivery, failure: Failure): Change {
  const isDead = failure.isFinal === true || delivery.attempts >= failure.maxAttempts
  const after: Delivery = {
    ...free(delivery),
    state: isDead ? 'dead' : 'pending',
    availableAt: failure.availableAt,
    settledAt: isDead ? failure.at : null,
    entries: delivery.entries + 1,
  }
  const { what, at, keyId, error } = failure
  return { delivery: after, entry: entryOf(after, { what, at, keyId, error }) }
}

/** Gives back an event that nobody tried to process: this hand-out was no attempt. */
export function giveBack(delivery: Delivery): Delivery {
  return { ...free(delivery), state: 'pending', attempts: Math.max(0, delivery.attempts - 1) }
}

export function requeue(delivery: Delivery, now: number, keyId: string): Change {
  const after: Delivery = {
    ...delivery,
    state: 'pending',
    attempts: 0,
    availableAt: now,
    // Of the ack that it is done by: the lease is over.
    leaseId: null,
    settledAt: null,
    entries: delivery.entries + 1,
  }
  return { delivery: after, entry: entryOf(after, { what: 'requeued', at: now, keyId, error: null }) }
}

/** Doubles with each attempt, plus up to a quarter of jitter, so that events that failed together are not retried together. */
export function backOffMs(attempts: number, jitter: number, { firstDelayMs, maxDelayMs }: RetryRules): number {
  const plain = Math.min(maxDelayMs, firstDelayMs * 2 ** Math.max(0, attempts - 1))
  return Math.round(plain * (1 + jitter / 4))
}

function free(delivery: Delivery): Delivery {
  return { ...delivery, leaseId: null, leaseExpiresAt: null, ordered: false }
}

function entryOf(
  { eventId, entries, state, attempts }: Delivery,
  rest: Pick<HistoryEntry, 'what' | 'at' | 'keyId' | 'error'>,
): HistoryEntry {
  return { eventId, number: entries, state, attempts, ...rest }
}

/** Which leases a lane is under. Under an ordered lease, new events wait for its end. */
export const HELD = { not: 0, ordered: 1, unordered: 2 } as const
export type Held = (typeof HELD)[keyof typeof HELD]

/** When a lane has something to hand out. */
export interface LaneTimes {
  /** The lowest event that is not final; null: the lane is idle. */
  readonly head: number | null
  /** For ordered claims. */
  readonly readyAt: number | null
  /** For unordered claims, if earlier. */
  readonly openAt: number | null
  readonly held: Held
}

export interface PendingFacts {
  readonly lane: number
  readonly head: { readonly eventId: number; readonly availableAt: number } | null
  /** When the first pending event becomes available. */
  readonly openAt: number | null
}

/** Summary of a lane's leases: what its times depend on. */
export interface LeaseFacts {
  readonly lane: number
  readonly lowest: number
  readonly firstExpiry: number
  readonly lastExpiry: number
  readonly isOrdered: boolean
}

/** Null: no leases. */
export function leaseFacts(leased: Iterable<Delivery>): LeaseFacts | null {
  let all: LeaseFacts | null = null
  for (const { lane, eventId, leaseExpiresAt, ordered } of leased) {
    const expiry = leaseExpiresAt ?? 0
    all = addLeases(all, { lane, lowest: eventId, firstExpiry: expiry, lastExpiry: expiry, isOrdered: ordered })
  }
  return all
}

/** Both of the same lane. */
export function addLeases(some: LeaseFacts | null, more: LeaseFacts): LeaseFacts {
  if (!some) return more
  return {
    lane: some.lane,
    lowest: Math.min(some.lowest, more.lowest),
    firstExpiry: Math.min(some.firstExpiry, more.firstExpiry),
    lastExpiry: Math.max(some.lastExpiry, more.lastExpiry),
    isOrdered: some.isOrdered || more.isOrdered,
  }
}

export function laneTimes(leases: LeaseFacts | null, pending: Omit<PendingFacts, 'lane'>): LaneTimes {
  const { head } = pending
  if (leases === null) {
    if (head === null) return { head: null, readyAt: null, openAt: null, held: HELD.not }
    const openAt = earlier(pending.openAt, head.availableAt)
    return { head: head.eventId, readyAt: head.availableAt, openAt, held: HELD.not }
  }
  const { lowest, firstExpiry, lastExpiry, isOrdered } = leases
  const pendingLeads = head !== null && head.eventId < lowest
  const readyAt = Math.max(lastExpiry, pendingLeads ? head.availableAt : 0)
  return {
    head: pendingLeads ? head.eventId : lowest,
    readyAt,
    openAt: isOrdered ? null : earlier(Math.min(firstExpiry, pending.openAt ?? Number.MAX_SAFE_INTEGER), readyAt),
    held: isOrdered ? HELD.ordered : HELD.unordered,
  }
}

function earlier(time: number | null, than: number): number | null {
  return time !== null && time < than ? time : null
}
