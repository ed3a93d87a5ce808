// Follows the journal on SQLite. One statement reads a page and the index cursor, so both are of one snapshot.

import type { DatabaseSync } from 'node:sqlite'
import type { Tenant } from '../../../model/principal.ts'
import type { FollowedPage, FollowHead } from '../../contract/follow.ts'
import type { FollowedEvent } from '../../../model/followed-event.ts'
import { followedEvent } from '../../rows.ts'
import { unlessDamaged } from '../connection.ts'
import { readSequence } from './sequence.ts'

const POSITION = `SELECT position FROM index_cursors WHERE source = 'events'`
const SELECT_PAGE = `SELECT p.position AS position, page.* FROM (${POSITION}) p LEFT JOIN (
    SELECT i.event_id AS id, i.kind, e.revises, e.received_at, e.source_ref, e.channel_ref, i.conversation_id,
      i.contact_name, i.contact_email, i.message_type, i.snippet, e.size, e.sha256, e.erased_at, e.scope, e.key_id, e.request_id
    FROM event_index i CROSS JOIN events e ON e.id = i.event_id
    WHERE i.company_id = ? AND i.account_id = ? AND i.event_id > ? AND i.event_id <= (${POSITION})
    ORDER BY i.event_id LIMIT ? + 0) page ON true
  ORDER BY page.id`
const SELECT_TENANTS = `SELECT DISTINCT account_id, company_id FROM events WHERE id > ? AND id <= ?`

const SELECT_NEXT = `SELECT event_id FROM event_index WHERE company_id = ? AND account_id = ? AND event_id > ?
  ORDER BY event_id LIMIT 1`

export function prepareFollow(db: DatabaseSync) {
  const pageAfter = ({ companyId, accountId }: Tenant, afterId: number, limit: number): FollowedPage => {
    const rows = db.prepare(SELECT_PAGE).all(companyId, accountId, afterId, limit)
    const events = rows.filter((row) => row.id !== null).map(followedEvent)
    const reached = events.length === limit ? events.at(-1)!.id : Number(rows[0]?.position ?? 0)
    return { events, through: Math.max(afterId, reached) }
  }

  /** Passes over rows that a damaged page hides, like those that are gone: a follower would stand still for ever. */
  const pageAround = (tenant: Tenant, afterId: number, limit: number): FollowedPage => {
    const events: FollowedEvent[] = []
    let through = afterId
    for (let looks = 0; looks < limit; looks++) {
      const page = unlessDamaged(() => pageAfter(tenant, through, 1))
      const hidden = page ? null : db.prepare(SELECT_NEXT).get(tenant.companyId, tenant.accountId, through)
      events.push(...(page?.events ?? []))
      through = page?.through ?? Number(hidden?.event_id ?? through)
      if (page ? page.events.length === 0 : !hidden) break
    }
    return { events, through }
  }

  const tenantsBetween = (afterId: number, throughId: number): Tenant[] => {
    const rows = unlessDamaged(() => db.prepare(SELECT_TENANTS).all(afterId, throughId))
    if (rows) return rows.map((row) => ({ accountId: row.account_id as number, companyId: row.company_id as number }))
    if (throughId - afterId <= 1) return []
    // A tenant may be named twice.
    const middle = Math.floor((afterId + throughId) / 2)
    return [...tenantsBetween(afterId, middle), ...tenantsBetween(middle, throughId)]
  }

  return {
    after: (tenant: Tenant, afterId: number, limit: number): FollowedPage =>
      unlessDamaged(() => pageAfter(tenant, afterId, limit)) ?? pageAround(tenant, afterId, limit),
    head: (): FollowHead => ({
      newest: readSequence(db, 'events'),
      indexed: Number(db.prepare(POSITION).get()?.position ?? 0),
    }),
    tenantsBetween,
  }
}
