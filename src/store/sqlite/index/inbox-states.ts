// Filter by processing state on SQLite.

import type { DatabaseSync } from 'node:sqlite'
import type { FoundIds } from '../../../model/event-list.ts'
import type { Tenant } from '../../../model/principal.ts'
import type { StateFilter } from '../../contract/inbox.ts'
import { queueOf } from '../processing/processing.ts'
import type { Queue } from '../processing/processing-rows.ts'
import { readSubscription } from '../processing/subscriptions.ts'
import type { Condition } from './inbox-filters.ts'

/** The state of a delivery at a time: no row records that a lease has expired. */
export const STATE_NOW = "CASE WHEN state = 'leased' AND lease_expires_at <= ? THEN 'pending' ELSE state END"

const OF_QUEUE = 'company_id = ? AND account_id = ? AND subscription = ?'
const SELECT_IN_STATE = `SELECT event_id FROM deliveries INDEXED BY deliveries_by_state WHERE ${OF_QUEUE} AND state = ?
  AND event_id < ? AND entries >= 0 AND state <> 'done' ORDER BY event_id DESC LIMIT ? + 0`
const SELECT_UNQUEUED = `SELECT event_id FROM event_index WHERE company_id = ? AND account_id = ? AND event_id > ?
  AND event_id < ? ORDER BY event_id DESC LIMIT ? + 0`
const SELECT_ENQUEUED = `SELECT event_id FROM event_index WHERE company_id = ? AND account_id = ? AND event_id <= ?
  AND event_id < ? ORDER BY event_id DESC LIMIT ? + 0`

/** A requested state, and the subscription that it refers to. */
export interface StateView {
  readonly filter: StateFilter
  readonly queue: Queue
  readonly enqueuedUpTo: number
}

/** Null: no such subscription. */
export function stateViewOf(db: DatabaseSync, tenant: Tenant, filter: StateFilter): StateView | null {
  const name = { tenant, subscription: filter.subscription }
  const queue = queueOf(db, name)
  const subscription = readSubscription(db, name)
  return queue && subscription && { filter, queue, enqueuedUpTo: subscription.enqueuedUpTo }
}

/**
 * For index rows under the alias `listed`. Events enqueued after `enqueuedUpTo` was read have deliveries by then, which
 * count.
 */
export function stateCondition({ filter, queue, enqueuedUpTo }: StateView): Condition {
  return {
    sql: `listed.kind = 'event' AND coalesce((SELECT ${STATE_NOW} FROM deliveries WHERE ${OF_QUEUE}
      AND event_id = listed.event_id), CASE WHEN listed.event_id > ? THEN 'pending' END) = ?`,
    values: [filter.now, ...queue, enqueuedUpTo, filter.is],
  }
}

/** Candidate ids for the state, highest first, below the given one. The condition decides. */
export function findInState(db: DatabaseSync, view: StateView, below: number, limit: number): FoundIds {
  const { filter, queue, enqueuedUpTo } = view
  const idsOf = (sql: string, ...args: readonly (string | number)[]): number[] =>
    db
      .prepare(sql)
      .all(...args, below, limit)
      .map((row) => row.event_id as number)
  // Nearly all enqueued events are done.
  if (filter.is === 'done') return found(idsOf(SELECT_ENQUEUED, queue[0], queue[1], enqueuedUpTo), limit)
  if (filter.is !== 'pending') return found(idsOf(SELECT_IN_STATE, ...queue, filter.is), limit)
  const unqueued = idsOf(SELECT_UNQUEUED, queue[0], queue[1], enqueuedUpTo)
  if (unqueued.length === limit) return found(unqueued, limit)
  // Leases are read first: a delivery that is given back meanwhile is found twice, not missed.
  const leased = idsOf(SELECT_IN_STATE, ...queue, 'leased')
  const pending = idsOf(SELECT_IN_STATE, ...queue, 'pending')
  const all = Array.from(new Set([...unqueued, ...leased, ...pending])).toSorted((a, b) => b - a)
  return found(all.slice(0, limit), limit)
}

function found(ids: readonly number[], limit: number): FoundIds {
  return { ids, searchedDownTo: ids.length === limit ? ids.at(-1)! : null }
}
