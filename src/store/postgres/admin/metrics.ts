// Store metrics on PostgreSQL: index lookups in the queue of each of at most 1,000 subscriptions.

import type { StoreMetrics } from '../../contract/metrics.ts'
import type { Connection, Statement } from '../connection/connection.ts'
import { unlessDamaged } from '../connection/failure.ts'
import { COUNT_UNREADABLE } from './diagnosis.ts'
import { readErasurePosition } from '../index/index-erasures.ts'

const QUEUES = `WITH queues AS MATERIALIZED
  (SELECT company_id, account_id, id, enqueued_up_to FROM intray.subscriptions WHERE deleted_at IS NULL LIMIT 1000)`
const IN_QUEUE = `d.company_id = q.company_id AND d.account_id = q.account_id AND d.subscription = q.id
  AND d.entries >= 0 AND d.state <> 'done'`
const SELECT_LEASES: Statement = {
  name: 'intray_metrics_leases',
  text: `${QUEUES} SELECT count(*) FILTER (WHERE expires > $1) AS leases FROM (
    SELECT d.lease_expires_at AS expires FROM queues q CROSS JOIN LATERAL (
      SELECT lease_expires_at FROM intray.deliveries d WHERE ${IN_QUEUE} AND d.state = 'leased' LIMIT 10000) d
    LIMIT 10000) leased`,
}
const SELECT_OLDEST: Statement = {
  name: 'intray_metrics_oldest',
  text: `${QUEUES} SELECT least(
    (SELECT min(e.received_at) FROM queues q CROSS JOIN LATERAL (
      SELECT d.event_id FROM intray.deliveries d WHERE ${IN_QUEUE} AND d.state = 'pending' ORDER BY d.event_id LIMIT 1) d
      JOIN intray.events e ON e.id = d.event_id AND e.company_id = q.company_id),
    (SELECT min(i.received_at) FROM queues q CROSS JOIN LATERAL (
      SELECT received_at FROM intray.event_index i WHERE i.company_id = q.company_id AND i.account_id = q.account_id
      AND i.event_id > q.enqueued_up_to AND i.kind = 'event' ORDER BY i.event_id LIMIT 1) i)) AS oldest`,
}
const SELECT_UNSEEN: Statement = {
  name: 'intray_metrics_unseen',
  text: `SELECT received_at FROM intray.events
    WHERE id > (SELECT watermark FROM intray.index_cursors WHERE source = 'events') ORDER BY id LIMIT 1`,
}

const SELECT_SIZES: Statement = {
  name: 'intray_metrics_sizes',
  text: `SELECT (SELECT coalesce(max(id), 0) FROM intray.erasures) AS erasures,
    pg_database_size(current_database()) AS database_bytes`,
}

export async function readMetrics(connection: Connection, now: number): Promise<StoreMetrics> {
  const [leases] = await connection.query<{ leases: number }>(SELECT_LEASES, [now])
  const oldest = await unlessDamaged(connection.query<{ oldest: number | null }>(SELECT_OLDEST))
  const [unseen] = await connection.query<{ received_at: number | null }>(SELECT_UNSEEN)
  const [unreadable] = await connection.query<{ ids: number }>(COUNT_UNREADABLE)
  const [sizes] = await connection.query<{ erasures: number; database_bytes: number }>(SELECT_SIZES)
  const erasures = Number(sizes!.erasures)
  return {
    leases: leases!.leases,
    oldestPendingAt: oldest?.[0]?.oldest ?? null,
    unseenSince: unseen?.received_at ?? null,
    erasures,
    erasuresPending: Math.max(0, erasures - (await readErasurePosition(connection))),
    databaseBytes: Number(sizes!.database_bytes),
    disk: null,
    unreadable: unreadable!.ids,
  }
}
