// Follows the journal on SQLite. One statement reads a page and the index cursor, so both are of one snapshot.

import type { DatabaseSync } from 'node:sqlite'
import type { Tenant } from '../../../model/principal.ts'
import type { FollowedPage, FollowHead } from '../../contract/follow.ts'
import { followedEvent } from '../../rows.ts'
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

export function prepareFollow(db: DatabaseSync) {
  return {
    after(tenant: Tenant, afterId: number, limit: number): FollowedPage {
      const rows = db.prepare(SELECT_PAGE).all(tenant.companyId, tenant.accountId, afterId, limit)
      const events = rows.filter((row) => row.id !== null).map(followedEvent)
      const reached = events.length === limit ? events.at(-1)!.id : Number(rows[0]?.position ?? 0)
      return { events, through: Math.max(afterId, reached) }
    },
    head: (): FollowHead => ({
      newest: readSequence(db, 'events'),
      indexed: Number(db.prepare(POSITION).get()?.position ?? 0),
    }),
    tenantsBetween: (afterId: number, throughId: number): Tenant[] =>
      db
        .prepare(SELECT_TENANTS)
        .all(afterId, throughId)
        .map((row) => ({ accountId: row.account_id as number, companyId: row.company_id as number })),
  }
}
