// Refusals on PostgreSQL: added in batches, the oldest deleted in the same transaction, by one node at a time.

import type { Tenant } from '../../model/principal.ts'
import type { Refusal, StoredRefusal } from '../../model/refusal.ts'
import type { RefusalStore } from '../contract/refusals.ts'
import { bigints, byteas, texts } from './binary-array.ts'
import type { Statement } from './connection.ts'
import { LOCKS } from './locks.ts'
import type { Pool } from './pool.ts'

const INSERT: Statement = {
  name: 'intray_insert_refusals',
  text: `INSERT INTO intray.refusals (account_id, company_id, received_at, body_size, key_id, code, route, request_id,
    headers, body)
  SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::text[], $6::text[], $7::text[],
    $8::text[], $9::text[], $10::bytea[])`,
}
const DELETE_OLD: Statement = {
  name: 'intray_delete_old_refusals',
  text: 'DELETE FROM intray.refusals WHERE received_at < $1',
}
const DELETE_EXCESS: Statement = {
  name: 'intray_delete_excess_refusals',
  text: `DELETE FROM intray.refusals WHERE company_id = $1 AND account_id = $2 AND id <= (
    SELECT id FROM intray.refusals WHERE company_id = $1 AND account_id = $2 ORDER BY id DESC LIMIT 1 OFFSET $3)`,
}
const SELECT = `SELECT id, account_id, company_id, received_at, key_id, code, route, request_id, headers, body_size, body
  FROM intray.refusals WHERE company_id = $1 AND account_id = $2 AND id < $3 ORDER BY id DESC LIMIT $4`

export function createRefusalStore(pool: Pool): RefusalStore {
  return {
    add: (refusals, bounds, now) =>
      pool.transaction(async (connection) => {
        await connection.query('SELECT pg_advisory_xact_lock($1, $2)', LOCKS.refusals)
        await connection.query(INSERT, columnsOf(refusals))
        await connection.query(DELETE_OLD, [now - bounds.maxAgeMs])
        const tenants = new Map<string, Tenant>()
        for (const one of refusals) tenants.set(`${one.companyId}:${one.accountId}`, one)
        for (const { companyId, accountId } of tenants.values()) {
          await connection.query(DELETE_EXCESS, [companyId, accountId, bounds.maxCount])
        }
      }),
    list: async (tenant, beforeId, limit) => {
      const values = [tenant.companyId, tenant.accountId, beforeId, limit]
      const rows = await pool.use((connection) => connection.query(SELECT, values))
      return rows.map(
        (row): StoredRefusal => ({
          id: row.id as number,
          accountId: row.account_id as number,
          companyId: row.company_id as number,
          receivedAt: row.received_at as number,
          keyId: row.key_id as string,
          code: row.code as Refusal['code'],
          route: row.route as string,
          requestId: row.request_id as string,
          headers: JSON.parse(row.headers as string) as Record<string, string>,
          bodySize: row.body_size as number,
          body: row.body as Uint8Array,
        }),
      )
    },
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
  ]
}
