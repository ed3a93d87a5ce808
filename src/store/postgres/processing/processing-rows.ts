// Answers the questions of a processing plan on PostgreSQL, one statement each for all lanes at once. A lane's row is
// the lock of the whole lane; the migration states the lock order.

import {
  type Delivery,
  type HistoryEntry,
  type LeaseFacts,
  LOST_EVENT,
  NO_OWN_RULES,
  type OwnRetryRules,
  type PendingFacts,
} from '../../../model/processing.ts'
import type { IndexedEvent, LaneChange, LaneState, Plan, Questions, ReadyLane } from '../../../model/processing-plan.ts'
import { type DeliveryCells, delivery, type PendingCells, pendingDeliveries } from '../../rows.ts'
import { bigints, texts } from '../connection/binary-array.ts'
import type { Connection, Row, Statement } from '../connection/connection.ts'
import * as sql from './processing-statements.ts'

/** A subscription of a tenant, as key columns. */
export type Queue = readonly [companyId: number, accountId: number, subscription: number]

export type Answers = {
  readonly [N in keyof Questions]: (
    connection: Connection,
    queue: Queue,
    ask: Questions[N][0],
    sizes: sql.Sizes,
  ) => Promise<Questions[N][1]>
}

type LeaseCells = [lane: number, lowest: number, firstExpiry: number, lastExpiry: number, ordered: number]
type IndexedCells = [eventId: number, isEvent: boolean, conversationId: number | null, size: number | null]

/** Runs a plan to its end, inside the caller's transaction. `unsized`: every event counts as empty. */
export async function runPlan<T>(
  plan: Plan<T>,
  connection: Connection,
  queue: Queue,
  sizes: sql.Sizes = 'sized',
): Promise<T> {
  let step = plan.next()
  while (!step.done) {
    const { name, ask } = step.value
    const answer = answers[name] as (...args: readonly unknown[]) => Promise<unknown>
    step = plan.next(await answer(connection, queue, ask, sizes))
  }
  return step.value
}

