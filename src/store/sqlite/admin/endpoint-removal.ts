// Ends of endpoints on SQLite, inside a transaction of the caller: removed, gone with a subscription, or moved with a tenant.

import type { DatabaseSync } from 'node:sqlite'
import type { Tenant } from '../../../model/principal.ts'

export const NEXT_GENERATION = '(SELECT coalesce(max(generation), 0) + 1 FROM endpoints)'
const OF_QUEUE = 'company_id = ? AND account_id = ? AND subscription = ?'
const REMOVE = `UPDATE endpoints SET removed_at = ?, sealed = x'', generation = ${NEXT_GENERATION} WHERE ${OF_QUEUE}
  AND removed_at IS NULL`
const REMOVE_ATTEMPTS = `DELETE FROM endpoint_attempts WHERE ${OF_QUEUE}`
const SET_MOVED = `UPDATE endpoints SET is_moved = ?, generation = ${NEXT_GENERATION} WHERE company_id = ? AND account_id = ?`

export type QueueKey = readonly [companyId: number, accountId: number, subscription: number]

export function removeEndpoint(db: DatabaseSync, queue: QueueKey, at: number): boolean {
  db.prepare(REMOVE_ATTEMPTS).run(...queue)
  return db.prepare(REMOVE).run(at, ...queue).changes > 0
}

export function setEndpointsMoved(db: DatabaseSync, { companyId, accountId }: Tenant, isMoved: boolean): void {
  db.prepare(SET_MOVED).run(isMoved ? 1 : 0, companyId, accountId)
}
