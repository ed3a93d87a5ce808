// Plans of claim, ack, extend, release and requeue, written once for every database. A plan is a generator: it asks for
// rows, decides, and says what to write. A driver answers all questions of a plan in one transaction and locks the
// lanes whose deliveries it returns.

import { UnitOfWork } from './processing-unit-of-work.ts'
import {
  acknowledge,
  backOffMs,
  type Change,
  type Delivery,
  type DeliveryState,
  fail,
  giveBack,
  type HistoryEntry,
  handOut,
  isExpired,
  isHeld,
  type Lease,
  type LaneTimes,
  type LeaseFacts,
  laneTimes,
  type OwnRetryRules,
  type PendingFacts,
  requeue,
  type RetryRules,
  retryRules,
} from './processing.ts'

export interface LaneState extends LaneTimes {
  readonly lane: number
}

export interface LaneChange extends LaneState {
  /** Added to the counts of the lane. */
  readonly done: number
  readonly dead: number
}

export interface IndexedEvent {
  readonly eventId: number
  readonly isEvent: boolean
  readonly conversationId: number | null
  readonly size: number
}

/** What an enqueue inserts: leased deliveries, pending deliveries, and the lanes of which no event was leased. */
export interface NewDeliveries {
  readonly leased: readonly Delivery[]
  readonly waiting: readonly Delivery[]
  readonly behind: readonly { readonly lane: number; readonly head: number }[]
}

export interface ReadyLane {
  readonly lane: number
  /** The lane has a lease, expired or not. */
  readonly isHeld: boolean
}

/** Payload sizes in bytes, by event id. */
export type Sizes = ReadonlyMap<number, number>

export interface PendingDeliveries {
  readonly deliveries: readonly Delivery[]
  readonly sizes: Sizes
}

export interface Locked {
  readonly deliveries: readonly Delivery[]
  /** The other leases in their lanes. */
  readonly others: readonly LeaseFacts[]
  /** Null unless requested. */
  readonly facts: readonly PendingFacts[] | null
}

/** The questions of a plan, each with its answer. */
/** Pending events of a lane that an unordered claim passes to find available ones. */
export const LOOK_FOR_AVAILABLE = 1000

export interface Questions {
  /** Lanes that are ready, in hand-out order; locks them. */
  readyLanes: [{ now: number; limit: number; ordered: boolean; lane: number | null }, readonly ReadyLane[]]
  /**
   * These deliveries, read after their lanes are locked; with `runs`, also the other deliveries under an ordered lease
   * there; with `now`, facts about the pending ones. A driver may return more leased deliveries.
   */
  lock: [{ ids: readonly number[]; runs: boolean; now: number | null }, Locked]
  /**
   * The leased deliveries of the held lanes, and the first `perLane` pending ones of each lane in id order: with
   * `availableBy`, only those available by then. If the first LOOK_FOR_AVAILABLE are all in back-off, the soonest instead.
   */
  contents: [
    { lanes: readonly number[]; held: readonly number[]; perLane: number; availableBy: number | null },
    { readonly leased: readonly Delivery[]; readonly pending: PendingDeliveries },
  ]
  pendingFacts: [{ lanes: readonly number[]; now: number }, readonly PendingFacts[]]
  /** Asked only if a hand-out ended without an ack. */
  retryRules: [null, OwnRetryRules]
  sizes: [{ ids: readonly number[] }, Sizes]
  saveDeliveries: [{ deliveries: readonly Delivery[]; entries: readonly HistoryEntry[] }, unknown]
  saveLanes: [{ lanes: readonly LaneChange[] }, unknown]
  /**
   * Sets the times of lanes that are idle or new; unordered, also extends lanes without an ordered lease. Returns the
   * lanes that it changed. Locks all of them, and those in `beside`.
   */
  take: [{ lanes: readonly LaneState[]; ordered: boolean; beside: readonly number[] }, readonly number[]]
  /** Index entries that are not enqueued yet; locks the subscription. */
  indexed: [{ limit: number }, readonly IndexedEvent[]]
  enqueue: [NewDeliveries & { now: number }, unknown]
  setEnqueuedUpTo: [{ enqueuedUpTo: number }, unknown]
  /** With their history. */
  deleteDeliveries: [{ ids: readonly number[] }, unknown]
  /** Those of these lanes that hold nothing and count nothing. */
  deleteEmptyLanes: [{ lanes: readonly number[] }, unknown]
}

