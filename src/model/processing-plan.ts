// How claims, acks, extensions, releases and requeues come about, written once for every database. A plan is a generator:
// it asks for rows, decides, and says what to write. A driver answers its questions, all of one plan in one transaction,
// and has locked the lanes whose deliveries it gives out.

import { Board } from './processing-board.ts'
import {
  acknowledge,
  backOffMs,
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
  type PendingFacts,
  requeue,
} from './processing.ts'

export interface LaneState extends LaneTimes {
  readonly lane: number
}

export interface LaneChange extends LaneState {
  /** How many more are done, and dead, than before. */
  readonly done: number
  readonly dead: number
}

export interface IndexedEvent {
  readonly eventId: number
  readonly isEvent: boolean
  readonly conversationId: number | null
  readonly size: number
}

/** What a subscription took notice of: what is leased at once, what waits, and the lanes of which all has to wait. */
export interface NoticedEvents {
  readonly leased: readonly Delivery[]
  readonly waiting: readonly Delivery[]
  readonly behind: readonly { readonly lane: number; readonly head: number }[]
}

export interface ReadyLane {
  readonly lane: number
  /** Something in it is under a lease, expired or not. */
  readonly isHeld: boolean
}

/** Bytes of the payloads, by event. */
export type Sizes = ReadonlyMap<number, number>

export interface PendingDeliveries {
  readonly deliveries: readonly Delivery[]
  readonly sizes: Sizes
}

export interface Locked {
  readonly deliveries: readonly Delivery[]
  /** All else that is under a lease in their lanes, by lane. */
  readonly others: readonly LeaseFacts[]
  /** Null if they were not asked for. */
  readonly facts: readonly PendingFacts[] | null
}

/** What a plan may ask, and what it is answered. */
export interface Questions {
  /** Lanes that may be handed out from, in their order, and locked. */
  readyLanes: [{ now: number; limit: number; ordered: boolean; lane: number | null }, readonly ReadyLane[]]
  /**
   * These deliveries as they are once their lanes are locked; if runs are wanted, what else is under an ordered lease there; and what is
   * pending there, if a time is given. A driver may give more of what is under a lease.
   */
  lock: [{ ids: readonly number[]; runs: boolean; now: number | null }, Locked]
  /**
   * What is under a lease in those of the lanes that are held; and in each lane the first so many that are pending, in the order of events:
   * only those available by then, if a time is given.
   */
  contents: [
    { lanes: readonly number[]; held: readonly number[]; perLane: number; availableBy: number | null },
    { readonly leased: readonly Delivery[]; readonly pending: PendingDeliveries },
  ]
  pendingFacts: [{ lanes: readonly number[]; now: number }, readonly PendingFacts[]]
  sizes: [{ ids: readonly number[] }, Sizes]
  saveDeliveries: [{ deliveries: readonly Delivery[]; entries: readonly HistoryEntry[] }, unknown]
  saveLanes: [{ lanes: readonly LaneChange[] }, unknown]
  /**
   * Gives their times to those of the lanes that have nothing to do, or never had, and without order adds to those that are under no ordered
   * lease; which ones. All are locked, those named beside them too.
   */
  take: [{ lanes: readonly LaneState[]; ordered: boolean; beside: readonly number[] }, readonly number[]]
  /** What the index has beyond what the subscription took notice of; the subscription is locked. */
  indexed: [{ limit: number }, readonly IndexedEvent[]]
  notice: [NoticedEvents & { now: number }, unknown]
  moveFrontier: [{ frontier: number }, unknown]
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
  /** The first is taken however large it is. */
  readonly atLeastOne: boolean
  /** Only from this lane. */
  readonly lane: number | null
  readonly maxAttempts: number
}

export interface Claimed {
  readonly handedOut: readonly Delivery[]
  readonly bytes: number
  /** There is no room for more: in number, or in bytes. */
  readonly isFull: boolean
}

