// The SQL of processing on PostgreSQL, by question of a plan; one statement each for all lanes at once.

import { LOOK_FOR_AVAILABLE } from '../../../model/processing-plan.ts'
import { DELIVERY_COLUMNS } from '../../rows.ts'
import { unnested } from '../connection/binary-array.ts'
import type { Statement } from '../connection/connection.ts'

const OF_QUEUE = 'company_id = $1 AND account_id = $2 AND subscription = $3'
const statement = (name: string, text: string): Statement => ({ name: `intray_${name}`, text })

/** `unsized` reads no row of the journal. */
export type Sizes = 'sized' | 'unsized'

/** One statement with the sizes of events, and one without. */
function bySizes(name: string, text: (sizes: Sizes) => string): Readonly<Record<Sizes, Statement>> {
  return { sized: statement(name, text('sized')), unsized: statement(`${name}_unsized`, text('unsized')) }
}

function sizeOf(id: string, sizes: Sizes): string {
  // NULL means a purged event.
  if (sizes === 'unsized') return '0'
  return `(SELECT size FROM intray.events e WHERE e.id = ${id} AND e.company_id = $1)`
}

const IN_ORDER = `SELECT lane, held FROM intray.lanes WHERE ${OF_QUEUE} AND ready_at <= $4 ORDER BY ready_at, head`
const WITHOUT_ORDER = `SELECT lane, held FROM intray.lanes WHERE ${OF_QUEUE} AND open_at <= $4 ORDER BY open_at, head`
/**
 * Only free lanes: concurrent claims share the queue and do not wait for each other. If every ready lane is locked, the
 * claim waits for the first of them, while it holds no other.
 */
export const READY = statement(
  'ready_lanes',
  `WITH free AS (${IN_ORDER} LIMIT $5 FOR NO KEY UPDATE SKIP LOCKED),
    waited AS (SELECT lane, held FROM intray.lanes WHERE ${OF_QUEUE} AND ready_at <= $4 AND NOT EXISTS (SELECT FROM free)
      AND lane = (SELECT lane FROM (${IN_ORDER} LIMIT 1) first) FOR NO KEY UPDATE)
  SELECT lane, held FROM free UNION ALL SELECT lane, held FROM waited`,
)
/** For unordered claims: ready lanes, then open ones up to the limit. */
export const READY_OR_OPEN = statement(
  'ready_or_open_lanes',
  `WITH ready AS (${IN_ORDER} LIMIT $5 FOR NO KEY UPDATE SKIP LOCKED),
    open AS (${WITHOUT_ORDER} LIMIT $5 - (SELECT count(*) FROM ready) FOR NO KEY UPDATE SKIP LOCKED)
  SELECT lane, held FROM ready UNION ALL SELECT lane, held FROM open WHERE lane NOT IN (SELECT lane FROM ready)`,
)
/** For unordered claims: the lane may come back open where it was ready, or ready where it was open. */
export const WAIT = statement(
  'wait_lane',
  `SELECT lane, held FROM intray.lanes WHERE ${OF_QUEUE} AND (ready_at <= $4 OR open_at <= $4) AND lane = coalesce(
    (SELECT lane FROM (${IN_ORDER} LIMIT 1) ready), (SELECT lane FROM (${WITHOUT_ORDER} LIMIT 1) open))
  FOR NO KEY UPDATE`,
)
export const READY_LANE = statement(
  'ready_lane',
  `SELECT lane, held FROM intray.lanes WHERE ${OF_QUEUE} AND lane = $5 AND (ready_at <= $4 OR ($6 AND open_at <= $4))
  FOR NO KEY UPDATE`,
)
/** In id order, like every statement that locks several lanes. */
export const LOCK = statement(
  'lock_lanes',
  `SELECT lane FROM intray.lanes WHERE ${OF_QUEUE} AND lane = ANY (ARRAY(
    SELECT lane FROM intray.deliveries WHERE ${OF_QUEUE} AND event_id = ANY ($4::bigint[])))
  ORDER BY lane FOR NO KEY UPDATE`,
)
const OF_THEIR_LANES = `${OF_QUEUE} AND lane = ANY (ARRAY(
    SELECT lane FROM intray.deliveries WHERE ${OF_QUEUE} AND event_id = ANY ($4::bigint[])))
    AND state = 'leased' AND event_id <> ALL ($4::bigint[])`