export type Question = { [N in keyof Questions]: { readonly name: N; readonly ask: Questions[N][0] } }[keyof Questions]
export type Plan<T> = Generator<Question, T, unknown>

export function* ask<N extends keyof Questions>(name: N, about: Questions[N][0]): Plan<Questions[N][1]> {
  return (yield { name, ask: about } as Question) as Questions[N][1]
}

export interface ClaimOrder {
  readonly now: number
  readonly lease: Lease
  readonly limit: number
  readonly maxBytes: number
  /** The first event is taken whatever its size. */
  readonly atLeastOne: boolean
  /** Only from this lane. */
  readonly lane: number | null
  /** Of subscriptions that set no number of their own. */
  readonly maxAttempts: number
}

export interface Claimed {
  readonly handedOut: readonly Delivery[]
  readonly bytes: number
  /** No room for more, in number or in bytes. */
  readonly isFull: boolean
}

/** Claims from ready lanes: the head of each lane first, then the following events in turns. */
export function* planClaim(order: ClaimOrder): Plan<Claimed & { readonly foundNoLane: boolean }> {
  const { now, limit, lease } = order
  const ready = yield* ask('readyLanes', { now, limit, ordered: lease.ordered, lane: order.lane })
  if (ready.length === 0) return { handedOut: [], bytes: 0, isFull: false, foundNoLane: true }
  const lanes = ready.map(({ lane }) => lane)
  const held = ready.filter(({ isHeld: is }) => is).map(({ lane }) => lane)
  const share = Math.min(limit - lanes.length + 1, 2 * Math.ceil(limit / lanes.length))
  const availableBy = lease.ordered ? null : now
  const { leased, pending } = yield* ask('contents', { lanes, held, perLane: share, availableBy })
  const unit = new UnitOfWork(leased)
  yield* expireAll(unit, order)
  const waiting = Map.groupBy(pending.deliveries, ({ lane }) => lane)
  const runs = lanes.map((lane) => runOf(unit.rowsOf(lane), waiting.get(lane) ?? [], share, order))
  const picked = inTurns(runs, limit)
  const back = picked.flatMap(({ eventId }) => (pending.sizes.has(eventId) ? [] : [eventId]))
  const sizes = back.length > 0 ? new Map([...pending.sizes, ...(yield* ask('sizes', { ids: back }))]) : pending.sizes
  const { fitting, bytes } = withinBytes(picked, sizes, order)
  const handedOut = fitting.map((delivery) => unit.put(delivery, { delivery: handOut(delivery, lease), entry: null }))
  yield* finish(unit, lanes, now)
  const isFull = handedOut.length === limit || fitting.length < picked.length
  return { handedOut, bytes, isFull, foundNoLane: false }
}

/**
 * Expires leases. Of a run only the first event counts an attempt: work on the others had not begun, as far as the
 * service knows.
 */
function* expireAll(unit: UnitOfWork, { now, maxAttempts: byDefault }: ClaimOrder): Plan<void> {
  const expired = unit.rows().filter((one) => one.state === 'leased' && isExpired(one, now))
  if (expired.length === 0) return
  const { maxAttempts } = yield* rules(byDefault)
  const blamed = new Set<string>()
  for (const row of expired) {
    const run = `${row.lane} ${row.leaseId}`
    if (row.ordered && blamed.has(run)) {
      unit.put(row, { delivery: { ...giveBack(row), availableAt: row.leaseExpiresAt ?? now }, entry: null })
      continue
    }
    blamed.add(run)
    const { keyId } = row
    const availableAt = row.leaseExpiresAt ?? now
    unit.put(row, fail(row, { what: 'expired', at: now, availableAt, maxAttempts, keyId, error: null }))
  }
}

function* rules(defaultMaxAttempts: number): Plan<RetryRules> {
  return retryRules(yield* ask('retryRules', null), defaultMaxAttempts)
}