/** What was handed out: the heads of the lanes first, then what follows them, in turns. */
export function* planClaim(order: ClaimOrder): Plan<Claimed & { readonly foundNoLane: boolean }> {
  const { now, limit, lease } = order
  const ready = yield* ask('readyLanes', { now, limit, ordered: lease.ordered, lane: order.lane })
  if (ready.length === 0) return { handedOut: [], bytes: 0, isFull: false, foundNoLane: true }
  const lanes = ready.map(({ lane }) => lane)
  const held = ready.filter(({ isHeld: is }) => is).map(({ lane }) => lane)
  const share = Math.min(limit - lanes.length + 1, 2 * Math.ceil(limit / lanes.length))
  const availableBy = lease.ordered ? null : now
  const { leased, pending } = yield* ask('contents', { lanes, held, perLane: share, availableBy })
  const board = new Board(leased)
  expireAll(board, order)
  const waiting = Map.groupBy(pending.deliveries, ({ lane }) => lane)
  const runs = lanes.map((lane) => runOf(board.rowsOf(lane), waiting.get(lane) ?? [], share, order))
  const picked = inTurns(runs, limit)
  const back = picked.flatMap(({ eventId }) => (pending.sizes.has(eventId) ? [] : [eventId]))
  const sizes = back.length > 0 ? new Map([...pending.sizes, ...(yield* ask('sizes', { ids: back }))]) : pending.sizes
  const { fitting, bytes } = withinBytes(picked, sizes, order)
  const handedOut = fitting.map((delivery) => board.put(delivery, { delivery: handOut(delivery, lease), entry: null }))
  yield* finish(board, lanes, now)
  const isFull = handedOut.length === limit || fitting.length < picked.length
  return { handedOut, bytes, isFull, foundNoLane: false }
}

/** Leases that nobody kept. Of a run only the first had begun, as far as one can tell: it alone answers for it. */
function expireAll(board: Board, { now, maxAttempts }: ClaimOrder): void {
  const blamed = new Set<string>()
  for (const row of board.rows().filter((one) => one.state === 'leased' && isExpired(one, now))) {
    const run = `${row.lane} ${row.leaseId}`
    if (row.ordered && blamed.has(run)) {
      board.put(row, { delivery: { ...giveBack(row), availableAt: row.leaseExpiresAt ?? now }, entry: null })
      continue
    }
    blamed.add(run)
    const { keyId } = row
    const availableAt = row.leaseExpiresAt ?? now
    board.put(row, fail(row, { what: 'expired', at: now, availableAt, maxAttempts, keyId, error: null }))
  }
}

