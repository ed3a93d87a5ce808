// Follows the journal on PostgreSQL. One statement reads a page and the index cursor, so both are of one snapshot: the
// cursor moves in the transaction that writes the entries it covers, and never passes the watermark.

import type { Tenant } from '../../../model/principal.ts'
import type { FollowedEvent } from '../../../model/followed-event.ts'
import type { FollowedPage, Follower } from '../../contract/follow.ts'
import { followedEvent } from '../../rows.ts'
import type { Row, Statement } from '../connection/connection.ts'
import { unlessDamaged } from '../connection/failure.ts'
import type { Pool } from '../connection/pool.ts'

/** The page is cut before the journal is joined, and each row is fetched by its key: no plan can read more. */
const SELECT_PAGE: Statement = {
  name: 'intray_follow',
  text: `WITH at AS MATERIALIZED (SELECT position FROM intray.index_cursors WHERE source = 'events'),
    page AS MATERIALIZED (
      SELECT event_id, company_id, kind, conversation_id, contact_name, contact_email, message_type, snippet
      FROM intray.event_index
      WHERE company_id = $1 AND account_id = $2 AND event_id > $3 AND event_id <= (SELECT position FROM at)
      ORDER BY event_id LIMIT $4)
  SELECT at.position, page.event_id AS id, page.kind, e.revises, e.received_at, e.source_ref, e.channel_ref,
    page.conversation_id, page.contact_name, page.contact_email, page.message_type, page.snippet, e.size, e.sha256,
    e.erased_at, e.scope, e.key_id, e.request_id
  FROM at LEFT JOIN page ON true LEFT JOIN LATERAL (
    SELECT revises, received_at, source_ref, channel_ref, size, sha256, erased_at, scope, key_id, request_id
    FROM intray.events WHERE id = page.event_id AND company_id = page.company_id OFFSET 0) e ON true
  ORDER BY page.event_id`,
}
const SELECT_HEAD: Statement = {
  name: 'intray_follow_head',
  text: `SELECT position, watermark FROM intray.index_cursors WHERE source = 'events'`,
}
const SELECT_TENANTS: Statement = {
  name: 'intray_tenants_between',
  text: 'SELECT DISTINCT account_id, company_id FROM intray.events WHERE id > $1 AND id <= $2',
}

const SELECT_NEXT: Statement = {
  name: 'intray_follow_next',
  text: `SELECT event_id FROM intray.event_index WHERE company_id = $1 AND account_id = $2 AND event_id > $3
  ORDER BY event_id LIMIT 1`,
}

export function createFollower(pool: Pool): Follower {
  const query = (statement: Statement, values: readonly number[]): Promise<Row[]> =>
    pool.use((connection) => connection.query(statement, values))

  const pageAfter = async ({ companyId, accountId }: Tenant, afterId: number, limit: number): Promise<FollowedPage> => {
    const rows = await query(SELECT_PAGE, [companyId, accountId, afterId, limit])
    const found = rows.filter((row) => row.id !== null)
    const reached = found.length === limit ? (found.at(-1)!.id as number) : Number(rows[0]?.position ?? 0)
    // The event was purged from the journal.
    const events = found.filter((row) => row.request_id !== null).map(followedEvent)
    return { events, through: Math.max(afterId, reached) }
  }

  /** Passes over rows that a damaged page hides, like those that are gone: a follower would stand still for ever. */
  const pageAround = async (tenant: Tenant, afterId: number, limit: number): Promise<FollowedPage> => {
    const events: FollowedEvent[] = []
    let through = afterId
    for (let looks = 0; looks < limit; looks++) {
      const page = await unlessDamaged(pageAfter(tenant, through, 1))
      const [next] = await query(SELECT_NEXT, [tenant.companyId, tenant.accountId, through])
      events.push(...(page?.events ?? []))
      through = page?.through ?? Number(next?.event_id ?? through)
      if (!next) break
    }
    return { events, through }
  }

  const tenantsBetween = async (afterId: number, throughId: number): Promise<Tenant[]> => {
    const rows = await unlessDamaged(query(SELECT_TENANTS, [afterId, throughId]))
    if (rows) return rows.map((row) => ({ accountId: row.account_id as number, companyId: row.company_id as number }))
    if (throughId - afterId <= 1) return []
    // A tenant may be named twice.
    const middle = Math.floor((afterId + throughId) / 2)
    return [...(await tenantsBetween(afterId, middle)), ...(await tenantsBetween(middle, throughId))]
  }

  return {
    after: async (tenant, afterId, limit) =>
      (await unlessDamaged(pageAfter(tenant, afterId, limit))) ?? pageAround(tenant, afterId, limit),
    async head() {
      const [row] = await query(SELECT_HEAD, [])
      return { newest: Number(row?.watermark ?? 0), indexed: Number(row?.position ?? 0) }
    },
    tenantsBetween,
  }
}
