// Processing reads on PostgreSQL: the events of a claim, whether a claim is worthwhile, and the deliveries of an event.

import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Tenant } from '../../../model/principal.ts'
import { DEFAULT_SUBSCRIPTION, type DeliveryState } from '../../../model/processing.ts'
import type { Grant } from '../../../model/processing-enqueue.ts'
import type { ClaimedEvent, ClaimRequest, DeliveryRecord, QueueName, Readiness } from '../../contract/processing.ts'
import type { ReadGrants } from '../../claim-around.ts'
import { EVENT_AND_PAYLOAD_COLUMNS, EVENT_COLUMNS, type EventCells } from '../../event-columns.ts'
import { claimedEvent, historyEntry, lastErrors } from '../../rows.ts'
import { bigints, texts } from '../connection/binary-array.ts'
import type { Connection, Statement } from '../connection/connection.ts'
import { unlessDamaged } from '../connection/failure.ts'
import { stateAt } from '../index/inbox-states.ts'
import type { Queue } from './processing-rows.ts'

const SELECT_EVENTS: Statement = {
  name: 'intray_claimed_events',
  text: `SELECT ${EVENT_AND_PAYLOAD_COLUMNS} FROM intray.events WHERE id = ANY ($2::bigint[]) AND company_id = $1`,
}
const SELECT_WITHOUT_PAYLOAD: Statement = {
  name: 'intray_claimed_without_payload',
  text: `SELECT ${EVENT_COLUMNS}, NULL::bytea FROM intray.events WHERE id = ANY ($2::bigint[]) AND company_id = $1`,
}
/** One statement for all waiting claims: two or three index lookups per queue. */
const READY: Statement = {
  name: 'intray_ready',
  text: `SELECT s.id IS NULL AND q.name <> '${DEFAULT_SUBSCRIPTION}' AS gone,
    EXISTS (SELECT FROM intray.event_index i WHERE i.company_id = q.company_id AND i.account_id = q.account_id
      AND i.event_id > coalesce(s.enqueued_up_to, 0)
      AND i.event_id <= (SELECT position FROM intray.index_cursors WHERE source = 'events')) AS news,
    (SELECT ready_at FROM intray.lanes l WHERE l.company_id = q.company_id AND l.account_id = q.account_id
      AND l.subscription = coalesce(s.id, 0) AND l.ready_at IS NOT NULL ORDER BY ready_at LIMIT 1) AS ready_at,
    (SELECT open_at FROM intray.lanes l WHERE l.company_id = q.company_id AND l.account_id = q.account_id
      AND l.subscription = coalesce(s.id, 0) AND l.open_at IS NOT NULL ORDER BY open_at LIMIT 1) AS open_at
  FROM unnest($1::bigint[], $2::bigint[], $3::text[]) WITH ORDINALITY AS q (company_id, account_id, name, n)
  LEFT JOIN intray.subscriptions s ON s.company_id = q.company_id AND s.account_id = q.account_id AND s.name = q.name
    AND s.deleted_at IS NULL
  ORDER BY q.n`,
}
const SELECT_RECORDS: Statement = {
  name: 'intray_delivery_records',
  text: `SELECT s.id, s.name, s.enqueued_up_to, d.state, d.attempts, d.available_at, d.lease_expires_at, d.key_id, d.settled_at
  FROM (SELECT id, name, enqueued_up_to FROM intray.subscriptions
    WHERE company_id = $1 AND account_id = $2 AND deleted_at IS NULL
    UNION ALL SELECT 0, '${DEFAULT_SUBSCRIPTION}', 0 WHERE NOT EXISTS (
      SELECT FROM intray.subscriptions WHERE company_id = $1 AND account_id = $2 AND id = 0)) s
  LEFT JOIN intray.deliveries d ON d.company_id = $1 AND d.account_id = $2 AND d.subscription = s.id
    AND d.event_id = $3
  ORDER BY s.id`,
}
const SELECT_HISTORY: Statement = {
  name: 'intray_delivery_history',
  text: `SELECT event_id, number, at, what, state, attempts, key_id, error FROM intray.delivery_history
  WHERE company_id = $1 AND account_id = $2 AND subscription = $3 AND event_id = $4 ORDER BY number`,
}
const SELECT_STATES: Statement = {
  name: 'intray_delivery_states',
  text: `SELECT event_id, ${stateAt('$5')} AS state FROM intray.deliveries WHERE company_id = $1 AND account_id = $2 AND subscription = $3
    AND event_id = ANY ($4::bigint[])`,
}
const SELECT_LAST_ENTRIES: Statement = {
  name: 'intray_last_entries',
  text: `SELECT q.event_id, h.what, h.error FROM unnest($4::bigint[]) AS q (event_id)
  CROSS JOIN LATERAL (SELECT what, error FROM intray.delivery_history d
    WHERE d.company_id = $1 AND d.account_id = $2 AND d.subscription = $3 AND d.event_id = q.event_id
    ORDER BY d.number DESC LIMIT 1) h`,
}

