// What a subscription makes of an event, drawn once:
//
//                    hand-out (attempts + 1)
//        ┌─ pending ─────────────────────────► leased ── ack ──► done
//        │     ▲                                 │
//        │     ├── released, or lease expired ───┤  attempts < max
//        │     └── given back: an earlier event of its run was released or expired (attempts − 1)
//        │                                       │
//        └──────────── requeue (attempts = 0) ◄─ dead ◄── released or expired, attempts = max
//
// `done` is final. Every step out of `leased` asks for the lease id that is in the row and for a lease that has not
// expired: that is the fence. Nothing happens by a timer: a lease that expired is found by the next claim that may have
// its lane.
//
// A lane is what must stay in order: a conversation, or an event without channel_ref alone. The ids cannot clash, since
// the id of a conversation is the id of its first event.

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

const FIRST_BACK_OFF_MS = 1000
const LONGEST_BACK_OFF_MS = 3_600_000

/** One event in one subscription. */
export interface Delivery {
  readonly eventId: number
  readonly lane: number
  readonly state: DeliveryState
  /** Hand-outs that it had to answer for. */
  readonly attempts: number
  /** While pending: not handed out before. */
  readonly availableAt: number
  /** Of the live lease; kept when done, so that an ack that is sent again is known. */
  readonly leaseId: string | null
  readonly leaseExpiresAt: number | null
  /** The lease holds the whole lane. */
  readonly ordered: boolean
  /** The token that claimed it last. */
  readonly keyId: string | null
  /** When it became done or dead. */
  readonly settledAt: number | null
  /** Entries in its history. */
  readonly entries: number
}

export interface Lease {
  readonly id: string
  readonly expiresAt: number
  readonly ordered: boolean
  readonly keyId: string
}

/** An entry of an event's history: what became of a hand-out that was not acknowledged, or who brought it back. */
export interface HistoryEntry {
  readonly eventId: number
  readonly number: number
  readonly at: number
  readonly what: 'released' | 'expired' | 'requeued'
  /** What it was afterwards. */
  readonly state: DeliveryState
  readonly attempts: number
  readonly keyId: string | null
  readonly error: string | null
}

export interface Change {
  readonly delivery: Delivery
  readonly entry: HistoryEntry | null
}

export function noticed(eventId: number, lane: number, now: number): Delivery {
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
  readonly keyId: string | null
  readonly error: string | null
}

/** A hand-out that came to nothing: once more later, or dead. */
export function fail(delivery: Delivery, failure: Failure): Change {
  const isDead = delivery.attempts >= failure.maxAttempts
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

/** It was behind an event of its run that failed, and has to wait for that one. This was no attempt of its own. */
export function giveBack(delivery: Delivery): Delivery {
  return { ...free(delivery), state: 'pending', attempts: Math.max(0, delivery.attempts - 1) }
}

export function requeue(delivery: Delivery, now: number, keyId: string): Change {
  const after: Delivery = {
    ...delivery,
    state: 'pending',
    attempts: 0,
    availableAt: now,
    settledAt: null,
    entries: delivery.entries + 1,
  }
  return { delivery: after, entry: entryOf(after, { what: 'requeued', at: now, keyId, error: null }) }
}

/** 1, 2, 4, … s, up to a quarter more so that what failed together does not come back together. */
export function backOffMs(attempts: number, jitter: number): number {
  const plain = Math.min(LONGEST_BACK_OFF_MS, FIRST_BACK_OFF_MS * 2 ** Math.max(0, attempts - 1))
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

/** Under which leases a lane is. Under an ordered one, what arrives has to wait for its end. */
export const HELD = { not: 0, ordered: 1, unordered: 2 } as const
export type Held = (typeof HELD)[keyof typeof HELD]

/** When a lane has something to hand out. */
export interface LaneTimes {
  /** The lowest event that is not final; null: nothing to do. */
  readonly head: number | null
  /** For an ordered claim. */
  readonly readyAt: number | null
  /** For an unordered one, where that is earlier. */
  readonly openAt: number | null
  readonly held: Held
}

export interface PendingFacts {
  readonly lane: number
  readonly head: { readonly eventId: number; readonly availableAt: number } | null
  /** When the first of all that are pending may be handed out. */
  readonly openAt: number | null
}

/** What the times of a lane depend on of all that is under a lease there. */
export interface LeaseFacts {
  readonly lane: number
  readonly lowest: number
  readonly firstExpiry: number
  readonly lastExpiry: number
  readonly isOrdered: boolean
}

/** Null: nothing is. */
export function leaseFacts(leased: Iterable<Delivery>): LeaseFacts | null {
  let all: LeaseFacts | null = null
  for (const { lane, eventId, leaseExpiresAt, ordered } of leased) {
    const expiry = leaseExpiresAt ?? 0
    all = addLeases(all, { lane, lowest: eventId, firstExpiry: expiry, lastExpiry: expiry, isOrdered: ordered })
  }
  return all
}

/** Of the same lane. */
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