export const LOCKED = statement(
  'locked_deliveries',
  `SELECT ${DELIVERY_COLUMNS} FROM intray.deliveries WHERE ${OF_QUEUE} AND event_id = ANY ($4::bigint[])`,
)
export const LOCKED_RUNS = statement(
  'locked_runs',
  `SELECT ${DELIVERY_COLUMNS} FROM intray.deliveries WHERE ${OF_THEIR_LANES} AND ordered = 1`,
)
export const LEASES_BESIDE = statement(
  'leases_beside',
  `SELECT lane, min(event_id), min(lease_expires_at), max(lease_expires_at), max(ordered)
  FROM intray.deliveries WHERE ${OF_THEIR_LANES} AND (ordered = 0 OR NOT $5) GROUP BY lane`,
)
export const LEASED = statement(
  'leased',
  `SELECT ${DELIVERY_COLUMNS} FROM intray.deliveries WHERE ${OF_QUEUE} AND lane = ANY ($4::bigint[]) AND state = 'leased'`,
)
/** Events in back-off precede the available ones: at most LOOK_FOR_AVAILABLE are passed. */
export const PENDING = bySizes('pending', (sizes) =>
  pendingOf(
    sizes,
    `SELECT * FROM (
    SELECT ${DELIVERY_COLUMNS} FROM intray.deliveries WHERE ${OF_QUEUE} AND lane = l.id AND state = 'pending'
    ORDER BY event_id LIMIT CASE WHEN $6::bigint IS NULL THEN $5::bigint ELSE ${LOOK_FOR_AVAILABLE} END) first
  WHERE $6::bigint IS NULL OR available_at <= $6 ORDER BY event_id LIMIT $5`,
  ),
)
/** For lanes in which none of the first is available. */
export const PENDING_BY_TIME = bySizes('pending_by_time', (sizes) =>
  pendingOf(
    sizes,
    `SELECT ${DELIVERY_COLUMNS} FROM intray.deliveries WHERE ${OF_QUEUE} AND lane = l.id AND entries >= 0
    AND state = 'pending' AND available_at <= $6 ORDER BY available_at LIMIT $5`,
  ),
)
export const FACTS = statement('pending_facts', factsOf('unnest($4::bigint[]) AS l (id)'))
export const FACTS_BESIDE = statement(
  'pending_facts_beside',
  factsOf(
    `(SELECT DISTINCT lane FROM intray.deliveries WHERE ${OF_QUEUE} AND event_id = ANY ($4::bigint[])) AS l (id)`,
  ),
)
export const SIZES = statement(
  'sizes',
  'SELECT id, size FROM intray.events WHERE id = ANY ($2::bigint[]) AND company_id = $1',
)
/** An ack writes the same values to all its rows. */
export const UPDATE_DONE = statement(
  'save_done',
  `UPDATE intray.deliveries SET state = 'done', lease_expires_at = NULL, settled_at = $5
  WHERE ${OF_QUEUE} AND event_id = ANY ($4::bigint[])`,
)
/** A claim writes the same values to rows with equal attempts, and so does an extension. */
export const UPDATE_LEASED = statement(
  'save_leased',
  `UPDATE intray.deliveries SET state = 'leased', attempts = $5, lease_id = $6, lease_expires_at = $7, ordered = $8, key_id = $9
  WHERE ${OF_QUEUE} AND event_id = ANY ($4::bigint[])`,
)
/**
 * The rows exist. INSERT … ON CONFLICT looks each up by its key, whatever join a planner without statistics would
 * choose: measured with 20,000 rows, up to 100 ms instead of 2 ms for a claim of 100.
 */