const answers: Answers = {
  readyLanes: async (connection, queue, { now, limit, ordered, lane }) => {
    const lanesOf = async (asked: Statement, ...more: (number | boolean)[]) =>
      (await connection.query<{ lane: number; held: number }>(asked, [...queue, now, ...more])).map(
        (row): ReadyLane => ({ lane: row.lane, isHeld: row.held !== 0 }),
      )
    if (lane !== null) return lanesOf(sql.READY_LANE, lane, !ordered)
    if (ordered) return lanesOf(sql.READY, limit)
    const found = await lanesOf(sql.READY_OR_OPEN, limit)
    return found.length > 0 ? found : lanesOf(sql.WAIT)
  },
  lock: async (connection, queue, { ids, runs, now }) => {
    const wanted = bigints(ids)
    // The later statements see the rows as of when the first has its locks. A delivery without a lane is being deleted.
    const [lanes, rows, besides, leases, facts] = await Promise.all([
      connection.query<{ lane: number }>(sql.LOCK, [...queue, wanted]),
      connection.rows<DeliveryCells>(sql.LOCKED, [...queue, wanted]),
      runs ? connection.rows<DeliveryCells>(sql.LOCKED_RUNS, [...queue, wanted]) : [],
      connection.rows<LeaseCells>(sql.LEASES_BESIDE, [...queue, wanted, runs]),
      now === null ? null : connection.query(sql.FACTS_BESIDE, [...queue, wanted, now]),
    ])
    const locked = new Set(lanes.map(({ lane }) => lane))
    const deliveries = [...rows, ...besides].map(delivery).filter(({ lane }) => locked.has(lane))
    return { deliveries, others: leases.map(leaseFactsOf), facts: facts?.map(pendingFacts) ?? null }
  },
  contents: async (connection, queue, { lanes, held, perLane, availableBy }, sizes) => {
    const [leased, first] = await Promise.all([
      held.length > 0 ? connection.rows<DeliveryCells>(sql.LEASED, [...queue, bigints(held)]) : [],
      connection.rows<PendingCells>(sql.PENDING[sizes], [...queue, bigints(lanes), perLane, availableBy]),
    ])
    const found = new Set(first.map(([, lane]) => lane))
    const others = availableBy === null ? [] : lanes.filter((lane) => !found.has(lane))
    const soonest =
      others.length === 0
        ? []
        : await connection.rows<PendingCells>(sql.PENDING_BY_TIME[sizes], [
            ...queue,
            bigints(others),
            perLane,
            availableBy,
          ])
    const pending = [...first, ...soonest.toSorted(([one], [other]) => one - other)]
    return { leased: leased.map(delivery), pending: pendingDeliveries(pending) }
  },
  pendingFacts: async (connection, queue, { lanes, now }) =>
    (await connection.query(sql.FACTS, [...queue, bigints(lanes), now])).map(pendingFacts),
  retryRules: async (connection, queue) => {
    const [row] = await connection.query<OwnRetryRules>(sql.RETRY_RULES, queue)
    return row ?? NO_OWN_RULES
  },
  sizes: async (connection, [companyId], { ids }, sizes) => {
    if (sizes === 'unsized') return new Map()
    const rows = await connection.query<{ id: number; size: number }>(sql.SIZES, [companyId, bigints(ids)])
    return new Map(rows.map(({ id, size }) => [id, size]))
  },
  saveDeliveries: async (connection, queue, { deliveries, entries }) => {
    const ids = bigints(deliveries.map(({ eventId }) => eventId))
    const first = deliveries[0]!
    if (areDoneAlike(deliveries)) {
      connection.send(sql.UPDATE_DONE, [...queue, ids, first.settledAt])
      return
    }
    if (entries.length === 0 && areLeasedAlike(deliveries)) {
      const { attempts, leaseId, leaseExpiresAt, ordered, keyId } = first
      connection.send(sql.UPDATE_LEASED, [...queue, ids, attempts, leaseId, leaseExpiresAt, ordered ? 1 : 0, keyId])
      return
    }
    connection.send(sql.UPDATE, [
      ...queue,
      ids,
      bigints(deliveries.map(({ lane }) => lane)),
      texts(deliveries.map(({ state }) => state)),
      bigints(deliveries.map(({ attempts }) => attempts)),
      bigints(deliveries.map(({ availableAt }) => availableAt)),
      texts(deliveries.map(({ leaseId }) => leaseId)),
      bigints(deliveries.map(({ leaseExpiresAt }) => leaseExpiresAt)),
      bigints(deliveries.map(({ ordered }) => (ordered ? 1 : 0))),
      texts(deliveries.map(({ keyId }) => keyId)),
      bigints(deliveries.map(({ settledAt }) => settledAt)),
      bigints(deliveries.map((one) => one.entries)),
    ])
    if (entries.length === 0) return
    const errors = await errorsToKeep(connection, queue, entries)
    connection.send(sql.ADD_ENTRIES, [
      ...queue,
      bigints(entries.map(({ eventId }) => eventId)),
      bigints(entries.map(({ number }) => number)),
      bigints(entries.map(({ at }) => at)),
      texts(entries.map(({ what }) => what)),
      texts(entries.map(({ state }) => state)),
      bigints(entries.map(({ attempts }) => attempts)),
      texts(entries.map(({ keyId }) => keyId)),
      texts(errors),
    ])
  },
  saveLanes: async (connection, queue, { lanes }) => {
    const { true: resting = [], false: others = [] } = Object.groupBy(lanes, (one) => String(isAtRest(one)))
    if (resting.length > 0) connection.send(sql.REST_LANES, [...queue, bigints(resting.map(({ lane }) => lane))])
    if (others.length === 0) return
    const [done, dead] = [others.map((one) => one.done), others.map((one) => one.dead)]
    connection.send(sql.UPDATE_LANES, [...queue, ...laneArrays(others), bigints(done), bigints(dead)])
  },
  take: async (connection, queue, { lanes, ordered, beside }) => {
    const all = [...lanes.map(({ lane }) => lane), ...beside]
    if (beside.length > 0) connection.send(sql.LOCK_LANES, [...queue, bigints(all)])
    if (lanes.length === 0) return []
    const taken = await connection.query<{ lane: number }>(sql.TAKE, [...queue, ...laneArrays(lanes), ordered])
    return taken.map(({ lane }) => lane)
  },
  indexed: async (connection, queue, { limit }, sizes) => {
    // The second statement sees the subscription as of when the first has its lock.
    const [locked, rows] = await Promise.all([
      connection.query(sql.LOCK_SUBSCRIPTION, queue),
      connection.rows<IndexedCells>(sql.INDEXED[sizes], [...queue, limit]),
    ])
    if (locked.length === 0) return []
    return rows.map(
      ([eventId, isEvent, conversationId, size]): IndexedEvent => ({
        eventId,
        // Without a size the event is purged, and its entry not yet.
        isEvent: isEvent && size !== null,
        conversationId,
        size: size ?? 0,
      }),
    )
  },
  enqueue: async (connection, queue, { leased, waiting, behind, now }) => {
    const placesOf = (some: readonly Delivery[]) => [
      bigints(some.map(({ eventId }) => eventId)),
      bigints(some.map(({ lane }) => lane)),
    ]
    const [first] = leased
    if (first) {
      const { availableAt, leaseId, leaseExpiresAt, ordered, keyId } = first
      const lease = [availableAt, leaseId, leaseExpiresAt, ordered ? 1 : 0, keyId]
      connection.send(sql.INSERT_LEASED, [...queue, ...placesOf(leased), ...lease])
    }
    if (waiting.length > 0) connection.send(sql.INSERT, [...queue, ...placesOf(waiting), now])
    if (behind.length === 0) return
    const [lanes, heads] = [behind.map(({ lane }) => lane), behind.map(({ head }) => head)]
    connection.send(sql.ENQUEUE_LANES, [...queue, bigints(lanes), bigints(heads), now])
  },
  setEnqueuedUpTo: async (connection, queue, { enqueuedUpTo }) => {
    connection.send(sql.SET_ENQUEUED_UP_TO, [...queue, enqueuedUpTo])
  },
  deleteDeliveries: async (connection, queue, { ids }) => {
    connection.send(sql.DELETE_DELIVERIES, [...queue, bigints(ids)])
    connection.send(sql.DELETE_HISTORY, [...queue, bigints(ids)])
  },
  deleteEmptyLanes: async (connection, queue, { lanes }) => {
    connection.send(sql.DELETE_EMPTY_LANES, [...queue, bigints(lanes)])
  },
}

