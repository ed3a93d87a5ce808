// Refusals on PostgreSQL: added in batches, the oldest deleted in the same transaction, by one node at a time.

import type { Tenant } from '../../../model/principal.ts'
import type { Refusal } from '../../../model/refusal.ts'
import type { RefusalStore } from '../../contract/refusals.ts'
import { storedRefusal } from '../../rows.ts'
import { bigints, byteas, texts, unnested } from '../connection/binary-array.ts'
import type { Statement } from '../connection/connection.ts'
import { LOCKS } from '../connection/locks.ts'
import type { Pool } from '../connection/pool.ts'

const INSERT: Statement = {
  name: 'intray_insert_refusals',
  text: `INSERT INTO intray.refusals (account_id, company_id, received_at, body_size, key_id, code, route, request_id,
    headers, body, reason)
  SELECT k.* FROM (SELECT ${unnested('bigint bigint bigint bigint text text text text text bytea text')})
    AS k (account_id, company_id, received_at, body_size, key_id, code, route, request_id, headers, body, reason)
  WHERE k.received_at > coalesce((SELECT e.erased_at FROM intray.erasures e
    WHERE e.company_id = k.company_id AND e.account_id = k.account_id ORDER BY e.id DESC LIMIT 1), -1)`,
}
const DELETE_EXCESS: Statement = {
  name: 'intray_delete_excess_refusals',
  text: `DELETE FROM intray.refusals WHERE company_id = $1 AND account_id = $2 AND id <= (
    SELECT id FROM intray.refusals WHERE company_id = $1 AND account_id = $2 ORDER BY id DESC LIMIT 1 OFFSET $3)`,
}
export const REFUSAL_COLUMNS = `id, account_id, company_id, received_at, key_id, code, reason, route, request_id, headers, body_size, body,
  accepted_as`
const SELECT = `SELECT ${REFUSAL_COLUMNS} FROM intray.refusals WHERE company_id = $1 AND account_id = $2 AND id < $3
  ORDER BY id DESC LIMIT $4`
const SELECT_ONE = `SELECT ${REFUSAL_COLUMNS} FROM intray.refusals WHERE company_id = $1 AND account_id = $2 AND id = $3`
const ACCEPT = `UPDATE intray.refusals SET accepted_as = $4, accepted_at = $5, accepted_by = $6
  WHERE company_id = $1 AND account_id = $2 AND id = $3 AND accepted_as IS NULL`

export function createRefusalStore(pool: Pool): RefusalStore {
  return {
    add: (refusals, bounds) =>
      pool.transaction(async (connection) => {
        await connection.query('SELECT pg_advisory_xact_lock($1, $2)', LOCKS.refusals)
        // An erasure is over, and seen here, or its transaction has not begun.
        await connection.query('SELECT pg_advisory_xact_lock_shared($1, $2)', LOCKS.erasures)
        await connection.query(INSERT, columnsOf(refusals))
        const tenants = new Map<string, Tenant>()
        for (const one of refusals) tenants.set(`${one.companyId}:${one.accountId}`, one)
        for (const { companyId, accountId } of tenants.values()) {
          await connection.query(DELETE_EXCESS, [companyId, accountId, bounds.maxCount])
        }
      }),
    list: async (tenant, beforeId, limit) => {
      const values = [tenant.companyId, tenant.accountId, beforeId, limit]
      const rows = await pool.use((connection) => connection.query(SELECT, values))
      return rows.map(storedRefusal)
    },
    find: async ({ companyId, accountId }, id) => {
      const [row] = await pool.use((connection) => connection.query(SELECT_ONE, [companyId, accountId, id]))
      return row ? storedRefusal(row) : null
    },
    accept: ({ companyId, accountId }, id, { eventId, at, by }) =>
      pool.use(async (connection) => {
        await connection.query(ACCEPT, [companyId, accountId, id, eventId, at, by])
      }),
  }
}

function columnsOf(refusals: readonly Refusal[]): Buffer[] {
  const texted = (column: (refusal: Refusal) => string) =>
    texts(refusals.map((one) => column(one).replaceAll('\0', '\uFFFD')))
  return [
    bigints(refusals.map((one) => one.accountId)),
    bigints(refusals.map((one) => one.companyId)),
    bigints(refusals.map((one) => one.receivedAt)),
    bigints(refusals.map((one) => one.bodySize)),
    texted((one) => one.keyId),
    texted((one) => one.code),
    texted((one) => one.route),
    texted((one) => one.requestId),
    texted((one) => JSON.stringify(one.headers)),
    byteas(refusals.map((one) => one.body)),
    texts(refusals.map((one) => one.reason)),
  ]
}