/** What a lane may hand out now, in the order of its events. */
function runOf(
  known: readonly Delivery[],
  waiting: readonly Delivery[],
  asked: number,
  { now, lease }: ClaimOrder,
): Delivery[] {
  const live = known.filter(({ state }) => state === 'leased')
  if (live.some(({ ordered }) => ordered || lease.ordered)) return []
  // Where there may be more waiting than was asked for, what came back above them has to wait with those.
  const upTo = waiting.length < asked ? Number.POSITIVE_INFINITY : waiting.at(-1)!.eventId
  const back = known.filter(({ state, eventId }) => state === 'pending' && eventId <= upTo)
  const all = back.length === 0 ? waiting : [...back, ...waiting].toSorted((a, b) => a.eventId - b.eventId)
  if (!lease.ordered) return all.filter(({ availableAt }) => availableAt <= now)
  // What failed before goes alone: if it takes its processor down, nothing behind it is touched.
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

/** One of a list of leases, and what is asked for it. */
export interface LeaseItem {
  readonly id: number
  readonly leaseId: string
}

export interface ReleaseItem extends LeaseItem {
  readonly delayMs: number | null
  readonly error: string | null
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

/** An ack that is sent again is answered as before: whoever lost the first answer did its work. */
export function* planAck(items: readonly LeaseItem[], now: number): Plan<Settled[]> {
  // What is done was leased before: what is pending stays the same, and is asked for at once.
  const { deliveries, others, facts } = yield* lock(items, { runs: false, now })
  const board = new Board(deliveries, others)
  const settled = items.map(({ id, leaseId }): Settled => {
    const row = board.get(id)
    if (row?.state === 'done' && row.leaseId === leaseId) return settledAs(row)
    if (!isHeld(row, leaseId, now)) return { id, ok: false }
    return settledAs(board.put(row, { delivery: acknowledge(row, now), entry: null }))
  })
  yield* finish(board, [], now, facts)
  return settled
}

/** A run has one lease: extending an event of it extends the run. */
export function* planExtend(items: readonly LeaseItem[], expiresAt: number, now: number): Plan<Settled[]> {
  const board = yield* boardOf(items, true)
  const settled = items.map(({ id, leaseId }): Settled => {
    const row = board.get(id)
    if (!isHeld(row, leaseId, now)) return { id, ok: false }
    for (const one of row.ordered ? board.runOf(row) : [row]) {
      board.put(one, { delivery: { ...one, leaseExpiresAt: expiresAt }, entry: null })
    }
    return settledAs(board.get(id)!)
  })
  yield* finish(board, [], now)
  return settled
}

export interface ReleaseRules {
  readonly now: number
  readonly maxAttempts: number
  readonly keyId: string
  /** From 0 to below 1. */
  readonly jitter: number
}

/** Gives back the events, and with an event of a run all that come after it: otherwise they would overtake it. */
export function* planRelease(items: readonly ReleaseItem[], rules: ReleaseRules): Plan<Settled[]> {
  const { now, maxAttempts, keyId, jitter } = rules
  const board = yield* boardOf(items, true)
  const settled = new Map<string, Settled>()
  const keyOf = ({ id, leaseId }: LeaseItem): string => `${id} ${leaseId}`
  for (const item of items.toSorted((a, b) => a.id - b.id)) {
    const row = board.get(item.id)
    if (settled.has(keyOf(item))) continue
    if (!isHeld(row, item.leaseId, now)) {
      settled.set(keyOf(item), { id: item.id, ok: false })
      continue
    }
    const behind = row.ordered ? board.runOf(row).filter(({ eventId }) => eventId > row.eventId) : []
    const availableAt = now + (item.delayMs ?? backOffMs(row.attempts, jitter))
    const failure = { what: 'released', at: now, availableAt, maxAttempts, keyId, error: item.error } as const
    settled.set(keyOf(item), settledAs(board.put(row, fail(row, failure))))
    for (const one of behind) {
      const back = board.put(one, { delivery: giveBack(one), entry: null })
      settled.set(`${one.eventId} ${item.leaseId}`, settledAs(back))
    }
  }
  yield* finish(board, [], now)
  return items.map((item) => settled.get(keyOf(item))!)
}

/** Brings back those of the events that are dead; the ids of these. */
export function* planRequeue(ids: readonly number[], now: number, keyId: string): Plan<number[]> {
  const board = yield* boardOf(
    ids.map((id) => ({ id })),
    false,
  )
  const dead = board.rows().filter(({ state, eventId }) => state === 'dead' && ids.includes(eventId))
  for (const row of dead) board.put(row, requeue(row, now, keyId))
  yield* finish(board, [], now)
  return dead.map(({ eventId }) => eventId)
}

function* boardOf(items: readonly { readonly id: number }[], runs: boolean): Plan<Board> {
  const { deliveries, others } = yield* lock(items, { runs, now: null })
  return new Board(deliveries, others)
}

function lock(items: readonly { readonly id: number }[], more: { runs: boolean; now: number | null }): Plan<Locked> {
  return ask('lock', { ids: Array.from(new Set(items.map(({ id }) => id))), ...more })
}

/** Writes what changed, and when each lane that changed, or is named, has something to hand out next; from what is pending there, if that is known. */
function* finish(
  board: Board,
  named: readonly number[],
  now: number,
  known: readonly PendingFacts[] | null = null,
): Plan<void> {
  const { deliveries, entries } = board.changes()
  if (deliveries.length > 0) yield* ask('saveDeliveries', { deliveries, entries })
  const lanes = Array.from(new Set([...named, ...deliveries.map(({ lane }) => lane)]))
  if (lanes.length === 0) return
  // Under an ordered lease nothing else in the lane matters until its end.
  const leases = new Map(lanes.map((lane) => [lane, board.leasesOf(lane)]))
  const open = lanes.filter((lane) => !leases.get(lane)?.isOrdered)
  const found = known ?? (open.length > 0 ? yield* ask('pendingFacts', { lanes: open, now }) : [])
  const facts = new Map(found.map((one) => [one.lane, one]))
  const nothing = { head: null, openAt: null }
  const changes = lanes.map((lane): LaneChange => {
    return { lane, ...laneTimes(leases.get(lane) ?? null, facts.get(lane) ?? nothing), ...board.counts(lane) }
  })
  yield* ask('saveLanes', { lanes: changes })
}

function settledAs({ eventId, state, leaseExpiresAt, availableAt }: Delivery): Settled {
  return { id: eventId, ok: true, state, leaseExpiresAt, availableAt }
}
