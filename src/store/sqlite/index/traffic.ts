// Traffic counts and queue depth of a tenant on SQLite.

import type { DatabaseSync } from 'node:sqlite'
import type { Tenant } from '../../../model/principal.ts'
import { DEFAULT_SUBSCRIPTION } from '../../../model/processing.ts'
import { MAX_QUEUE_COUNT, MAX_TRAFFIC_ROWS, REFUSAL_SCAN_ROWS, type TrafficRow } from '../../../model/traffic.ts'
import type { QueueDepth, RefusalCount } from '../../contract/traffic.ts'
import { refusalCounts, trafficRow } from '../../rows.ts'
import { inTransaction } from '../connection.ts'
import { readSubscription } from '../processing/subscriptions.ts'

const SELECT = `SELECT span, at, key_id, events, resends, revisions FROM traffic
  WHERE company_id = ? AND account_id = ? AND span = ? AND at >= ? ORDER BY at DESC, key_id DESC LIMIT ? + 0`
const DELETE_OLD = 'DELETE FROM traffic WHERE span = ? AND at < ?'
const SELECT_REFUSALS = `SELECT code, received_at FROM refusals WHERE company_id = ? AND account_id = ?
  ORDER BY id DESC LIMIT ? + 0`

/** The subscription `default` has id 0. */
const IN_STATE = `FROM deliveries INDEXED BY deliveries_by_state WHERE company_id = ? AND account_id = ?
  AND subscription = 0 AND state = ? AND entries >= 0 AND state <> 'done'`
const COUNT_IN_STATE = `SELECT count(*) AS count FROM (SELECT 1 ${IN_STATE} LIMIT ? + 0) page`
const COUNT_LEASED = `SELECT count(*) AS leased, coalesce(sum(lease_expires_at <= ?), 0) AS expired,
    min(CASE WHEN lease_expires_at <= ? THEN event_id END) AS first
  FROM (SELECT event_id, lease_expires_at FROM deliveries INDEXED BY deliveries_by_state WHERE company_id = ?
    AND account_id = ? AND subscription = 0 AND state = 'leased' AND entries >= 0 AND state <> 'done' LIMIT ? + 0) page`
const FIRST_IN_STATE = `SELECT event_id ${IN_STATE} ORDER BY event_id LIMIT 1`
const UNQUEUED = 'FROM event_index WHERE company_id = ? AND account_id = ? AND event_id > ?'
const COUNT_UNQUEUED = `SELECT count(*) AS count FROM (SELECT kind ${UNQUEUED} LIMIT ? + 0) page WHERE kind = 'event'`
const FIRST_UNQUEUED = `SELECT event_id ${UNQUEUED} AND kind = 'event' ORDER BY event_id LIMIT 1`
const SELECT_RECEIVED_AT = `SELECT received_at FROM event_index WHERE company_id = ? AND account_id = ?
  AND event_id = ?`

export function prepareTrafficReads(db: DatabaseSync) {
  const rowsOf = (tenant: Tenant, span: number, from: number): TrafficRow[] =>
    db
      .prepare(SELECT)
      .all(tenant.companyId, tenant.accountId, span, from, MAX_TRAFFIC_ROWS)
      .map((row) => trafficRow(row, tenant))
      .toReversed()

  return {
    minutes: (tenant: Tenant, from: number) => rowsOf(tenant, 0, from),
    hours: (tenant: Tenant, from: number) => rowsOf(tenant, 1, from),
    queueDepth: (tenant: Tenant, now: number) => queueDepth(db, tenant, now),
    refusalCounts: ({ companyId, accountId }: Tenant, since: number): RefusalCount[] =>
      refusalCounts(db.prepare(SELECT_REFUSALS).all(companyId, accountId, REFUSAL_SCAN_ROWS), since),
  }
}

export function pruneTraffic(db: DatabaseSync, minutesBefore: number, hoursBefore: number): void {
  inTransaction(db, () => {
    db.prepare(DELETE_OLD).run(0, minutesBefore)
    db.prepare(DELETE_OLD).run(1, hoursBefore)
  })
}

function queueDepth(db: DatabaseSync, tenant: Tenant, now: number): QueueDepth {
  const { companyId, accountId } = tenant
  const enqueuedUpTo = readSubscription(db, { tenant, subscription: DEFAULT_SUBSCRIPTION })?.enqueuedUpTo ?? 0
  const count = (sql: string, ...args: readonly (string | number)[]) =>
    Number(db.prepare(sql).get(companyId, accountId, ...args, MAX_QUEUE_COUNT)?.count)
  const first = (sql: string, ...args: readonly (string | number)[]) =>
    db.prepare(sql).get(companyId, accountId, ...args)?.event_id as number | undefined
  const leases = db.prepare(COUNT_LEASED).get(now, now, companyId, accountId, MAX_QUEUE_COUNT)
  const { leased, expired, first: expiredId } = leases as { leased: number; expired: number; first: number | null }
  const pending = count(COUNT_IN_STATE, 'pending') + expired + count(COUNT_UNQUEUED, enqueuedUpTo)
  const oldest = [first(FIRST_IN_STATE, 'pending'), expiredId ?? undefined, first(FIRST_UNQUEUED, enqueuedUpTo)].filter(
    (id) => id !== undefined,
  )
  const received =
    oldest.length > 0 ? db.prepare(SELECT_RECEIVED_AT).get(companyId, accountId, Math.min(...oldest)) : undefined
  return {
    pending: Math.min(pending, MAX_QUEUE_COUNT),
    leased: leased - expired,
    dead: count(COUNT_IN_STATE, 'dead'),
    oldestPendingAt: (received?.received_at as number | undefined) ?? null,
  }
}
