// Recent traffic and queue depth of a tenant, for the console. The indexer derives the counts by minute and hour from
// the journal, in the transaction of its step; a rebuild recreates them.
//
// Promises
// - Every call is bound to its tenant and reads a bounded number of rows, whatever is stored.
// - Rows by minute are kept for 48 hours and rows by hour for 35 days; a rebuild brings older ones back until the next
//   prune.

import type { Tenant } from '../../model/principal.ts'
import type { TrafficRow } from '../../model/traffic.ts'

export interface QueueDepth {
  readonly pending: number
  readonly leased: number
  readonly dead: number
  /** When the oldest pending event was received. */
  readonly oldestPendingAt: number | null
}

export interface RefusalCount {
  readonly code: string
  readonly count: number
  readonly lastAt: number
}

export interface TrafficReader {
  /** In order of time, from the given one. */
  minutes(tenant: Tenant, from: number): Promise<TrafficRow[]>
  /** In order of time and sender. */
  hours(tenant: Tenant, from: number): Promise<TrafficRow[]>
  /** Of the subscription `default`, as far as events are indexed. An expired lease counts as pending. */
  queueDepth(tenant: Tenant, now: number): Promise<QueueDepth>
  /** By code, the most frequent first, since the given time. */
  refusalCounts(tenant: Tenant, since: number): Promise<RefusalCount[]>
}