/** The events that a lane may hand out now, in id order. */
function runOf(
  known: readonly Delivery[],
  waiting: readonly Delivery[],
  asked: number,
  { now, lease }: ClaimOrder,
): Delivery[] {
  const live = known.filter(({ state }) => state === 'leased')
  if (live.some(({ ordered }) => ordered || lease.ordered)) return []
  // If the lane may have more pending events than were read, returned deliveries above those must wait.
  const upTo = waiting.length < asked ? Number.POSITIVE_INFINITY : waiting.at(-1)!.eventId
  const back = known.filter(({ state, eventId }) => state === 'pending' && eventId <= upTo)
  const all = back.length === 0 ? waiting : [...back, ...waiting].toSorted((a, b) => a.eventId - b.eventId)
  if (!lease.ordered) return all.filter(({ availableAt }) => availableAt <= now)
  // An event that failed before is handed out alone: if it crashes its processor, the events behind it are not
  // affected.
  const end = all.findIndex(({ availableAt, attempts }, at) => availableAt > now || (at > 0 && attempts > 0))
  const run = end === -1 ? all : all.slice(0, end)
  return (run[0]?.attempts ?? 0) > 0 ? run.slice(0, 1) : [...run]
}

export function inTurns(runs: readonly (readonly Delivery[])[], limit: number): Delivery[] {
  const picked: Delivery[] = []
  const longest = Math.max(...runs.map((run) => run.length))
  for (let turn = 0; turn < longest; turn++) {
    for (const run of runs) {
      if (picked.length === limit) return picked
      const next = run[turn]
      if (next) picked.push(next)
    }
  }
  return picked
}

export function withinBytes(
  picked: readonly Delivery[],
  sizes: Sizes,
  { maxBytes, atLeastOne }: ClaimOrder,
): { fitting: Delivery[]; bytes: number } {
  const fitting: Delivery[] = []
  let bytes = 0
  for (const one of picked) {
    const size = sizes.get(one.eventId) ?? 0
    if (bytes + size > maxBytes && !(fitting.length === 0 && atLeastOne)) break
    fitting.push(one)
    bytes += size
  }
  return { fitting, bytes }
}

/** An event and the lease that should hold it. */
export interface LeaseItem {
  readonly id: number
  readonly leaseId: string
}

export interface ReleaseItem extends LeaseItem {
  /** Null: by the rules of the subscription. */
  readonly delayMs: number | null
  /** Of a delay by the rules: not less than this. */
  readonly minDelayMs?: number
  /** Null: nothing failed, and the hand-out counts no attempt. */
  readonly error: string | null
  /** Dead at once, whatever attempts are left. Only with an error. */
  readonly isDead?: boolean
}

export type Settled =
  | { readonly id: number; readonly ok: false }
  | {
      readonly id: number
      readonly ok: true
      readonly state: DeliveryState
      readonly leaseExpiresAt: number | null
      readonly availableAt: number
    }

/** A repeated ack gets the same answer: the processor may have lost the first one. */
export function* planAck(items: readonly LeaseItem[], now: number): Plan<Settled[]> {
  // An acked delivery was leased before, so the pending ones do not change and can be read at once.
  const { deliveries, others, facts } = yield* lock(items, { runs: false, now })
  const unit = new UnitOfWork(deliveries, others)
  const settled = items.map(({ id, leaseId }): Settled => {
    const row = unit.get(id)
    if (row?.state === 'done' && row.leaseId === leaseId) return settledAs(row)
    if (!isHeld(row, leaseId, now)) return { id, ok: false }
    return settledAs(unit.put(row, { delivery: acknowledge(row, now), entry: null }))
  })
  yield* finish(unit, [], now, facts)
  return settled
}

/** A run has one lease: extending an event of it extends the run. */
export function* planExtend(items: readonly LeaseItem[], expiresAt: number, now: number): Plan<Settled[]> {
  const unit = yield* readUnit(items, true)
  const settled = items.map(({ id, leaseId }): Settled => {
    const row = unit.get(id)
    if (!isHeld(row, leaseId, now)) return { id, ok: false }
    // Extended already, by itself or with an earlier item of its run.
    if (row.leaseExpiresAt === expiresAt) return settledAs(row)
    for (const one of row.ordered ? unit.runOf(row) : [row]) {
      unit.put(one, { delivery: { ...one, leaseExpiresAt: expiresAt }, entry: null })
    }
    return settledAs(unit.get(id)!)
  })
  yield* finish(unit, [], now)
  return settled
}

export interface ReleaseRules {
  readonly now: number
  /** Of subscriptions that set no number of their own. */
  readonly maxAttempts: number
  readonly keyId: string
  /** From 0 to below 1. */
  readonly jitter: number
}

