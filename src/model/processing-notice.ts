// Taking notice: a subscription makes rows for the next events of the index. What a claim may have of them it gets at once, so that
// most events are written as leased and never as waiting.

import { type Delivery, handOut, laneTimes, leaseFacts, noticed } from './processing.ts'
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

/** Of so many entries of the index a claim takes notice in one go at most, and so often: its work is bounded. */
const NOTICE_ROWS = 1000
const NOTICES = 2

export interface Noticed extends Claimed {
  /** So many entries of the index it went through. */
  readonly rows: number
  /** So many events it did not hand out. */
  readonly left: number
}

/**
 * Takes notice of the next so many entries of the index, or of many if order matters and a conversation has several of them: the heads of
 * others may stand behind those, and come first. Hands out what there is room for.
 */
export function* planNotice(rows: number, order: ClaimOrder): Plan<Noticed> {
  const { now, limit, lease } = order
  const few = yield* ask('indexed', { limit: rows })
  const seeksHeads = lease.ordered && few.length === rows && !areHeads(few)
  const found = seeksHeads ? yield* ask('indexed', { limit: NOTICE_ROWS }) : few
  const last = found.at(-1)
  if (!last) return { rows: 0, left: 0, handedOut: [], bytes: 0, isFull: false }
  const events = found.filter(({ isEvent }) => isEvent)
  const news = events.map(({ eventId, conversationId }) => noticed(eventId, conversationId ?? eventId, now))
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
  if (byLane.size > 0) yield* ask('notice', { leased, waiting, behind: behind.toSorted(byId), now })
  yield* ask('moveFrontier', { frontier: last.eventId })
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

/** Those of them whose lane had nothing to do: nothing is before what is new there. Without order all but those that an ordered lease holds back. */
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

/** What a claim leased, before it is read. */
export interface Grant {
  readonly eventId: number
  readonly lane: number
  readonly attempts: number
}

/** How one claim goes: first from lanes that are ready, then from what it takes notice of. */
export class ClaimCourse {
  readonly grants: Grant[] = []
  readonly #whole: Omit<ClaimOrder, 'atLeastOne'>
  #bytes = 0
  #notices = 0
  #left = 0
  #isFull = false
  #isAtEnd = false

  constructor(whole: Omit<ClaimOrder, 'atLeastOne'>) {
    this.#whole = whole
  }

  /** What there is room for. */
  get order(): ClaimOrder {
    const { limit, maxBytes } = this.#whole
    const atLeastOne = this.grants.length === 0
    return { ...this.#whole, limit: limit - this.grants.length, maxBytes: maxBytes - this.#bytes, atLeastOne }
  }

  /** Of how many entries of the index it should take notice next; 0: it is over. */
  get noticeRows(): number {
    if (this.#isFull || this.#isAtEnd || this.#notices === NOTICES) return 0
    return this.#notices > 0 && this.grants.length === 0 ? NOTICE_ROWS : this.order.limit
  }

  /**
   * Whether it should look for lanes that are ready once more: if it has nothing yet, since another claim may have taken notice of
   * more than it had room for; and if it wants no order, since what is new may be behind something that does not hold it up.
   */
  get mayLookAgain(): boolean {
    return !this.#isFull && (this.grants.length === 0 || (this.#left > 0 && !this.#whole.lease.ordered))
  }

  take({ handedOut, bytes, isFull }: Claimed): void {
    for (const { eventId, lane, attempts } of handedOut) this.grants.push({ eventId, lane, attempts })
    this.#bytes += bytes
    this.#isFull ||= isFull
  }

  takeNoticed(noticed: Noticed): void {
    this.take(noticed)
    this.#notices += 1
    this.#left += noticed.left
    this.#isAtEnd ||= noticed.rows === 0
  }
}
