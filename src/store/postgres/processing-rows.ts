// The rows that processing works on, on PostgreSQL: answers to what a plan asks, one statement each for all lanes at once.
// A lane's row is the lock of everything in the lane; see the migration for the order in which they are taken.

import type { Delivery, LeaseFacts, PendingFacts } from '../../model/processing.ts'
import type { IndexedEvent, LaneState, Plan, Questions, ReadyLane } from '../../model/processing-plan.ts'
import { DELIVERY_COLUMNS, type DeliveryCells, delivery, type PendingCells, pendingDeliveries } from '../rows.ts'
import { bigints, texts, unnested } from './binary-array.ts'
import type { Connection, Row, Statement } from './connection.ts'

/** A subscription of a tenant, as every key here begins. */
export type Queue = readonly [companyId: number, accountId: number, subscription: number]

const OF_QUEUE = 'company_id = $1 AND account_id = $2 AND subscription = $3'
const statement = (name: string, text: string): Statement => ({ name: `intray_${name}`, text })

const IN_ORDER = `SELECT lane, held FROM intray.lanes WHERE ${OF_QUEUE} AND ready_at <= $4 ORDER BY ready_at, head`
const WITHOUT_ORDER = `SELECT lane, held FROM intray.lanes WHERE ${OF_QUEUE} AND open_at <= $4 ORDER BY open_at, head`
/**
 * Only lanes that nobody is at: two claims at once share the queue and do not wait for each other. When every lane that is ready
 * has somebody at it, the first of them is waited for, while no other is held.
 */
const READY = statement(
  'ready_lanes',
  `WITH free AS (${IN_ORDER} LIMIT $5 FOR NO KEY UPDATE SKIP LOCKED),
    waited AS (SELECT lane, held FROM intray.lanes WHERE ${OF_QUEUE} AND ready_at <= $4 AND NOT EXISTS (SELECT FROM free)
      AND lane = (SELECT lane FROM (${IN_ORDER} LIMIT 1) first) FOR NO KEY UPDATE)
  SELECT lane, held FROM free UNION ALL SELECT lane, held FROM waited`,
)
/** For whoever wants no order: those that are ready, and where there is room, those that are only open. */
const READY_OR_OPEN = statement(
  'ready_or_open_lanes',
  `WITH ready AS (${IN_ORDER} LIMIT $5 FOR NO KEY UPDATE SKIP LOCKED),
    open AS (${WITHOUT_ORDER} LIMIT $5 - (SELECT count(*) FROM ready) FOR NO KEY UPDATE SKIP LOCKED)
  SELECT lane, held FROM ready UNION ALL SELECT lane, held FROM open WHERE lane NOT IN (SELECT lane FROM ready)`,
)
/** For whoever wants no order: it may come back open where it was ready, or ready where it was open. */
const WAIT = statement(
  'wait_lane',
  `SELECT lane, held FROM intray.lanes WHERE ${OF_QUEUE} AND (ready_at <= $4 OR open_at <= $4) AND lane = coalesce(
    (SELECT lane FROM (${IN_ORDER} LIMIT 1) ready), (SELECT lane FROM (${WITHOUT_ORDER} LIMIT 1) open))
  FOR NO KEY UPDATE`,
)
const READY_LANE = statement(
  'ready_lane',
  `SELECT lane, held FROM intray.lanes WHERE ${OF_QUEUE} AND lane = $5 AND (ready_at <= $4 OR ($6 AND open_at <= $4))
  FOR NO KEY UPDATE`,
)
/** In the order of their ids: whoever locks several lanes one after the other does. */
const LOCK = statement(
  'lock_lanes',
  `SELECT lane FROM intray.lanes WHERE ${OF_QUEUE} AND lane = ANY (ARRAY(
    SELECT lane FROM intray.deliveries WHERE ${OF_QUEUE} AND event_id = ANY ($4::bigint[])))
  ORDER BY lane FOR NO KEY UPDATE`,
)
const OF_THEIR_LANES = `${OF_QUEUE} AND lane = ANY (ARRAY(
    SELECT lane FROM intray.deliveries WHERE ${OF_QUEUE} AND event_id = ANY ($4::bigint[])))
    AND state = 'leased' AND event_id <> ALL ($4::bigint[])`
