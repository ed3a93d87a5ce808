// Answers the questions of a processing plan on SQLite, one statement each. There is one writer, so its transaction is
// the lock.

import type { DatabaseSync, SQLInputValue } from 'node:sqlite'
import {
  type Delivery,
  type HistoryEntry,
  LOST_EVENT,
  NO_OWN_RULES,
  type OwnRetryRules,
  type PendingFacts,
} from '../../../model/processing.ts'
import { LOOK_FOR_AVAILABLE } from '../../../model/processing-plan.ts'
import type { IndexedEvent, LaneState, Plan, Questions, ReadyLane } from '../../../model/processing-plan.ts'
import { DELIVERY_COLUMNS, type DeliveryCells, delivery, type PendingCells, pendingDeliveries } from '../../rows.ts'

/** A subscription of a tenant, as key columns. */
export type Queue = readonly [companyId: number, accountId: number, subscription: number]

const OF_QUEUE = 'company_id = ? AND account_id = ? AND subscription = ?'
const OF_LANE = `FROM deliveries INDEXED BY deliveries_by_lane WHERE ${OF_QUEUE} AND lane = ? AND settled_at IS NULL`
const READY = `SELECT lane, held FROM lanes INDEXED BY lanes_ready WHERE ${OF_QUEUE} AND ready_at <= ?
  ORDER BY ready_at, head LIMIT ? + 0`
const OPEN = `SELECT lane, held FROM lanes INDEXED BY lanes_open WHERE ${OF_QUEUE} AND open_at <= ?
  ORDER BY open_at, head LIMIT ? + 0`
const READY_LANE = `SELECT lane, held FROM lanes WHERE ${OF_QUEUE} AND lane = ? AND (ready_at <= ? OR (? = 0 AND open_at <= ?))`
const DELIVERY = `SELECT ${DELIVERY_COLUMNS} FROM deliveries WHERE ${OF_QUEUE} AND event_id = ?`
const LEASED = `SELECT ${DELIVERY_COLUMNS} ${OF_LANE} AND state = 'leased' ORDER BY event_id`
/** Without sizes no row of the journal is read. Not NULL, which means a purged event. */
const sizeOf = (id: string, isSized: boolean): string => (isSized ? `(SELECT size FROM events WHERE id = ${id})` : '0')
const sized = (isSized: boolean): string => `${DELIVERY_COLUMNS}, ${sizeOf('event_id', isSized)}`
const pendingOf = (isSized: boolean): string =>
  `SELECT ${sized(isSized)} ${OF_LANE} AND state = 'pending' ORDER BY event_id LIMIT ? + 0`
/** Events in back-off precede them: at most LOOK_FOR_AVAILABLE are passed, then the lane is read by time. */
const availableOf = (
  isSized: boolean,
): string => `SELECT ${sized(isSized)} FROM (SELECT * ${OF_LANE} AND state = 'pending' ORDER BY event_id
  LIMIT ${LOOK_FOR_AVAILABLE} + 0) WHERE available_at <= ? LIMIT ? + 0`
const BY_TIME = `FROM deliveries INDEXED BY deliveries_by_time WHERE ${OF_QUEUE} AND lane = ? AND entries >= 0
  AND state = 'pending'`
const availableByTimeOf = (isSized: boolean): string =>
  `SELECT ${sized(isSized)} ${BY_TIME} AND available_at <= ? ORDER BY available_at LIMIT ? + 0`
const FIRST = `SELECT event_id, available_at ${OF_LANE} AND state = 'pending' ORDER BY event_id LIMIT 1`
const SOONEST = `SELECT available_at AS at ${BY_TIME} ORDER BY available_at LIMIT 1`
const SIZE = 'SELECT size FROM events WHERE id = ?'
const UPDATE = `UPDATE deliveries SET state = ?, attempts = ?, available_at = ?, lease_id = ?, lease_expires_at = ?,
  ordered = ?, key_id = ?, settled_at = ?, entries = ? WHERE ${OF_QUEUE} AND event_id = ?`
const UPDATE_LANE = `UPDATE lanes SET head = ?, ready_at = ?, open_at = ?, held = ?, done_count = done_count + ?,
  dead_count = dead_count + ? WHERE ${OF_QUEUE} AND lane = ?`
