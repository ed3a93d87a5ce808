// Refusals on SQLite: added in batches, the excess of each tenant deleted in the same transaction.

import type { DatabaseSync } from 'node:sqlite'
import type { Tenant } from '../../../model/principal.ts'
import type { Refusal, StoredRefusal } from '../../../model/refusal.ts'
import type { Acceptance, RefusalBounds } from '../../contract/refusals.ts'
import { storedRefusal } from '../../rows.ts'
import { inTransaction } from '../connection.ts'

const INSERT = `INSERT INTO refusals (account_id, company_id, received_at, key_id, code, route, request_id, headers,
    body_size, body, reason) SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11
  WHERE ?3 > ifnull((SELECT erased_at FROM erasures WHERE company_id = ?2 AND account_id = ?1 ORDER BY id DESC LIMIT 1), -1)`
const DELETE_EXCESS = `DELETE FROM refusals WHERE company_id = ?1 AND account_id = ?2 AND id <= (
    SELECT id FROM refusals WHERE company_id = ?1 AND account_id = ?2 ORDER BY id DESC LIMIT 1 OFFSET ?3)`
export const REFUSAL_COLUMNS = `id, account_id, company_id, received_at, key_id, code, reason, route, request_id, headers, body_size, body,
  accepted_as`
const SELECT = `SELECT ${REFUSAL_COLUMNS} FROM refusals WHERE company_id = ? AND account_id = ? AND id < ?
  ORDER BY id DESC LIMIT ? + 0`
const SELECT_ONE = `SELECT ${REFUSAL_COLUMNS} FROM refusals WHERE company_id = ? AND account_id = ? AND id = ?`
const ACCEPT = `UPDATE refusals SET accepted_as = ?, accepted_at = ?, accepted_by = ?
  WHERE company_id = ? AND account_id = ? AND id = ? AND accepted_as IS NULL`

export function prepareRefusalWrites(db: DatabaseSync) {
  return {
    add: (refusals: readonly Refusal[], bounds: RefusalBounds): void =>
      inTransaction(db, () => {
        const insert = db.prepare(INSERT)
        const tenants = new Map<string, Tenant>()
        for (const one of refusals) {
          insert.run(
            one.accountId,
            one.companyId,
            one.receivedAt,
            one.keyId,
            one.code,
            one.route,
            one.requestId,
            JSON.stringify(one.headers),
            one.bodySize,
            one.body,
            one.reason,
          )
          tenants.set(`${one.companyId}:${one.accountId}`, one)
        }
        const deleteExcess = db.prepare(DELETE_EXCESS)
        for (const { companyId, accountId } of tenants.values()) deleteExcess.run(companyId, accountId, bounds.maxCount)
      }),
    accept: ({ companyId, accountId }: Tenant, id: number, { eventId, at, by }: Acceptance): void => {
      db.prepare(ACCEPT).run(eventId, at, by, companyId, accountId, id)
    },
  }
}

export function listRefusals(db: DatabaseSync, tenant: Tenant, beforeId: number, limit: number): StoredRefusal[] {
  return db.prepare(SELECT).all(tenant.companyId, tenant.accountId, beforeId, limit).map(storedRefusal)
}

export function findRefusal(db: DatabaseSync, { companyId, accountId }: Tenant, id: number): StoredRefusal | null {
  const row = db.prepare(SELECT_ONE).get(companyId, accountId, id)
  return row ? storedRefusal(row) : null
}