const LOCKED = statement(
  'locked_deliveries',
  `SELECT ${DELIVERY_COLUMNS} FROM intray.deliveries WHERE ${OF_QUEUE} AND event_id = ANY ($4::bigint[])`,
)
const LOCKED_RUNS = statement(
  'locked_runs',
  `SELECT ${DELIVERY_COLUMNS} FROM intray.deliveries WHERE ${OF_THEIR_LANES} AND ordered = 1`,
)
const LEASES_BESIDE = statement(
  'leases_beside',
  `SELECT lane, min(event_id), min(lease_expires_at), max(lease_expires_at), max(ordered)
  FROM intray.deliveries WHERE ${OF_THEIR_LANES} AND (ordered = 0 OR NOT $5) GROUP BY lane`,
)
const LEASED = statement(
  'leased',
  `SELECT ${DELIVERY_COLUMNS} FROM intray.deliveries WHERE ${OF_QUEUE} AND lane = ANY ($4::bigint[]) AND state = 'leased'`,
)
const PENDING = statement(
  'pending',
  `SELECT d.*, (SELECT size FROM intray.events e WHERE e.id = d.event_id AND e.company_id = $1) AS size
  FROM unnest($4::bigint[]) AS l (id) CROSS JOIN LATERAL (
    SELECT ${DELIVERY_COLUMNS} FROM intray.deliveries WHERE ${OF_QUEUE} AND lane = l.id AND state = 'pending'
      AND ($6::bigint IS NULL OR available_at <= $6) ORDER BY event_id LIMIT $5) d`,
)
const FACTS = statement('pending_facts', factsOf('unnest($4::bigint[]) AS l (id)'))
const FACTS_BESIDE = statement(
  'pending_facts_beside',
  factsOf(
    `(SELECT DISTINCT lane FROM intray.deliveries WHERE ${OF_QUEUE} AND event_id = ANY ($4::bigint[])) AS l (id)`,
  ),
)
const SIZES = statement('sizes', 'SELECT id, size FROM intray.events WHERE id = ANY ($2::bigint[]) AND company_id = $1')
/** What an ack writes is the same for all of them. */
const UPDATE_DONE = statement(
  'save_done',
  `UPDATE intray.deliveries SET state = 'done', lease_expires_at = NULL, settled_at = $5
  WHERE ${OF_QUEUE} AND event_id = ANY ($4::bigint[])`,
)
/** And so is what a claim writes to those that wait for the first time, and what extends a lease. */
const UPDATE_LEASED = statement(
  'save_leased',
  `UPDATE intray.deliveries SET state = 'leased', attempts = $5, lease_id = $6, lease_expires_at = $7, ordered = $8, key_id = $9
  WHERE ${OF_QUEUE} AND event_id = ANY ($4::bigint[])`,
)
/**
 * The rows are there. INSERT … ON CONFLICT looks each up by its key, whatever a planner without statistics thinks of joining
 * the table with the list: measured with 20,000 rows, up to 100 ms instead of 2 for a claim of 100.
 */