const SELECT_COUNTS: Statement = {
  name: 'intray_lane_counts',
  text: `SELECT lane, done_count, dead_count FROM intray.lanes WHERE company_id = $1 AND account_id = $2
    AND subscription = $3 AND lane = ANY ($4::bigint[])`,
}

export async function readCounts(connection: Connection, queue: Queue, lanes: readonly number[]) {
  const rows = await connection.query<{ lane: number; done_count: number; dead_count: number }>(SELECT_COUNTS, [
    ...queue,
    bigints(lanes),
  ])
  return new Map(rows.map((row) => [row.lane, { done: row.done_count, dead: row.dead_count }]))
}

/** Payloads are checked on the main thread: so much in one turn, with a price for each row. */
const TURN_BYTES = 64 * 1024
const EVENT_BYTES = 2048

export async function readClaimed(
  connection: Connection,
  grants: readonly Grant[],
  request: ClaimRequest,
): Promise<ReadGrants> {
  const ids = grants.map(({ eventId }) => eventId)
  const rows = await readAround(connection, request.tenant.companyId, ids)
  const lost: number[] = []
  const byId = new Map(rows.map((cells) => [cells[0], cells]))
  const claimed: ClaimedEvent[] = []
  let bytes = 0
  for (const grant of grants) {
    const cells = byId.get(grant.eventId)
    // Damaged, or purged since: the claim was answered late.
    if (!cells) {
      lost.push(grant.eventId)
      continue
    }
    const one = await claimedEvent(cells, grant, request, nextTurn)
    claimed.push(one)
    bytes += EVENT_BYTES + one.event.size
    if (bytes < TURN_BYTES) continue
    bytes = 0
    await nextTurn()
  }
  return { claimed, lost }
}

/** Where a damaged page hides one of them, each alone: of an event whose payload is damaged, the rest is read. */
async function readAround(connection: Connection, companyId: number, ids: readonly number[]): Promise<EventCells[]> {
  const read = (statement: Statement, some: readonly number[]) =>
    unlessDamaged(connection.rows<EventCells>(statement, [companyId, bigints(some)]))
  const together = await read(SELECT_EVENTS, ids)
  if (together) return together
  const rows: EventCells[] = []
  for (const id of ids)
    rows.push(...((await read(SELECT_EVENTS, [id])) ?? (await read(SELECT_WITHOUT_PAYLOAD, [id])) ?? []))
  return rows
}

export async function readReady(
  connection: Connection,
  queues: readonly (QueueName & { readonly ordered: boolean })[],
  now: number,
): Promise<Readiness[]> {
  const rows = await connection.query<{
    gone: boolean
    news: boolean
    ready_at: number | null
    open_at: number | null
  }>(READY, [
    bigints(queues.map(({ tenant }) => tenant.companyId)),
    bigints(queues.map(({ tenant }) => tenant.accountId)),
    texts(queues.map(({ subscription }) => subscription)),
  ])
  return rows.map((row, n) => {
    // The subscription is gone: a claim reports it.
    if (row.gone || row.news) return { ready: true, at: null }
    const never = Number.MAX_SAFE_INTEGER
    const at = Math.min(row.ready_at ?? never, queues[n]!.ordered ? never : (row.open_at ?? never))
    return { ready: at <= now, at: at === never ? null : at }
  })
}

export async function readHistory(
  connection: Connection,
  { companyId, accountId }: Tenant,
  eventId: number,
): Promise<DeliveryRecord[]> {
  const records: DeliveryRecord[] = []
  for (const row of await connection.query(SELECT_RECORDS, [companyId, accountId, eventId])) {
    // Skipped: the event is older than the subscription.
    if (row.state === null && (row.enqueued_up_to as number) >= eventId) continue
    const entries = await connection.query(SELECT_HISTORY, [companyId, accountId, row.id as number, eventId])
    records.push({
      subscription: row.name as string,
      state: (row.state ?? 'pending') as DeliveryState,
      attempts: (row.attempts ?? 0) as number,
      availableAt: row.available_at as number | null,
      leaseExpiresAt: row.lease_expires_at as number | null,
      keyId: row.key_id as string | null,
      settledAt: row.settled_at as number | null,
      history: entries.map(historyEntry),
    })
  }
  return records
}

export async function readStates(connection: Connection, queue: Queue, ids: readonly number[], now: number) {
  const rows = await connection.query<{ event_id: number; state: DeliveryState }>(SELECT_STATES, [
    ...queue,
    bigints(ids),
    now,
  ])
  return new Map(rows.map((row) => [row.event_id, row.state]))
}

export async function readLastErrors(connection: Connection, queue: Queue, ids: readonly number[]) {
  return lastErrors(await connection.query(SELECT_LAST_ENTRIES, [...queue, bigints(ids)]))
}
