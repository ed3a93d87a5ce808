// Taking notice: a subscription makes rows for the next events of the index. What a claim may have of them it gets at once, so that
// most events are written as leased and never as waiting.

import {
  type Delivery,
  handOut,
  HELD,
  joinedTimes,
  type LaneTimes,
  type Lease,
  laneTimes,
  noticed,
} from './processing.ts'
import {
  ask,
  type Claimed,
  type ClaimOrder,
  type IndexedEvent,
  inTurns,
  type LaneChange,
  type Plan,
  withinBytes,
} from './processing-plan.ts'

/** Of so many entries of the index a claim takes notice in one go at most, and so often: its work is bounded. */
const NOTICE_ROWS = 1000
const NOTICES = 2

export interface Noticed extends Claimed {
  /** So many entries of the index it went through. */
  readonly rows: number
}

/**
 * Takes notice of the next so many entries of the index, or of many if a conversation has several of them: the heads of others may
 * stand behind those, and come first. Hands out what there is room for.
 */
export function* planNotice(rows: number, order: ClaimOrder): Plan<Noticed> {
  const { now, limit, lease } = order
  const few = yield* ask('indexed', { limit: rows })
  const found = few.length === rows && !areHeads(few) ? yield* ask('indexed', { limit: NOTICE_ROWS }) : few
  const last = found.at(-1)
  if (!last) return { rows: 0, handedOut: [], bytes: 0, isFull: false, foundNoLane: true }
  const events = found.filter(({ isEvent }) => isEvent)
  const byLane = Map.groupBy(
    events.map(({ eventId, conversationId }) => noticed(eventId, conversationId ?? eventId, now)),
    ({ lane }) => lane,
  )
  const ids = Array.from(byLane.keys()).toSorted((a, b) => a - b)
  const states = ids.length > 0 ? yield* ask('lanes', { lanes: ids }) : []
  const timesOf = new Map<number, LaneTimes>(states.map((one) => [one.lane, one]))
  const runs = Array.from(byLane).flatMap(([lane, run]) =>
    (order.lane === null || order.lane === lane) && takesMore(timesOf.get(lane), lease) ? [run] : [],
  )
  const picked = inTurns(runs, limit)
  const { fitting, bytes } = withinBytes(picked, new Map(events.map(({ eventId, size }) => [eventId, size])), order)
  const leased = fitting.map((delivery) => handOut(delivery, lease))
  yield* write(byLane, leased, timesOf, now)
  yield* ask('moveFrontier', { frontier: last.eventId })
  const isFull = leased.length === limit || fitting.length < picked.length
  return { rows: found.length, handedOut: leased, bytes, isFull, foundNoLane: ids.length === 0 }
}

function areHeads(found: readonly IndexedEvent[]): boolean {
  const lanes = found.flatMap(({ isEvent, conversationId }) =>
    isEvent && conversationId !== null ? [conversationId] : [],
  )
  return new Set(lanes).size === lanes.length
}

/** Nothing is before what is new; or what is does not matter to whoever wants no order. */
function takesMore(times: LaneTimes | undefined, { ordered }: Lease): boolean {
  return !times || times.head === null || (!ordered && times.held === HELD.unordered)
}

function* write(
  byLane: ReadonlyMap<number, readonly Delivery[]>,
  leased: readonly Delivery[],
  timesOf: ReadonlyMap<number, LaneTimes>,
  now: number,
): Plan<void> {
  const leasedBy = Map.groupBy(leased, ({ lane }) => lane)
  const waiting: Delivery[] = []
  const behind: { lane: number; head: number }[] = []
  const changes: LaneChange[] = []
  for (const [lane, run] of byLane) {
    const taken = leasedBy.get(lane) ?? []
    // A run is taken from its beginning.
    const left = run.slice(taken.length)
    waiting.push(...left)
    if (taken.length === 0) behind.push({ lane, head: run[0]!.eventId })
    else changes.push({ lane, ...timesWith(timesOf.get(lane), taken, left[0], now), done: 0, dead: 0 })
  }
  if (byLane.size > 0)
    yield* ask('notice', { leased, waiting, behind: behind.toSorted((a, b) => a.lane - b.lane), now })
  if (changes.length > 0) yield* ask('saveLanes', { lanes: changes })
}

function timesWith(
  times: LaneTimes | undefined,
  leased: readonly Delivery[],
  next: Delivery | undefined,
  now: number,
): LaneTimes {
  const openAt = next ? now : null
  if (times && times.head !== null) return joinedTimes(times, leased, openAt)
  return laneTimes(leased, { head: next ?? null, openAt })
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
  #isOver = false

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
    if (this.#isOver || this.#notices === NOTICES) return 0
    return this.#notices > 0 && this.grants.length === 0 ? NOTICE_ROWS : this.order.limit
  }

  take({ handedOut, bytes, isFull }: Claimed): void {
    for (const { eventId, lane, attempts } of handedOut) this.grants.push({ eventId, lane, attempts })
    this.#bytes += bytes
    this.#isOver ||= isFull
  }

  takeNoticed(noticed: Noticed): void {
    this.take(noticed)
    this.#notices += 1
    this.#isOver ||= noticed.rows === 0
  }
}