const UPDATE = statement(
  'save_deliveries',
  `INSERT INTO intray.deliveries (company_id, account_id, subscription, event_id, lane, state, attempts, available_at,
    lease_id, lease_expires_at, ordered, key_id, settled_at, entries)
  SELECT $1, $2, $3, ${unnested('bigint bigint text bigint bigint text bigint bigint text bigint bigint', 4)}
  ON CONFLICT (event_id, company_id, account_id, subscription) DO UPDATE SET state = excluded.state,
    attempts = excluded.attempts, available_at = excluded.available_at, lease_id = excluded.lease_id,
    lease_expires_at = excluded.lease_expires_at, ordered = excluded.ordered, key_id = excluded.key_id,
    settled_at = excluded.settled_at, entries = excluded.entries`,
)
const ADD_ENTRIES = statement(
  'add_entries',
  `INSERT INTO intray.delivery_history (company_id, account_id, subscription, event_id, number, at, what, state,
    attempts, key_id, error)
  SELECT $1, $2, $3, ${unnested('bigint bigint bigint text text bigint text text', 4)}`,
)
const UPDATE_LANES = statement(
  'save_lanes',
  `INSERT INTO intray.lanes AS l (company_id, account_id, subscription, lane, head, ready_at, open_at, held, done_count,
    dead_count)
  SELECT $1, $2, $3, ${unnested('bigint bigint bigint bigint bigint bigint bigint', 4)}
  ON CONFLICT (lane, company_id, account_id, subscription) DO UPDATE SET head = excluded.head,
    ready_at = excluded.ready_at, open_at = excluded.open_at, held = excluded.held,
    done_count = l.done_count + excluded.done_count, dead_count = l.dead_count + excluded.dead_count`,
)
const LOCK_LANES = statement(
  'lock_named_lanes',
  `SELECT lane FROM intray.lanes WHERE ${OF_QUEUE} AND lane = ANY ($4::bigint[]) ORDER BY lane FOR NO KEY UPDATE`,
)
const TAKEN_OPEN_AT = 'least(coalesce(l.open_at, l.ready_at), coalesce(excluded.open_at, excluded.ready_at))'
/** In the order of their ids, as above: it may have to wait for those that are there. What is new is behind all that is there. */
const TAKE = statement(
  'take_lanes',
  `INSERT INTO intray.lanes AS l (company_id, account_id, subscription, lane, head, ready_at, open_at, held, done_count,
    dead_count)
  SELECT $1, $2, $3, ${unnested('bigint bigint bigint bigint bigint', 4)}, 0, 0
  ON CONFLICT (lane, company_id, account_id, subscription) DO UPDATE SET head = coalesce(l.head, excluded.head),
    ready_at = greatest(l.ready_at, excluded.ready_at), held = excluded.held,
    open_at = CASE WHEN ${TAKEN_OPEN_AT} < greatest(l.ready_at, excluded.ready_at) THEN ${TAKEN_OPEN_AT} END
  WHERE l.head IS NULL OR (l.held <> 1 AND NOT $9) RETURNING lane`,
)
const LOCK_FRONTIER = statement(
  'lock_frontier',
  `SELECT frontier FROM intray.subscriptions WHERE company_id = $1 AND account_id = $2 AND id = $3
    AND deleted_at IS NULL FOR NO KEY UPDATE`,
)
/** Only up to where the index is whole: while a rebuild empties it, what is missing must not be passed over. */
const INDEXED = statement(
  'indexed_after',
  `SELECT event_id, kind = 'event', conversation_id, (SELECT size FROM intray.events e WHERE e.id = event_id AND e.company_id = $1)
  FROM intray.event_index WHERE company_id = $1 AND account_id = $2 AND event_id > (
      SELECT frontier FROM intray.subscriptions WHERE company_id = $1 AND account_id = $2 AND id = $3)
    AND event_id <= (SELECT position FROM intray.index_cursors WHERE lane = 'events') ORDER BY event_id LIMIT $4`,
)
const INSERT = statement(
  'insert_deliveries',
  `INSERT INTO intray.deliveries (company_id, account_id, subscription, event_id, lane, state, attempts, available_at,
    ordered, entries)
  SELECT $1, $2, $3, ${unnested('bigint bigint', 4)}, 'pending', 0, $6, 0, 0`,
)
/** All under one lease. */
const INSERT_LEASED = statement(
  'insert_leased',
  `INSERT INTO intray.deliveries (company_id, account_id, subscription, event_id, lane, state, attempts, available_at,
    lease_id, lease_expires_at, ordered, key_id, entries)
  SELECT $1, $2, $3, ${unnested('bigint bigint', 4)}, 'leased', 1, $6::bigint, $7::text, $8::bigint, $9::bigint, $10::text, 0`,
)
/** An idle lane becomes ready; to a busy one the event is added behind, and is open unless the lane is held. Else nothing is written. */
const NOTICE_LANES = statement(
  'notice_lanes',
  `INSERT INTO intray.lanes AS l (company_id, account_id, subscription, lane, head, ready_at, held, done_count,
    dead_count)
  SELECT $1, $2, $3, k.lane, k.head, $6, 0, 0, 0 FROM unnest($4::bigint[], $5::bigint[]) AS k (lane, head)
  ORDER BY k.lane
  ON CONFLICT (lane, company_id, account_id, subscription) DO UPDATE SET
    head = coalesce(l.head, excluded.head),
    ready_at = coalesce(l.ready_at, excluded.ready_at),
    open_at = CASE WHEN l.held <> 1 AND excluded.ready_at < l.ready_at
      THEN least(l.open_at, excluded.ready_at) ELSE l.open_at END
  WHERE l.head IS NULL OR l.ready_at IS NULL
    OR (l.held <> 1 AND excluded.ready_at < l.ready_at AND (l.open_at IS NULL OR excluded.ready_at < l.open_at))`,
)
const MOVE_FRONTIER = statement(
  'move_frontier',
  'UPDATE intray.subscriptions SET frontier = $4 WHERE company_id = $1 AND account_id = $2 AND id = $3',
)