const TAKEN_READY_AT = 'max(coalesce(l.ready_at, 0), excluded.ready_at)'
const TAKEN_OPEN_AT = `min(coalesce(l.open_at, l.ready_at, excluded.ready_at), coalesce(excluded.open_at, excluded.ready_at))`
/** New events follow all existing ones of the lane. */
const TAKE = `INSERT INTO lanes AS l (company_id, account_id, subscription, lane, head, ready_at, open_at, held, done_count,
    dead_count) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0, 0)
  ON CONFLICT DO UPDATE SET head = coalesce(l.head, excluded.head), ready_at = ${TAKEN_READY_AT}, held = excluded.held,
    open_at = CASE WHEN ${TAKEN_OPEN_AT} < ${TAKEN_READY_AT} THEN ${TAKEN_OPEN_AT} END
  WHERE l.head IS NULL OR (l.held <> 1 AND ? = 0)`
/** A text about an erased event is not kept: its processor may release it later. */
const ADD_ENTRY = `INSERT INTO delivery_history (company_id, account_id, subscription, event_id, number, at, what, state,
    attempts, key_id, error)
  VALUES (?, ?, ?, ?4, ?, ?, ?, ?, ?, ?, (SELECT ?11 FROM events WHERE id = ?4 AND erased_at IS NULL))`
