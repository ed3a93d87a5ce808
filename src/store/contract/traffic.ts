// What a tenant has received lately, and what is left to do: figures for people who look. The counts by minute and hour are
// derived from the journal by the indexer, in the transaction of its step, and are rebuilt with the index.
//
// Promises
// - Every call is bound to its tenant and reads a bounded number of rows, whatever is stored.
// - Rows by minute are kept for 48 hours and rows by hour for 35 days; a rebuild brings older ones back until the next prune.

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
  /** In the order of time, from the given one. */
  minutes(tenant: Tenant, from: number): Promise<TrafficRow[]>
  /** In the order of time and of senders. */
  hours(tenant: Tenant, from: number): Promise<TrafficRow[]>
  /** Of the subscription `default`, as far as it is indexed. A lease that has expired is pending. */
  queueDepth(tenant: Tenant, now: number): Promise<QueueDepth>
  /** By code, the most frequent first, since the given time. */
  refusalCounts(tenant: Tenant, since: number): Promise<RefusalCount[]>
}