export type Answers = {
  readonly [N in keyof Questions]: (
    connection: Connection,
    queue: Queue,
    ask: Questions[N][0],
  ) => Promise<Questions[N][1]>
}

type LeaseCells = [lane: number, lowest: number, firstExpiry: number, lastExpiry: number, ordered: number]
type IndexedCells = [eventId: number, isEvent: boolean, conversationId: number | null, size: number | null]

/** Runs a plan to its end, inside the caller's transaction. */
export async function runPlan<T>(plan: Plan<T>, connection: Connection, queue: Queue): Promise<T> {
  let step = plan.next()
  while (!step.done) {
    const { name, ask } = step.value
    const answer = answers[name] as (connection: Connection, queue: Queue, ask: unknown) => Promise<unknown>
    step = plan.next(await answer(connection, queue, ask))
  }
  return step.value
}

const answers: Answers = {
  readyLanes: async (connection, queue, { now, limit, ordered, lane }) => {
    const lanesOf = async (asked: Statement, ...more: (number | boolean)[]) =>
      (await connection.query<{ lane: number; held: number }>(asked, [...queue, now, ...more])).map(
        (row): ReadyLane => ({ lane: row.lane, isHeld: row.held !== 0 }),
      )
    if (lane !== null) return lanesOf(READY_LANE, lane, !ordered)
    if (ordered) return lanesOf(READY, limit)
    const found = await lanesOf(READY_OR_OPEN, limit)
    return found.length > 0 ? found : lanesOf(WAIT)
  },
  lock: async (connection, queue, { ids, runs, now }) => {
    const wanted = bigints(ids)
    // The others see what was there once the first had its locks. What has no lane is being cleared away.
    const [lanes, rows, besides, leases, facts] = await Promise.all([
      connection.query<{ lane: number }>(LOCK, [...queue, wanted]),
      connection.rows<DeliveryCells>(LOCKED, [...queue, wanted]),
      runs ? connection.rows<DeliveryCells>(LOCKED_RUNS, [...queue, wanted]) : [],
      connection.rows<LeaseCells>(LEASES_BESIDE, [...queue, wanted, runs]),
      now === null ? null : connection.query(FACTS_BESIDE, [...queue, wanted, now]),
    ])
    const locked = new Set(lanes.map(({ lane }) => lane))
    const deliveries = [...rows, ...besides].map(delivery).filter(({ lane }) => locked.has(lane))
    return { deliveries, others: leases.map(leaseFactsOf), facts: facts?.map(pendingFacts) ?? null }
  },
  contents: async (connection, queue, { lanes, held, perLane, availableBy }) => {
    const [leased, pending] = await Promise.all([
      held.length > 0 ? connection.rows<DeliveryCells>(LEASED, [...queue, bigints(held)]) : [],
      connection.rows<PendingCells>(PENDING, [...queue, bigints(lanes), perLane, availableBy]),
    ])
    return { leased: leased.map(delivery), pending: pendingDeliveries(pending) }
  },
  pendingFacts: async (connection, queue, { lanes, now }) =>
    (await connection.query(FACTS, [...queue, bigints(lanes), now])).map(pendingFacts),
  sizes: async (connection, [companyId], { ids }) => {
    const rows = await connection.query<{ id: number; size: number }>(SIZES, [companyId, bigints(ids)])
    return new Map(rows.map(({ id, size }) => [id, size]))
  },
  saveDeliveries: async (connection, queue, { deliveries, entries }) => {
    const ids = bigints(deliveries.map(({ eventId }) => eventId))
    const first = deliveries[0]!
    if (areDoneAlike(deliveries)) {
      connection.send(UPDATE_DONE, [...queue, ids, first.settledAt])
      return
    }
    if (entries.length === 0 && areLeasedAlike(deliveries)) {
      const { attempts, leaseId, leaseExpiresAt, ordered, keyId } = first
      connection.send(UPDATE_LEASED, [...queue, ids, attempts, leaseId, leaseExpiresAt, ordered ? 1 : 0, keyId])
      return
    }
    connection.send(UPDATE, [
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
    connection.send(ADD_ENTRIES, [
      ...queue,
      bigints(entries.map(({ eventId }) => eventId)),
      bigints(entries.map(({ number }) => number)),
      bigints(entries.map(({ at }) => at)),
      texts(entries.map(({ what }) => what)),
      texts(entries.map(({ state }) => state)),
      bigints(entries.map(({ attempts }) => attempts)),
      texts(entries.map(({ keyId }) => keyId)),
      texts(entries.map(({ error }) => error)),
    ])
  },
  saveLanes: async (connection, queue, { lanes }) => {
    const [done, dead] = [lanes.map((one) => one.done), lanes.map((one) => one.dead)]
    connection.send(UPDATE_LANES, [...queue, ...laneArrays(lanes), bigints(done), bigints(dead)])
  },
  take: async (connection, queue, { lanes, ordered, beside }) => {
    const all = [...lanes.map(({ lane }) => lane), ...beside]
    if (beside.length > 0) connection.send(LOCK_LANES, [...queue, bigints(all)])
    if (lanes.length === 0) return []
    const taken = await connection.query<{ lane: number }>(TAKE, [...queue, ...laneArrays(lanes), ordered])
    return taken.map(({ lane }) => lane)
  },
  indexed: async (connection, queue, { limit }) => {
    // The second sees the frontier as it is once the first has its lock.
    const [locked, rows] = await Promise.all([
      connection.query(LOCK_FRONTIER, queue),
      connection.rows<IndexedCells>(INDEXED, [...queue, limit]),
    ])
    if (locked.length === 0) return []
    return rows.map(
      ([eventId, isEvent, conversationId, size]): IndexedEvent => ({
        eventId,
        isEvent,
        conversationId,
        size: size ?? 0,
      }),
    )
  },
  notice: async (connection, queue, { leased, waiting, behind, now }) => {
    const placesOf = (some: readonly Delivery[]) => [
      bigints(some.map(({ eventId }) => eventId)),
      bigints(some.map(({ lane }) => lane)),
    ]
    const [first] = leased
    if (first) {
      const { availableAt, leaseId, leaseExpiresAt, ordered, keyId } = first
      const lease = [availableAt, leaseId, leaseExpiresAt, ordered ? 1 : 0, keyId]
      connection.send(INSERT_LEASED, [...queue, ...placesOf(leased), ...lease])
    }
    if (waiting.length > 0) connection.send(INSERT, [...queue, ...placesOf(waiting), now])
    if (behind.length === 0) return
    const [lanes, heads] = [behind.map(({ lane }) => lane), behind.map(({ head }) => head)]
    connection.send(NOTICE_LANES, [...queue, bigints(lanes), bigints(heads), now])
  },
  moveFrontier: async (connection, queue, { frontier }) => {
    connection.send(MOVE_FRONTIER, [...queue, frontier])
  },
}

/** A lane whose first is not available yet is looked through for one that is: only what backs off stands before it. */
function factsOf(lanes: string): string {
  return `SELECT l.id AS lane, h.event_id, h.available_at, CASE WHEN h.available_at <= $5 THEN h.available_at ELSE coalesce(
      (SELECT available_at FROM intray.deliveries WHERE ${OF_QUEUE} AND lane = l.id AND state = 'pending'
        AND available_at <= $5 ORDER BY event_id LIMIT 1),
      (SELECT min(available_at) FROM intray.deliveries WHERE ${OF_QUEUE} AND lane = l.id AND state = 'pending')
    ) END AS open_at
  FROM ${lanes} CROSS JOIN LATERAL (
    SELECT event_id, available_at FROM intray.deliveries WHERE ${OF_QUEUE} AND lane = l.id AND state = 'pending'
    ORDER BY event_id LIMIT 1) h`
}

function areDoneAlike(deliveries: readonly Delivery[]): boolean {
  return deliveries.every(({ state, settledAt }) => state === 'done' && settledAt === deliveries[0]!.settledAt)
}

/** The same lease, and as many attempts: then nothing else of them changed, unless one of them failed before. */
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