/** Without a text, or with one of ours, which says nothing of the event. Its row, which may be damaged, is not read. */
const ADD_OWN_ENTRY = `INSERT INTO delivery_history (company_id, account_id, subscription, event_id, number, at, what, state,
    attempts, key_id, error)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
// Only up to the index cursor: while a rebuild empties the index, missing entries must not be skipped.
const indexedOf = (
  isSized: boolean,
): string => `SELECT i.event_id, i.kind = 'event', i.conversation_id, ${sizeOf('i.event_id', isSized)}
  FROM event_index i
  WHERE i.company_id = ?1 AND i.account_id = ?2 AND i.event_id > (
    SELECT enqueued_up_to FROM subscriptions WHERE company_id = ?1 AND account_id = ?2 AND id = ?3)
    AND i.event_id <= (SELECT position FROM index_cursors WHERE source = 'events')
  ORDER BY i.event_id LIMIT ?4 + 0`
const INSERT = `INSERT INTO deliveries (company_id, account_id, subscription, event_id, lane, state, attempts, available_at,
  lease_id, lease_expires_at, ordered, key_id, entries) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0)`
/**
 * An idle lane becomes ready. In a busy one the event is added at the end, and is open unless the lane is held. Else
 * nothing is written.
 */
const ENQUEUE_LANE = `INSERT INTO lanes AS l (company_id, account_id, subscription, lane, head, ready_at, held, done_count,
    dead_count) VALUES (?, ?, ?, ?, ?, ?, 0, 0, 0)
  ON CONFLICT DO UPDATE SET
    head = coalesce(l.head, excluded.head),
    ready_at = coalesce(l.ready_at, excluded.ready_at),
    open_at = CASE WHEN l.held <> 1 AND excluded.ready_at < l.ready_at
      THEN min(coalesce(l.open_at, excluded.ready_at), excluded.ready_at) ELSE l.open_at END
  WHERE l.head IS NULL OR l.ready_at IS NULL
    OR (l.held <> 1 AND excluded.ready_at < l.ready_at AND (l.open_at IS NULL OR excluded.ready_at < l.open_at))`
const RETRY_RULES = `SELECT max_attempts AS maxAttempts, first_delay_ms AS firstDelayMs, max_delay_ms AS maxDelayMs
  FROM subscriptions WHERE company_id = ? AND account_id = ? AND id = ?`
const DELETE_DELIVERY = `DELETE FROM deliveries WHERE ${OF_QUEUE} AND event_id = ?`
const DELETE_HISTORY = `DELETE FROM delivery_history WHERE ${OF_QUEUE} AND event_id = ?`
const DELETE_EMPTY_LANE = `DELETE FROM lanes WHERE ${OF_QUEUE} AND lane = ? AND head IS NULL AND done_count = 0 AND dead_count = 0`
const SET_ENQUEUED_UP_TO =
  'UPDATE subscriptions SET enqueued_up_to = ? WHERE company_id = ? AND account_id = ? AND id = ?'

export type Answers = { readonly [N in keyof Questions]: (queue: Queue, ask: Questions[N][0]) => Questions[N][1] }

/** Runs a plan to its end, inside the caller's transaction. */
export function runPlan<T>(plan: Plan<T>, answers: Answers, queue: Queue): T {
  let step = plan.next()
  while (!step.done) {
    const { name, ask } = step.value
    step = plan.next((answers[name] as (queue: Queue, ask: unknown) => unknown)(queue, ask))
  }
  return step.value
}

/** `isSized`: false where a damaged page may hide the sizes: a claim then takes few events, since it cannot tell how large they are. */
export function prepareAnswers(db: DatabaseSync, isSized = true): Answers {
  const prepared = {
    ready: db.prepare(READY),
    open: db.prepare(OPEN),
    readyLane: db.prepare(READY_LANE),
    delivery: db.prepare(DELIVERY),
    leased: db.prepare(LEASED),
    pending: db.prepare(pendingOf(isSized)),
    available: db.prepare(availableOf(isSized)),
    availableByTime: db.prepare(availableByTimeOf(isSized)),
    first: db.prepare(FIRST),
    soonest: db.prepare(SOONEST),
    size: db.prepare(SIZE),
    retryRules: db.prepare(RETRY_RULES),
    update: db.prepare(UPDATE),
    updateLane: db.prepare(UPDATE_LANE),
    take: db.prepare(TAKE),
    addEntry: db.prepare(ADD_ENTRY),
    addOwnEntry: db.prepare(ADD_OWN_ENTRY),
    indexed: db.prepare(indexedOf(isSized)),
    insert: db.prepare(INSERT),
    enqueueLane: db.prepare(ENQUEUE_LANE),
    setEnqueuedUpTo: db.prepare(SET_ENQUEUED_UP_TO),
    deleteDelivery: db.prepare(DELETE_DELIVERY),
    deleteHistory: db.prepare(DELETE_HISTORY),
    deleteEmptyLane: db.prepare(DELETE_EMPTY_LANE),
  }
  // Rows as arrays: half the time of objects.
  const { delivery: oneDelivery, leased: leasedRows, pending, available, availableByTime, first, indexed } = prepared
  const arrays = [oneDelivery, leasedRows, pending, available, availableByTime, first, indexed]
  for (const one of arrays) one.setReturnArrays(true)
  const laneOf = (row: Record<string, unknown>): ReadyLane => ({ lane: row.lane as number, isHeld: row.held !== 0 })

  const leasedOf = (queue: Queue, lane: number): Delivery[] =>
    (prepared.leased.all(...queue, lane) as unknown as DeliveryCells[]).map(delivery)

  function readAvailable(queue: Queue, lane: number, by: number, limit: number): PendingCells[] {
    const first = prepared.available.all(...queue, lane, by, limit) as unknown as PendingCells[]
    if (first.length > 0) return first
    const soonest = prepared.availableByTime.all(...queue, lane, by, limit) as unknown as PendingCells[]
    return soonest.toSorted(([one], [other]) => one - other)
  }

  function factsOf(queue: Queue, lane: number, now: number): PendingFacts {
    const first = prepared.first.get(...queue, lane) as unknown as [number, number] | undefined
    if (!first) return { lane, head: null, openAt: null }
    const [eventId, availableAt] = first
    const head = { eventId, availableAt }
    if (availableAt <= now) return { lane, head, openAt: availableAt }
    const open = prepared.soonest.get(...queue, lane)
    return { lane, head, openAt: (open?.at ?? null) as number | null }
  }

  return {
    readyLanes: (queue, { now, limit, ordered, lane }) => {
      if (lane !== null) return prepared.readyLane.all(...queue, lane, now, ordered ? 1 : 0, now).map(laneOf)
      const ready = prepared.ready.all(...queue, now, limit).map(laneOf)
      if (ordered || ready.length === limit) return ready
      const open = prepared.open.all(...queue, now, limit).map(laneOf)
      return [...ready, ...open.filter(({ lane: id }) => ready.every((one) => one.lane !== id))].slice(0, limit)
    },
    lock: (queue, { ids, now }) => {
      const found = new Map<number, Delivery>()
      const lanes = new Set<number>()
      for (const id of ids) {
        const cells = found.has(id) ? undefined : prepared.delivery.get(...queue, id)
        if (!cells) continue
        const one = delivery(cells as unknown as DeliveryCells)
        found.set(id, one)
        if (lanes.has(one.lane)) continue
        lanes.add(one.lane)
        for (const leased of leasedOf(queue, one.lane)) found.set(leased.eventId, leased)
      }
      const facts = now === null ? null : Array.from(lanes, (lane) => factsOf(queue, lane, now))
      return { deliveries: Array.from(found.values()), others: [], facts }
    },
    contents: (queue, { lanes, held, perLane, availableBy }) => {
      const leased = held.flatMap((lane) => leasedOf(queue, lane))
      const rows = lanes.flatMap((lane) =>
        availableBy === null
          ? (prepared.pending.all(...queue, lane, perLane) as unknown as PendingCells[])
          : readAvailable(queue, lane, availableBy, perLane),
      )
      return { leased, pending: pendingDeliveries(rows) }
    },
    pendingFacts: (queue, { lanes, now }) => lanes.map((lane) => factsOf(queue, lane, now)),
    retryRules: (queue) => (prepared.retryRules.get(...queue) as OwnRetryRules | undefined) ?? NO_OWN_RULES,
    sizes: (_queue, { ids }) => new Map(ids.map((id) => [id, isSized ? Number(prepared.size.get(id)?.size ?? 0) : 0])),
    saveDeliveries: (queue, { deliveries, entries }) => {
      for (const one of deliveries) prepared.update.run(...cellsOf(one), ...queue, one.eventId)
      for (const one of entries) {
        const add = one.error === null || one.error === LOST_EVENT ? prepared.addOwnEntry : prepared.addEntry
        add.run(...queue, ...entryCells(one))
      }
    },
    saveLanes: (queue, { lanes }) => {
      for (const one of lanes) prepared.updateLane.run(...timeCells(one), one.done, one.dead, ...queue, one.lane)
    },
    take: (queue, { lanes, ordered }) =>
      lanes
        .filter((one) => prepared.take.run(...queue, one.lane, ...timeCells(one), ordered ? 1 : 0).changes === 1)
        .map(({ lane }) => lane),
    indexed: (queue, { limit }) =>
      (prepared.indexed.all(...queue, limit) as unknown as IndexedCells[]).map(
        ([eventId, isEvent, conversationId, size]): IndexedEvent => ({
          eventId,
          // Without a size the event is purged, and its entry not yet.
          isEvent: isEvent === 1 && size !== null,
          conversationId,
          size: size ?? 0,
        }),
      ),
    enqueue: (queue, { leased, waiting, behind, now }) => {
      for (const one of [...leased, ...waiting]) prepared.insert.run(...queue, ...newCells(one))
      for (const { lane, head } of behind) prepared.enqueueLane.run(...queue, lane, head, now)
    },
    setEnqueuedUpTo: ([companyId, accountId, subscription], { enqueuedUpTo }) => {
      prepared.setEnqueuedUpTo.run(enqueuedUpTo, companyId, accountId, subscription)
    },
    deleteDeliveries: (queue, { ids }) => {
      for (const id of ids) {
        prepared.deleteDelivery.run(...queue, id)
        prepared.deleteHistory.run(...queue, id)
      }
    },
    deleteEmptyLanes: (queue, { lanes }) => {
      for (const lane of lanes) prepared.deleteEmptyLane.run(...queue, lane)
    },
  }
}

function cellsOf(one: Delivery): SQLInputValue[] {
  const { state, attempts, availableAt, leaseId, leaseExpiresAt, ordered, keyId, settledAt, entries } = one
  return [state, attempts, availableAt, leaseId, leaseExpiresAt, ordered ? 1 : 0, keyId, settledAt, entries]
}

type IndexedCells = [eventId: number, isEvent: number, conversationId: number | null, size: number | null]

function newCells(one: Delivery): SQLInputValue[] {
  const { eventId, lane, state, attempts, availableAt, leaseId, leaseExpiresAt, ordered, keyId } = one
  return [eventId, lane, state, attempts, availableAt, leaseId, leaseExpiresAt, ordered ? 1 : 0, keyId]
}

function timeCells({ head, readyAt, openAt, held }: LaneState): SQLInputValue[] {
  return [head, readyAt, openAt, held]
}

function entryCells({ eventId, number, at, what, state, attempts, keyId, error }: HistoryEntry): SQLInputValue[] {
  return [eventId, number, at, what, state, attempts, keyId, error]
}
