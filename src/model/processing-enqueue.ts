// Enqueues events for a subscription: creates deliveries for the next entries of the index. A claim leases the ones it
// may have at once, so that most deliveries are inserted as leased, not as pending.

import { type Delivery, handOut, laneTimes, leaseFacts, newDelivery } from './processing.ts'
import {
  ask,
  type Claimed,
  type ClaimOrder,
  type IndexedEvent,
  inTurns,
  type LaneState,
  type Plan,
  withinBytes,
} from './processing-plan.ts'

/** Bounds on the work of one claim: index entries per enqueue, and the number of enqueues. */
const ENQUEUE_ROWS = 1000
const MAX_ENQUEUES = 2

export interface Enqueued extends Claimed {
  /** Index entries that were read. */
  readonly rows: number
  /** Events that were enqueued as pending. */
  readonly left: number
}

/**
 * Enqueues the next `rows` index entries; or ENQUEUE_ROWS, if order matters and a conversation has several of them: the
 * heads of other conversations may come after those and are handed out first. Leases what the order has room for.
 */
export function* planEnqueue(rows: number, order: ClaimOrder): Plan<Enqueued> {
  const { now, limit, lease } = order
  const few = yield* ask('indexed', { limit: rows })
  const seeksHeads = lease.ordered && few.length === rows && !areHeads(few)
  const found = seeksHeads ? yield* ask('indexed', { limit: ENQUEUE_ROWS }) : few
  const last = found.at(-1)
  if (!last) return { rows: 0, left: 0, handedOut: [], bytes: 0, isFull: false }
  const events = found.filter(({ isEvent }) => isEvent)
  const news = events.map(({ eventId, conversationId }) => newDelivery(eventId, conversationId ?? eventId, now))
  const byLane = Map.groupBy(news, ({ lane }) => lane)
  const wanted = order.lane === null ? byLane : new Map([[order.lane, byLane.get(order.lane) ?? []]])
  const runs = Array.from(wanted.values())
  const picked = lease.ordered ? inTurns(runs, limit) : news.filter(({ lane }) => wanted.has(lane)).slice(0, limit)
  const sizes = new Map(events.map(({ eventId, size }) => [eventId, size]))
  const { fitting } = withinBytes(picked, sizes, order)
  const leased = yield* take(
    fitting.map((delivery) => handOut(delivery, lease)),
    byLane,
    lease.ordered,
  )
  const isLeased = new Set(leased.map(({ eventId }) => eventId))
  const waiting = Array.from(byLane.values()).flatMap((run) => run.filter(({ eventId }) => !isLeased.has(eventId)))
  const taken = new Set(leased.map(({ lane }) => lane))
  const behind = Array.from(byLane).flatMap(([lane, [head]]) =>
    taken.has(lane) ? [] : [{ lane, head: head!.eventId }],
  )
  if (byLane.size > 0) yield* ask('enqueue', { leased, waiting, behind: behind.toSorted(byId), now })
  yield* ask('setEnqueuedUpTo', { enqueuedUpTo: last.eventId })
  const isFull = leased.length === limit || (fitting.length < picked.length && leased.length === fitting.length)
  const bytes = leased.reduce((sum, { eventId }) => sum + (sizes.get(eventId) ?? 0), 0)
  return { rows: found.length, left: waiting.length, handedOut: leased, bytes, isFull }
}

function areHeads(found: readonly IndexedEvent[]): boolean {
  const lanes = found.flatMap(({ isEvent, conversationId }) =>
    isEvent && conversationId !== null ? [conversationId] : [],
  )
  return new Set(lanes).size === lanes.length
}

/**
 * The deliveries whose lane was idle, so that no other event precedes them; unordered, all but those in a lane under an
 * ordered lease.
 */
function* take(
  leased: readonly Delivery[],
  byLane: ReadonlyMap<number, readonly Delivery[]>,
  ordered: boolean,
): Plan<Delivery[]> {
  const changes = Array.from(
    Map.groupBy(leased, ({ lane }) => lane),
    ([lane, run]): LaneState => {
      // A run is taken from its beginning.
      const next = byLane.get(lane)![run.length] ?? null
      return { lane, ...laneTimes(leaseFacts(run), { head: next, openAt: next?.availableAt ?? null }) }
    },
  )
  const lanes = changes.toSorted(byId)
  const named = new Set(lanes.map(({ lane }) => lane))
  const beside = Array.from(byLane.keys()).filter((lane) => !named.has(lane))
  const taken = new Set(byLane.size > 0 ? yield* ask('take', { lanes, ordered, beside }) : [])
  return leased.filter(({ lane }) => taken.has(lane))
}

/** The order in which lanes are locked. */
function byId(one: { readonly lane: number }, other: { readonly lane: number }): number {
  return one.lane - other.lane
}

/** An event that a claim leased, before its row is read. */
export interface Grant {
  readonly eventId: number
  readonly lane: number
  readonly attempts: number
}

/** Progress of one claim: first from ready lanes, then from newly enqueued events. */
export class ClaimProgress {
  readonly grants: Grant[] = []
  readonly #whole: Omit<ClaimOrder, 'atLeastOne'>
  #bytes = 0
  #enqueues = 0
  #left = 0
  #isFull = false
  #isAtEnd = false

  constructor(whole: Omit<ClaimOrder, 'atLeastOne'>) {
    this.#whole = whole
  }

  /** The order, reduced to the remaining room. */
  get order(): ClaimOrder {
    const { limit, maxBytes } = this.#whole
    const atLeastOne = this.grants.length === 0
    return { ...this.#whole, limit: limit - this.grants.length, maxBytes: maxBytes - this.#bytes, atLeastOne }
  }

  /** How many index entries to enqueue next; 0: the claim is complete. */
  get enqueueRows(): number {
    if (this.#isFull || this.#isAtEnd || this.#enqueues === MAX_ENQUEUES) return 0
    return this.#enqueues > 0 && this.grants.length === 0 ? ENQUEUE_ROWS : this.order.limit
  }

  /**
   * Whether to claim from ready lanes once more: if the claim has nothing yet, since another claim may have enqueued
   * more than it had room for; and if it is unordered, since newly enqueued events may follow pending ones that do not
   * block them.
   */
  get mayClaimAgain(): boolean {
    return !this.#isFull && (this.grants.length === 0 || (this.#left > 0 && !this.#whole.lease.ordered))
  }

  add({ handedOut, bytes, isFull }: Claimed): void {
    for (const { eventId, lane, attempts } of handedOut) this.grants.push({ eventId, lane, attempts })
    this.#bytes += bytes
    this.#isFull ||= isFull
  }

  addEnqueued(enqueued: Enqueued): void {
    this.add(enqueued)
    this.#enqueues += 1
    this.#left += enqueued.left
    this.#isAtEnd ||= enqueued.rows === 0
  }
}