export const UPDATE = statement(
  'save_deliveries',
  `INSERT INTO intray.deliveries (company_id, account_id, subscription, event_id, lane, state, attempts, available_at,
    lease_id, lease_expires_at, ordered, key_id, settled_at, entries)
  SELECT $1, $2, $3, ${unnested('bigint bigint text bigint bigint text bigint bigint text bigint bigint', 4)}
  ON CONFLICT (event_id, company_id, account_id, subscription) DO UPDATE SET state = excluded.state,
    attempts = excluded.attempts, available_at = excluded.available_at, lease_id = excluded.lease_id,
    lease_expires_at = excluded.lease_expires_at, ordered = excluded.ordered, key_id = excluded.key_id,
    settled_at = excluded.settled_at, entries = excluded.entries`,
)
/** Those that are not erased, and are not before this transaction ends: an erasure takes their texts afterwards. */
export const KEEP_UNERASED = statement(
  'keep_unerased',
  `SELECT id FROM intray.events WHERE id = ANY ($2::bigint[]) AND company_id = $1 AND erased_at IS NULL
  ORDER BY id FOR SHARE`,
)
export const ADD_ENTRIES = statement(
  'add_entries',
  `INSERT INTO intray.delivery_history (company_id, account_id, subscription, event_id, number, at, what, state,
    attempts, key_id, error)
  SELECT $1, $2, $3, ${unnested('bigint bigint bigint text text bigint text text', 4)}`,
)
export const UPDATE_LANES = statement(
  'save_lanes',
  `INSERT INTO intray.lanes AS l (company_id, account_id, subscription, lane, head, ready_at, open_at, held, done_count,
    dead_count)
  SELECT $1, $2, $3, ${unnested('bigint bigint bigint bigint bigint bigint bigint', 4)}
  ON CONFLICT (lane, company_id, account_id, subscription) DO UPDATE SET head = excluded.head,
    ready_at = excluded.ready_at, open_at = excluded.open_at, held = excluded.held,
    done_count = l.done_count + excluded.done_count, dead_count = l.dead_count + excluded.dead_count`,
)
/** One event of each lane was acknowledged and none is left: the same values for all. */
export const REST_LANES = statement(
  'rest_lanes',
  `UPDATE intray.lanes SET head = NULL, ready_at = NULL, open_at = NULL, held = 0, done_count = done_count + 1
  WHERE ${OF_QUEUE} AND lane = ANY ($4::bigint[])`,
)
export const LOCK_LANES = statement(
  'lock_named_lanes',
  `SELECT lane FROM intray.lanes WHERE ${OF_QUEUE} AND lane = ANY ($4::bigint[]) ORDER BY lane FOR NO KEY UPDATE`,
)
const TAKEN_OPEN_AT = 'least(coalesce(l.open_at, l.ready_at), coalesce(excluded.open_at, excluded.ready_at))'
/** In id order, as above, since it may wait for existing rows. New events follow all existing ones of the lane. */
export const TAKE = statement(
  'take_lanes',
  `INSERT INTO intray.lanes AS l (company_id, account_id, subscription, lane, head, ready_at, open_at, held, done_count,
    dead_count)
  SELECT $1, $2, $3, ${unnested('bigint bigint bigint bigint bigint', 4)}, 0, 0
  ON CONFLICT (lane, company_id, account_id, subscription) DO UPDATE SET head = coalesce(l.head, excluded.head),
    ready_at = greatest(l.ready_at, excluded.ready_at), held = excluded.held,
    open_at = CASE WHEN ${TAKEN_OPEN_AT} < greatest(l.ready_at, excluded.ready_at) THEN ${TAKEN_OPEN_AT} END
  WHERE l.head IS NULL OR (l.held <> 1 AND NOT $9) RETURNING lane`,
)
export const RETRY_RULES = statement(
  'retry_rules',
  `SELECT max_attempts AS "maxAttempts", first_delay_ms AS "firstDelayMs", max_delay_ms AS "maxDelayMs"
    FROM intray.subscriptions WHERE company_id = $1 AND account_id = $2 AND id = $3`,
)
export const LOCK_SUBSCRIPTION = statement(
  'lock_subscription',
  `SELECT enqueued_up_to FROM intray.subscriptions WHERE company_id = $1 AND account_id = $2 AND id = $3
    AND deleted_at IS NULL FOR NO KEY UPDATE`,
)
/** Only up to the index cursor: while a rebuild empties the index, missing entries must not be skipped. */
export const INDEXED = bySizes(
  'indexed_after',
  (sizes) => `SELECT event_id, kind = 'event', conversation_id, ${sizeOf('event_id', sizes)}
  FROM intray.event_index WHERE company_id = $1 AND account_id = $2 AND event_id > (
      SELECT enqueued_up_to FROM intray.subscriptions WHERE company_id = $1 AND account_id = $2 AND id = $3)
    AND event_id <= (SELECT position FROM intray.index_cursors WHERE source = 'events') ORDER BY event_id LIMIT $4`,
)
export const INSERT = statement(
  'insert_deliveries',
  `INSERT INTO intray.deliveries (company_id, account_id, subscription, event_id, lane, state, attempts, available_at,
    ordered, entries)
  SELECT $1, $2, $3, ${unnested('bigint bigint', 4)}, 'pending', 0, $6, 0, 0`,
)
/** All under one lease. */
export const INSERT_LEASED = statement(
  'insert_leased',
  `INSERT INTO intray.deliveries (company_id, account_id, subscription, event_id, lane, state, attempts, available_at,
    lease_id, lease_expires_at, ordered, key_id, entries)
  SELECT $1, $2, $3, ${unnested('bigint bigint', 4)}, 'leased', 1, $6::bigint, $7::text, $8::bigint, $9::bigint, $10::text, 0`,
)
/**
 * An idle lane becomes ready. In a busy one the event is added at the end, and is open unless the lane is held. Else
 * nothing is written.
 */