/** A text about an erased event is not kept: its processor may release it later. */
async function errorsToKeep(
  connection: Connection,
  [companyId]: Queue,
  entries: readonly HistoryEntry[],
): Promise<(string | null)[]> {
  // A text of ours says nothing of the event, whose row may be damaged.
  const isOurs = (error: string | null) => error === null || error === LOST_EVENT
  const about = entries.flatMap(({ eventId, error }) => (isOurs(error) ? [] : [eventId]))
  if (about.length === 0) return entries.map(({ error }) => error)
  const rows = await connection.query<{ id: number }>(sql.KEEP_UNERASED, [companyId, bigints(about)])
  const kept = new Set(rows.map(({ id }) => id))
  return entries.map(({ eventId, error }) => (isOurs(error) || kept.has(eventId) ? error : null))
}

function isAtRest({ head, done, dead }: LaneChange): boolean {
  return head === null && done === 1 && dead === 0
}

function areDoneAlike(deliveries: readonly Delivery[]): boolean {
  return deliveries.every(({ state, settledAt }) => state === 'done' && settledAt === deliveries[0]!.settledAt)
}

/** The same lease and equal attempts: nothing else changed, unless an event failed before. */
function areLeasedAlike(deliveries: readonly Delivery[]): boolean {
  const { leaseId, leaseExpiresAt, attempts } = deliveries[0]!
  return deliveries.every(
    (one) =>
      one.state === 'leased' &&
      one.leaseId === leaseId &&
      one.leaseExpiresAt === leaseExpiresAt &&
      one.attempts === attempts,
  )
}

function leaseFactsOf([lane, lowest, firstExpiry, lastExpiry, ordered]: LeaseCells): LeaseFacts {
  return { lane, lowest, firstExpiry, lastExpiry, isOrdered: ordered === 1 }
}

function pendingFacts(row: Row): PendingFacts {
  return {
    lane: row.lane as number,
    head: { eventId: row.event_id as number, availableAt: row.available_at as number },
    openAt: row.open_at as number | null,
  }
}

function laneArrays(lanes: readonly LaneState[]) {
  return [
    bigints(lanes.map(({ lane }) => lane)),
    bigints(lanes.map(({ head }) => head)),
    bigints(lanes.map(({ readyAt }) => readyAt)),
    bigints(lanes.map(({ openAt }) => openAt)),
    bigints(lanes.map(({ held }) => held)),
  ]
}
