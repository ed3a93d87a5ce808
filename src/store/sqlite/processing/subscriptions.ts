// Subscriptions on SQLite. A deleted subscription's row stays, so that its id is never reused.

import type { DatabaseSync } from 'node:sqlite'
import type { Tenant } from '../../../model/principal.ts'
import { DEFAULT_SUBSCRIPTION } from '../../../model/processing.ts'
import { StoreFailure } from '../../contract/failure.ts'
import type { QueueName, Subscription, SubscriptionOptions } from '../../contract/processing.ts'
import { SUBSCRIPTION_COLUMNS, subscription as subscriptionOf, UNUSED_DEFAULT } from '../../rows.ts'
import { removeEndpoint } from '../admin/endpoint-removal.ts'
import { inTransaction } from '../connection.ts'
import { readSequence } from '../journal/sequence.ts'

const SELECT_ALL = `SELECT ${SUBSCRIPTION_COLUMNS} FROM subscriptions WHERE company_id = ? AND account_id = ?
  AND deleted_at IS NULL ORDER BY id`
const SELECT = `SELECT ${SUBSCRIPTION_COLUMNS} FROM subscriptions WHERE company_id = ? AND account_id = ? AND name = ?
  AND deleted_at IS NULL`
const INSERT = `INSERT INTO subscriptions (company_id, account_id, id, name, created_at, enqueued_up_to)
  SELECT ?1, ?2, coalesce(max(id), 0) + 1, ?3, ?4, ?5 FROM subscriptions WHERE company_id = ?1 AND account_id = ?2`
export const ADD_DEFAULT = `INSERT OR IGNORE INTO subscriptions (company_id, account_id, id, name, created_at, enqueued_up_to)
  VALUES (?, ?, 0, '${DEFAULT_SUBSCRIPTION}', ?, 0)`
const SET_RULES = `UPDATE subscriptions SET max_attempts = coalesce(?, max_attempts),
  first_delay_ms = coalesce(?, first_delay_ms), max_delay_ms = coalesce(?, max_delay_ms)
  WHERE company_id = ? AND account_id = ? AND name = ? AND deleted_at IS NULL`
const MARK = `UPDATE subscriptions SET deleted_at = ? WHERE company_id = ? AND account_id = ? AND name = ?
  AND deleted_at IS NULL RETURNING id`
const TABLES: readonly (readonly [name: string, key: string])[] = [
  ['lanes', 'lane'],
  ['deliveries', 'event_id'],
  ['delivery_history', 'event_id'],
]

export function prepareSubscriptionWrites(db: DatabaseSync) {
  return {
    create: (queue: QueueName, from: 'now' | 'beginning', at: number, options: SubscriptionOptions = {}) =>
      inTransaction(db, () => {
        const { tenant, subscription } = queue
        const { max, maxAttempts = null, firstDelayMs = null, maxDelayMs = null } = options
        const all = readSubscriptions(db, tenant)
        const exists = all.some(({ name }) => name === subscription)
        if (!exists && max !== undefined && all.length >= max) return null
        const key = [tenant.companyId, tenant.accountId] as const
        if (!exists) db.prepare(INSERT).run(...key, subscription, at, from === 'now' ? readSequence(db, 'events') : 0)
        const rules = [maxAttempts, firstDelayMs, maxDelayMs]
        if (rules.some((rule) => rule !== null)) {
          if (subscription === DEFAULT_SUBSCRIPTION) db.prepare(ADD_DEFAULT).run(...key, at)
          db.prepare(SET_RULES).run(...rules, ...key, subscription)
        }
        return { subscription: readSubscription(db, queue)!, created: !exists }
      }),
    /** Where deleting its rows begins; null if there is no such subscription. */
    remove: ({ tenant, subscription }: QueueName, at: number): Clearing | null => {
      if (subscription === DEFAULT_SUBSCRIPTION) throw new StoreFailure('rejected', 'the default cannot be deleted')
      const { companyId, accountId } = tenant
      const id = inTransaction(db, () => {
        const marked = db.prepare(MARK).get(at, companyId, accountId, subscription)?.id as number | undefined
        if (marked !== undefined) removeEndpoint(db, [companyId, accountId, marked], at)
        return marked
      })
      return id === undefined ? null : { subscription: id, table: 0, after: 0 }
    },
    /** One bounded step of deleting the rows of a deleted subscription. Null when nothing is left. */
    clear: ({ companyId, accountId }: Tenant, from: Clearing, maxRows: number): Clearing | null =>
      inTransaction(db, () => {
        const queue = [companyId, accountId, from.subscription] as const
        const table = TABLES[from.table]
        if (!table) return null
        const [name, key] = table
        const upTo = db
          .prepare(
            `SELECT max(${key}) AS up_to FROM (SELECT ${key} FROM ${name} WHERE ${key} > ? ORDER BY ${key} LIMIT ? + 0)`,
          )
          .get(from.after, maxRows)?.up_to as number | null
        if (upTo === null) return { ...from, table: from.table + 1, after: 0 }
        db.prepare(
          `DELETE FROM ${name} WHERE company_id = ? AND account_id = ? AND subscription = ? AND ${key} > ? AND ${key} <= ?`,
        ).run(...queue, from.after, upTo)
        return { ...from, after: upTo }
      }),
  }
}

/** Progress of the deletion: it walks the tables in key order. */
export interface Clearing {
  readonly subscription: number
  readonly table: number
  readonly after: number
}

/** `default` first, used or not. */
export function readSubscriptions(db: DatabaseSync, { companyId, accountId }: Tenant): Subscription[] {
  const rows = db.prepare(SELECT_ALL).all(companyId, accountId).map(subscriptionOf)
  const byDefault = rows.find(({ name }) => name === DEFAULT_SUBSCRIPTION)
  if (byDefault) return rows
  return [UNUSED_DEFAULT, ...rows]
}

export function readSubscription(db: DatabaseSync, { tenant, subscription }: QueueName): Subscription | null {
  const row = db.prepare(SELECT).get(tenant.companyId, tenant.accountId, subscription)
  if (row) return subscriptionOf(row)
  return subscription === DEFAULT_SUBSCRIPTION ? UNUSED_DEFAULT : null
}