export const ENQUEUE_LANES = statement(
  'enqueue_lanes',
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
export const DELETE_DELIVERIES = statement(
  'delete_deliveries',
  `DELETE FROM intray.deliveries WHERE ${OF_QUEUE} AND event_id = ANY ($4::bigint[])`,
)
export const DELETE_HISTORY = statement(
  'delete_history',
  `DELETE FROM intray.delivery_history WHERE ${OF_QUEUE} AND event_id = ANY ($4::bigint[])`,
)
export const DELETE_EMPTY_LANES = statement(
  'delete_empty_lanes',
  `DELETE FROM intray.lanes WHERE ${OF_QUEUE} AND lane = ANY ($4::bigint[]) AND head IS NULL AND done_count = 0
    AND dead_count = 0`,
)
export const SET_ENQUEUED_UP_TO = statement(
  'set_enqueued_up_to',
  'UPDATE intray.subscriptions SET enqueued_up_to = $4 WHERE company_id = $1 AND account_id = $2 AND id = $3',
)

/** If the first event of a lane is not available yet, the soonest is looked up by time. */
function factsOf(lanes: string): string {
  return `SELECT l.id AS lane, h.event_id, h.available_at, CASE WHEN h.available_at <= $5 THEN h.available_at ELSE (
      SELECT available_at FROM intray.deliveries WHERE ${OF_QUEUE} AND lane = l.id AND entries >= 0
        AND state = 'pending' ORDER BY available_at LIMIT 1) END AS open_at
  FROM ${lanes} CROSS JOIN LATERAL (
    SELECT event_id, available_at FROM intray.deliveries WHERE ${OF_QUEUE} AND lane = l.id AND state = 'pending'
    ORDER BY event_id LIMIT 1) h`
}

function pendingOf(sizes: Sizes, ofLane: string): string {
  return `SELECT d.*, ${sizeOf('d.event_id', sizes)} AS size
  FROM unnest($4::bigint[]) AS l (id) CROSS JOIN LATERAL (${ofLane}) d`
}
