// Filters of event lists as SQLite SQL: the index range that leads to the rows, and the conditions checked row by row.
// inbox-states.ts has the filter by processing state.

import { type AccessPath, accessPathOf } from '../../../model/event-list.ts'
import type { Tenant } from '../../../model/principal.ts'
import { foldEmail } from '../../../model/text-search.ts'
import type { EventFilter, EventPosition } from '../../contract/inbox.ts'

export interface Condition {
  readonly sql: string
  readonly values: readonly (string | number)[]
}

/** The conditions that the access path does not cover. */
export function conditionsOf(filter: EventFilter, path: AccessPath, conversationId: number | null): Condition[] {
  const { kind, contactEmail, receivedAfter, receivedBefore, scope, keyId, messageType } = filter
  const conditions: Condition[] = []
  const add = (sql: string, value: string | number | null | undefined) => {
    if (value !== undefined && value !== null) conditions.push({ sql, values: [value] })
  }
  if (path !== 'revision') add('kind = ?', kind)
  if (path !== 'email') add('email_key = ?', contactEmail === undefined ? undefined : foldEmail(contactEmail))
  if (path !== 'conversation') add('conversation_id = ?', conversationId)
  if (path !== 'time') {
    add('received_at >= ?', receivedAfter)
    add('received_at < ?', receivedBefore)
  }
  add('scope = ?', scope)
  add('key_id = ?', keyId)
  add('message_type = ?', messageType)
  return conditions
}

/**
 * `table` names the index: without statistics the planner would use the primary key for every query, and scan all
 * events of the tenant.
 */
export interface Range {
  readonly table: string
  readonly where: string
  readonly order: string
  readonly values: readonly (string | number)[]
}

const END = Number.MAX_SAFE_INTEGER

/** The rows of the access path below a position, newest first. */
export function rangeOf(
  { companyId, accountId }: Tenant,
  filter: EventFilter,
  conversationId: number | null,
  after: EventPosition | null,
): Range {
  const tenant = 'company_id = ? AND account_id = ?'
  const below = after?.id ?? END
  const byId = (index: string | null, where: string, ...values: readonly (string | number)[]): Range => ({
    table: index === null ? 'event_index' : `event_index INDEXED BY ${index}`,
    where: `${tenant} AND ${where}event_id < ?`,
    order: 'event_id DESC',
    values: [companyId, accountId, ...values, below],
  })
  switch (accessPathOf(filter)) {
    case 'email':
      return byId('events_by_email', 'email_key = ? AND ', foldEmail(filter.contactEmail!))
    case 'conversation':
      return byId('events_by_conversation', 'conversation_id = ? AND ', conversationId!)
    case 'revision':
      return byId('revisions_by_id', "kind = 'revision' AND ")
    case 'time': {
      const before = filter.receivedBefore ?? END
      const isInside = after !== null && after.receivedAt !== null && after.receivedAt < before
      return {
        table: 'event_index INDEXED BY events_by_time',
        where: `${tenant} AND received_at >= ? AND (received_at, event_id) < (?, ?)`,
        order: 'received_at DESC, event_id DESC',
        values: [
          companyId,
          accountId,
          filter.receivedAfter ?? 0,
          ...(isInside ? [after.receivedAt!, after.id] : [before, 0]),
        ],
      }
    }
    default:
      return byId(null, '')
  }
}
