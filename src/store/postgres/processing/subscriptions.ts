// Subscriptions on PostgreSQL, created one after the other under a lock. A deleted subscription's row stays, so that
// its id is never reused.

import type { Tenant } from '../../../model/principal.ts'
import { DEFAULT_SUBSCRIPTION } from '../../../model/processing.ts'
import { StoreFailure } from '../../contract/failure.ts'
import type { QueueName, Subscription, SubscriptionOptions } from '../../contract/processing.ts'
import { SUBSCRIPTION_COLUMNS, subscription as subscriptionOf, UNUSED_DEFAULT } from '../../rows.ts'
import { lockEndpoints, removeEndpoint } from '../admin/endpoint-removal.ts'
import type { Connection, Statement } from '../connection/connection.ts'
import { LOCKS } from '../connection/locks.ts'
import type { Pool } from '../connection/pool.ts'
import { retryTransaction } from '../connection/retry-transaction.ts'
import { readWatermark } from '../journal/watermark.ts'

/** Rows per step when deleting the rows of a subscription. */
const CLEAR_ROWS = 5000

const SELECT_ALL: Statement = {
  name: 'intray_subscriptions',
  text: `SELECT ${SUBSCRIPTION_COLUMNS} FROM intray.subscriptions WHERE company_id = $1 AND account_id = $2
    AND deleted_at IS NULL ORDER BY id`,
}
const INSERT = `INSERT INTO intray.subscriptions (company_id, account_id, id, name, created_at, enqueued_up_to)
  SELECT $1, $2, coalesce(max(id), 0) + 1, $3, $4, $5 FROM intray.subscriptions WHERE company_id = $1 AND account_id = $2`
export const ADD_DEFAULT: Statement = {
  name: 'intray_add_default',
  // The row nearly always exists, and finding that by a conflict costs many times a lookup.
  text: `INSERT INTO intray.subscriptions (company_id, account_id, id, name, created_at, enqueued_up_to)
    SELECT $1, $2, 0, '${DEFAULT_SUBSCRIPTION}', $3, 0
    WHERE NOT EXISTS (SELECT FROM intray.subscriptions WHERE company_id = $1 AND account_id = $2 AND id = 0)
    ON CONFLICT DO NOTHING`,
}
const SET_RULES = `UPDATE intray.subscriptions SET max_attempts = coalesce($4, max_attempts),
  first_delay_ms = coalesce($5, first_delay_ms), max_delay_ms = coalesce($6, max_delay_ms)
  WHERE company_id = $1 AND account_id = $2 AND name = $3 AND deleted_at IS NULL`
const MARK = `UPDATE intray.subscriptions SET deleted_at = $4 WHERE company_id = $1 AND account_id = $2 AND name = $3
  AND deleted_at IS NULL RETURNING id`
const TABLES: readonly (readonly [name: string, key: string])[] = [
  ['lanes', 'lane'],
  ['deliveries', 'event_id'],
  ['delivery_history', 'event_id'],
]

export function createSubscription(
  pool: Pool,
  { tenant, subscription }: QueueName,
  from: 'now' | 'beginning',
  at: number,
  { max, maxAttempts = null, firstDelayMs = null, maxDelayMs = null }: SubscriptionOptions = {},
): Promise<{ subscription: Subscription; created: boolean } | null> {
  return pool.transaction(async (connection) => {
    await connection.query('SELECT pg_advisory_xact_lock($1, $2)', LOCKS.subscriptions)
    const named = ({ name }: Subscription) => name === subscription
    const all = await readSubscriptions(connection, tenant)
    const exists = all.some(named)
    if (!exists && max !== undefined && all.length >= max) return null
    const key = [tenant.companyId, tenant.accountId] as const
    if (!exists) {
      // Everything up to the watermark is committed: later commits have higher ids.
      const enqueuedUpTo = from === 'now' ? await readWatermark(connection) : 0
      await connection.query(INSERT, [...key, subscription, at, enqueuedUpTo])
    }
    const rules = [maxAttempts, firstDelayMs, maxDelayMs]
    if (rules.some((rule) => rule !== null)) {
      if (subscription === DEFAULT_SUBSCRIPTION) await connection.query(ADD_DEFAULT, [...key, at])
      await connection.query(SET_RULES, [...key, subscription, ...rules])
    }
    return { subscription: (await readSubscriptions(connection, tenant)).find(named)!, created: !exists }
  })
}

export async function deleteSubscription(pool: Pool, { tenant, subscription }: QueueName, at: number) {
  if (subscription === DEFAULT_SUBSCRIPTION) throw new StoreFailure('rejected', 'the default cannot be deleted')
  const { companyId, accountId } = tenant
  const marked = await pool.transaction(async (connection) => {
    await lockEndpoints(connection)
    const [row] = await connection.query<{ id: number }>(MARK, [companyId, accountId, subscription, at])
    if (row) await removeEndpoint(connection, [companyId, accountId, row.id], at)
    return row
  })
  let step: Clearing | null = marked ? { subscription: marked.id, table: 0, after: 0 } : null
  while (step) {
    const from: Clearing = step
    step = await retryTransaction(pool, (connection) => clearSome(connection, tenant, from))
  }
  return marked !== undefined
}

/** Progress of the deletion: it walks the tables in key order. */
interface Clearing {
  readonly subscription: number
  readonly table: number
  readonly after: number
}

/** One bounded step. Null when nothing is left. */
async function clearSome(
  connection: Connection,
  { companyId, accountId }: Tenant,
  from: Clearing,
): Promise<Clearing | null> {
  const queue = [companyId, accountId, from.subscription] as const
  const table = TABLES[from.table]
  if (!table) return null
  const [name, key] = table
  const [row] = await connection.query<{ up_to: number | null }>(
    `SELECT max(${key}) AS up_to FROM (SELECT ${key} FROM intray.${name} WHERE ${key} > $1 ORDER BY ${key} LIMIT $2) page`,
    [from.after, CLEAR_ROWS],
  )
  const upTo = row?.up_to ?? null
  if (upTo === null) return { ...from, table: from.table + 1, after: 0 }
  await connection.execute(
    `DELETE FROM intray.${name} WHERE company_id = $1 AND account_id = $2 AND subscription = $3
      AND ${key} > $4 AND ${key} <= $5`,
    [...queue, from.after, upTo],
  )
  return { ...from, after: upTo }
}

/** `default` first, used or not. */
export async function readSubscriptions(
  connection: Connection,
  { companyId, accountId }: Tenant,
): Promise<Subscription[]> {
  const all = (await connection.query(SELECT_ALL, [companyId, accountId])).map(subscriptionOf)
  return all.some(({ name }) => name === DEFAULT_SUBSCRIPTION) ? all : [UNUSED_DEFAULT, ...all]
}
