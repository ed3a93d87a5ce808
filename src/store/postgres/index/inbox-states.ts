// Filter by processing state on PostgreSQL.

import type { FoundIds } from '../../../model/event-list.ts'
import type { Tenant } from '../../../model/principal.ts'
import { DEFAULT_SUBSCRIPTION } from '../../../model/processing.ts'
import type { StateFilter } from '../../contract/inbox.ts'
import type { Statement } from '../connection/connection.ts'
import type { Pool } from '../connection/pool.ts'
import type { Queue } from '../processing/processing-rows.ts'
import type { Condition } from './inbox-filters.ts'

/** The state of a delivery at a time: no row records that a lease has expired. */
export const stateAt = (time: string): string =>
  `CASE WHEN state = 'leased' AND lease_expires_at <= ${time} THEN 'pending' ELSE state END`

const SELECT_SUBSCRIPTION: Statement = {
  name: 'intray_subscription_view',
  text: `SELECT id, enqueued_up_to FROM intray.subscriptions WHERE company_id = $1 AND account_id = $2 AND name = $3
    AND deleted_at IS NULL`,
}
/** Written so that only one index has the order: by the primary key, the query would pass the deliveries of all tenants. */
const inState = (state: string): string => `SELECT event_id FROM intray.deliveries
  WHERE company_id = $1 AND account_id = $2 AND subscription = $3 AND entries >= 0 AND state <> 'done'
    AND state >= ${state} AND (state, event_id) < (${state}, $4)
  ORDER BY state DESC, event_id DESC LIMIT $5`
const SELECT_IN_STATE: Statement = { name: 'intray_in_state', text: inState('$6::text') }
/** Nearly all enqueued events are done. */
const SELECT_ENQUEUED: Statement = {
  name: 'intray_enqueued',
  text: `SELECT event_id FROM intray.event_index WHERE company_id = $1 AND account_id = $2 AND event_id <= $5
    AND event_id < $3 ORDER BY event_id DESC LIMIT $4`,
}
/** One statement, so that an event that changes its state meanwhile is not missed. */
const SELECT_PENDING: Statement = {
  name: 'intray_in_state_pending',
  text: `SELECT event_id FROM (
    (SELECT event_id FROM intray.event_index WHERE company_id = $1 AND account_id = $2 AND event_id > $6
      AND event_id < $4 ORDER BY event_id DESC LIMIT $5)
    UNION (${inState("'leased'")}) UNION (${inState("'pending'")})
  ) found ORDER BY event_id DESC LIMIT $5`,
}

/** A requested state, and the subscription that it refers to. */
export interface StateView {
  readonly filter: StateFilter
  readonly queue: Queue
  readonly enqueuedUpTo: number
}

/** Null: no such subscription. */
export async function stateViewOf(pool: Pool, tenant: Tenant, filter: StateFilter): Promise<StateView | null> {
  const { companyId, accountId } = tenant
  const [row] = await pool.use((connection) =>
    connection.query<{ id: number; enqueued_up_to: number }>(SELECT_SUBSCRIPTION, [
      companyId,
      accountId,
      filter.subscription,
    ]),
  )
  if (row) return { filter, queue: [companyId, accountId, row.id], enqueuedUpTo: row.enqueued_up_to }
  return filter.subscription === DEFAULT_SUBSCRIPTION
    ? { filter, queue: [companyId, accountId, 0], enqueuedUpTo: 0 }
    : null
}

/** Events enqueued after `enqueuedUpTo` was read have deliveries by then, which count. */
export function stateCondition({ filter, queue, enqueuedUpTo }: StateView): Condition {
  return (values) => {
    const [companyId, accountId, subscription] = queue.map((part) => values.add(part))
    return `listed.kind = 'event' AND coalesce((SELECT ${stateAt(values.add(filter.now))} FROM intray.deliveries
      WHERE company_id = ${companyId} AND account_id = ${accountId} AND subscription = ${subscription}
        AND event_id = listed.event_id),
      CASE WHEN listed.event_id > ${values.add(enqueuedUpTo)} THEN 'pending' END) = ${values.add(filter.is)}`
  }
}

/** Candidate ids for the state, highest first, below the given one. The condition decides. */
export async function findInState(
  pool: Pool,
  { filter, queue, enqueuedUpTo }: StateView,
  below: number,
  limit: number,
): Promise<FoundIds> {
  const rows = await pool.use((connection) => {
    if (filter.is === 'done')
      return connection.query<{ event_id: number }>(SELECT_ENQUEUED, [queue[0], queue[1], below, limit, enqueuedUpTo])
    return filter.is === 'pending'
      ? connection.query<{ event_id: number }>(SELECT_PENDING, [...queue, below, limit, enqueuedUpTo])
      : connection.query<{ event_id: number }>(SELECT_IN_STATE, [...queue, below, limit, filter.is])
  })
  const ids = rows.map((row) => row.event_id)
  return { ids, searchedDownTo: ids.length === limit ? ids.at(-1)! : null }
}
