// Traffic counts and queue depth of a tenant on PostgreSQL.

import type { Tenant } from '../../../model/principal.ts'
import { MAX_QUEUE_COUNT, MAX_TRAFFIC_ROWS, REFUSAL_SCAN_ROWS, type TrafficRow } from '../../../model/traffic.ts'
import type { TrafficReader } from '../../contract/traffic.ts'
import { refusalCounts, trafficRow } from '../../rows.ts'
import type { Connection, Statement } from '../connection/connection.ts'
import type { Pool } from '../connection/pool.ts'

const SELECT: Statement = {
  name: 'intray_traffic',
  text: `SELECT span, at, key_id, events, resends, revisions FROM intray.traffic
  WHERE company_id = $1 AND account_id = $2 AND span = $3 AND at >= $4 ORDER BY at DESC, key_id DESC LIMIT $5`,
}
const DELETE_OLD = 'DELETE FROM intray.traffic WHERE span = $1 AND at < $2'
const SELECT_REFUSALS = `SELECT code, received_at FROM intray.refusals WHERE company_id = $1 AND account_id = $2
  ORDER BY id DESC LIMIT $3`

/** The subscription `default` has id 0. Only one index has the order `state, event_id`. */
const inState = (state: string): string => `FROM intray.deliveries
  WHERE company_id = $1 AND account_id = $2 AND subscription = 0 AND entries >= 0 AND state <> 'done'
    AND state = '${state}'`
const UNQUEUED = `FROM intray.event_index WHERE company_id = $1 AND account_id = $2 AND event_id > coalesce((
  SELECT enqueued_up_to FROM intray.subscriptions WHERE company_id = $1 AND account_id = $2 AND id = 0), 0)`
const count = (from: string): string => `(SELECT count(*) FROM (SELECT ${from} LIMIT ${MAX_QUEUE_COUNT}) page)`
const first = (from: string): string => `(SELECT event_id ${from} ORDER BY state, event_id LIMIT 1)`
const SELECT_DEPTH: Statement = {
  name: 'intray_queue_depth',
  text: `SELECT ${count(inState('pending'))} AS pending, leases.leased, leases.expired,
    ${count(inState('dead'))} AS dead,
    (SELECT count(*) FROM (SELECT kind ${UNQUEUED} LIMIT ${MAX_QUEUE_COUNT}) page WHERE kind = 'event') AS unqueued,
    least(${first(inState('pending'))}, leases.first,
      (SELECT event_id ${UNQUEUED} AND kind = 'event' ORDER BY event_id LIMIT 1)) AS oldest
  FROM (SELECT count(*) AS leased, count(*) FILTER (WHERE lease_expires_at <= $3) AS expired,
      min(event_id) FILTER (WHERE lease_expires_at <= $3) AS first
    FROM (SELECT event_id, lease_expires_at ${inState('leased')} LIMIT ${MAX_QUEUE_COUNT}) page) leases`,
}
const SELECT_RECEIVED_AT: Statement = {
  name: 'intray_received_at',
  text: `SELECT received_at FROM intray.event_index WHERE company_id = $1 AND account_id = $2 AND event_id = $3`,
}

interface DepthRow extends Record<string, unknown> {
  readonly pending: number
  readonly leased: number
  readonly expired: number
  readonly dead: number
  readonly unqueued: number
  readonly oldest: number | null
}

export function createTrafficReader(pool: Pool): TrafficReader {
  const rowsOf = async (tenant: Tenant, span: number, from: number): Promise<TrafficRow[]> => {
    const values = [tenant.companyId, tenant.accountId, span, from, MAX_TRAFFIC_ROWS]
    const rows = await pool.use((connection) => connection.query(SELECT, values))
    return rows.map((row) => trafficRow(row, tenant)).toReversed()
  }
  return {
    minutes: (tenant, from) => rowsOf(tenant, 0, from),
    hours: (tenant, from) => rowsOf(tenant, 1, from),
    queueDepth: ({ companyId, accountId }, now) =>
      pool.use(async (connection) => {
        const [row] = await connection.query<DepthRow>(SELECT_DEPTH, [companyId, accountId, now])
        const { pending, leased, expired, dead, unqueued, oldest } = row!
        const received = oldest === null ? [] : await receivedAt(connection, [companyId, accountId, oldest])
        return {
          pending: Math.min(pending + expired + unqueued, MAX_QUEUE_COUNT),
          leased: leased - expired,
          dead,
          oldestPendingAt: received[0]?.received_at ?? null,
        }
      }),
    refusalCounts: async ({ companyId, accountId }, since) => {
      const values = [companyId, accountId, REFUSAL_SCAN_ROWS]
      return refusalCounts(await pool.use((connection) => connection.query(SELECT_REFUSALS, values)), since)
    },
  }
}

function receivedAt(connection: Connection, key: readonly number[]) {
  return connection.query<{ received_at: number }>(SELECT_RECEIVED_AT, [...key])
}

export async function pruneTraffic(connection: Connection, minutesBefore: number, hoursBefore: number): Promise<void> {
  await connection.query(DELETE_OLD, [0, minutesBefore])
  await connection.query(DELETE_OLD, [1, hoursBefore])
}
