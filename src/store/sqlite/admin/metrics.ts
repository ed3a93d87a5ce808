// Store metrics on SQLite: index lookups in the queue of each of at most 1,000 subscriptions, and the sizes of files.

import { statfsSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import type { StoreMetrics } from '../../contract/metrics.ts'
import { unlessDamaged } from '../connection.ts'
import { COUNT_UNREADABLE } from './diagnosis.ts'
import { indexPath } from '../index/index-file.ts'
import { erasurePositions, lastErasure } from './erasures.ts'

const QUEUES = `WITH queues AS MATERIALIZED
  (SELECT company_id, account_id, id, enqueued_up_to FROM subscriptions WHERE deleted_at IS NULL LIMIT 1000)`
const IN_QUEUE = `d.company_id = q.company_id AND d.account_id = q.account_id AND d.subscription = q.id
  AND d.entries >= 0 AND d.state <> 'done'`
const SELECT_LEASES = `${QUEUES} SELECT count(*) FILTER (WHERE expires > ?) AS leases FROM (
  SELECT d.lease_expires_at AS expires FROM queues q CROSS JOIN deliveries d INDEXED BY deliveries_by_state
  ON ${IN_QUEUE} AND d.state = 'leased' LIMIT 10000)`
const SELECT_OLDEST = `${QUEUES} SELECT min(received_at) AS oldest FROM (
  SELECT (SELECT e.received_at FROM events e WHERE e.id = (
    SELECT d.event_id FROM deliveries d INDEXED BY deliveries_by_state
    WHERE ${IN_QUEUE} AND d.state = 'pending' ORDER BY d.event_id LIMIT 1)) AS received_at FROM queues q
  UNION ALL
  SELECT (SELECT i.received_at FROM event_index i WHERE i.company_id = q.company_id AND i.account_id = q.account_id
    AND i.event_id > q.enqueued_up_to AND i.kind = 'event' ORDER BY i.event_id LIMIT 1) FROM queues q)`

export function readMetrics(db: DatabaseSync, now: number): StoreMetrics {
  return {
    leases: db.prepare(SELECT_LEASES).get(now)!.leases as number,
    oldestPendingAt: (unlessDamaged(() => db.prepare(SELECT_OLDEST).get())?.oldest ?? null) as number | null,
    unseenSince: null,
    unreadable: Number(db.prepare(COUNT_UNREADABLE).get()?.count),
    ...readErasures(db),
    ...readSizes(db.location()!),
  }
}

function readErasures(db: DatabaseSync): Pick<StoreMetrics, 'erasures' | 'erasuresPending'> {
  const erasures = lastErasure(db)
  return { erasures, erasuresPending: Math.max(0, erasures - erasurePositions(db).purged) }
}

function readSizes(path: string): Pick<StoreMetrics, 'databaseBytes' | 'disk'> {
  const files = [path, indexPath(path)].flatMap((file) => [file, `${file}-wal`])
  const sizes = files.map((file) => statSync(file, { throwIfNoEntry: false })?.size ?? 0)
  const { bsize, blocks, bavail } = statfsSync(dirname(path))
  return {
    databaseBytes: sizes.reduce((sum, size) => sum + size, 0),
    disk: { bytes: blocks * bsize, freeBytes: bavail * bsize },
  }
}