/** Gives back the events, and with an event of a run all that come after it: otherwise they would overtake it. */
export function* planRelease(items: readonly ReleaseItem[], request: ReleaseRules): Plan<Settled[]> {
  const { now, keyId, jitter } = request
  const unit = yield* readUnit(items, true)
  const retry = yield* rules(request.maxAttempts)
  const settled = new Map<string, Settled>()
  const keyOf = ({ id, leaseId }: LeaseItem): string => `${id} ${leaseId}`
  for (const item of items.toSorted((a, b) => a.id - b.id)) {
    const row = unit.get(item.id)
    if (settled.has(keyOf(item))) continue
    if (!isHeld(row, item.leaseId, now)) {
      settled.set(keyOf(item), { id: item.id, ok: false })
      continue
    }
    const behind = row.ordered ? unit.runOf(row).filter(({ eventId }) => eventId > row.eventId) : []
    const failures = item.error === null ? 0 : row.attempts
    const availableAt = now + (item.delayMs ?? Math.max(item.minDelayMs ?? 0, backOffMs(failures, jitter, retry)))
    const failure = { what: 'released', at: now, availableAt, maxAttempts: retry.maxAttempts, keyId } as const
    const change: Change =
      item.error === null
        ? { delivery: { ...giveBack(row), availableAt }, entry: null }
        : fail(row, { ...failure, isFinal: item.isDead ?? false, error: item.error })
    settled.set(keyOf(item), settledAs(unit.put(row, change)))
    for (const one of behind) {
      const back = unit.put(one, { delivery: giveBack(one), entry: null })
      settled.set(`${one.eventId} ${item.leaseId}`, settledAs(back))
    }
  }
  yield* finish(unit, [], now)
  return items.map((item) => settled.get(keyOf(item))!)
}

/** Requeues those of the events that are dead, for a replay also those that are done; returns their ids. */
export function* planRequeue(
  ids: readonly number[],
  now: number,
  keyId: string,
  states: readonly DeliveryState[] = ['dead'],
): Plan<number[]> {
  const unit = yield* readUnit(
    ids.map((id) => ({ id })),
    false,
  )
  const wanted = new Set(ids)
  const settled = unit.rows().filter(({ state, eventId }) => states.includes(state) && wanted.has(eventId))
  for (const row of settled) unit.put(row, requeue(row, now, keyId))
  yield* finish(unit, [], now)
  return settled.map(({ eventId }) => eventId)
}

function* readUnit(items: readonly { readonly id: number }[], runs: boolean): Plan<UnitOfWork> {
  const { deliveries, others } = yield* lock(items, { runs, now: null })
  return new UnitOfWork(deliveries, others)
}

function lock(items: readonly { readonly id: number }[], more: { runs: boolean; now: number | null }): Plan<Locked> {
  return ask('lock', { ids: Array.from(new Set(items.map(({ id }) => id))), ...more })
}

/**
 * Writes the changes, and when each changed or named lane next has an event to hand out. `known`: facts about the
 * pending deliveries, if already read.
 */
function* finish(
  unit: UnitOfWork,
  named: readonly number[],
  now: number,
  known: readonly PendingFacts[] | null = null,
): Plan<void> {
  const { deliveries, entries } = unit.changes()
  if (deliveries.length > 0) yield* ask('saveDeliveries', { deliveries, entries })
  const lanes = Array.from(new Set([...named, ...deliveries.map(({ lane }) => lane)]))
  if (lanes.length === 0) return
  // Under an ordered lease no other event of the lane matters until it ends.
  const leases = new Map(lanes.map((lane) => [lane, unit.leasesOf(lane)]))
  const open = lanes.filter((lane) => !leases.get(lane)?.isOrdered)
  const found = known ?? (open.length > 0 ? yield* ask('pendingFacts', { lanes: open, now }) : [])
  const facts = new Map(found.map((one) => [one.lane, one]))
  const nothing = { head: null, openAt: null }
  const changes = lanes.map((lane): LaneChange => {
    return { lane, ...laneTimes(leases.get(lane) ?? null, facts.get(lane) ?? nothing), ...unit.counts(lane) }
  })
  yield* ask('saveLanes', { lanes: changes })
}

function settledAs({ eventId, state, leaseExpiresAt, availableAt }: Delivery): Settled {
  return { id: eventId, ok: true, state, leaseExpiresAt, availableAt }
}
