// Filters of event lists as PostgreSQL SQL: the index range that leads to the rows, and the conditions checked row by
// row. inbox-states.ts has the filter by processing state.
//
// A range is written so that only its own index provides the requested order. With an equality instead of the
// comparisons, the planner may walk down the primary key because it expects early matches: for a conversation that
// ended long ago it would pass all later events.

import { type AccessPath, accessPathOf } from '../../../model/event-list.ts'
import type { Tenant } from '../../../model/principal.ts'
import { foldEmail } from '../../../model/text-search.ts'
import type { EventFilter, EventPosition } from '../../contract/inbox.ts'
import type { Value } from '../connection/connection.ts'

/** Numbers the values of a statement as they are added. */
export class Values {
  readonly list: Value[] = []

  add(value: Value, type: 'bigint' | 'text' = typeof value === 'string' ? 'text' : 'bigint'): string {
    this.list.push(value)
    return `$${this.list.length}::${type}`
  }
}

/** SQL over index rows under the alias `listed`; adds its values. */
export type Condition = (values: Values) => string

/** The conditions that the access path does not cover. */
export function conditionsOf(filter: EventFilter, path: AccessPath, conversationId: number | null): Condition[] {
  const { kind, contactEmail, receivedAfter, receivedBefore, scope, keyId, messageType } = filter
  const conditions: Condition[] = []
  const add = (sql: string, value: string | number | null | undefined) => {
    if (value !== undefined && value !== null) conditions.push((values) => `${sql} ${values.add(value)}`)
  }
  if (path !== 'revision') add('kind =', kind)
  if (path !== 'email') add('email_key =', contactEmail === undefined ? undefined : foldEmail(contactEmail))
  if (path !== 'conversation') add('conversation_id =', conversationId)
  if (path !== 'time') {
    add('received_at >=', receivedAfter)
    add('received_at <', receivedBefore)
  }
  add('scope =', scope)
  add('key_id =', keyId)
  add('message_type =', messageType)
  return conditions
}

const END = Number.MAX_SAFE_INTEGER

export interface Range {
  readonly where: string
  readonly order: string
}

/** The rows of the access path below a position, newest first. */
export function rangeOf(
  { companyId, accountId }: Tenant,
  filter: EventFilter,
  conversationId: number | null,
  after: EventPosition | null,
  values: Values,
): Range {
  const tenant = `company_id = ${values.add(companyId)} AND account_id = ${values.add(accountId)}`
  const below = after?.id ?? END
  const among = (column: string, value: string | number): Range => {
    const place = values.add(value)
    return {
      where: `${tenant} AND ${column} >= ${place} AND (${column}, event_id) < (${place}, ${values.add(below)})`,
      order: `${column} DESC, event_id DESC`,
    }
  }
  switch (accessPathOf(filter)) {
    case 'email':
      return among('email_key', foldEmail(filter.contactEmail!))
    case 'conversation':
      return among('conversation_id', conversationId!)
    case 'revision':
      return { where: `${tenant} AND kind = 'revision' AND -event_id > ${values.add(-below)}`, order: '-event_id' }
    case 'time': {
      const before = filter.receivedBefore ?? END
      const isInside = after !== null && after.receivedAt !== null && after.receivedAt < before
      const [at, id] = isInside ? [after.receivedAt!, after.id] : [before, 0]
      const since = values.add(filter.receivedAfter ?? 0)
      return {
        where: `${tenant} AND received_at >= ${since} AND (received_at, event_id) < (${values.add(at)}, ${values.add(id)})`,
        order: 'received_at DESC, event_id DESC',
      }
    }
    default:
      return { where: `${tenant} AND event_id < ${values.add(below)}`, order: 'event_id DESC' }
  }
}
