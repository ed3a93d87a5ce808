// GET /v1/console/audit: what operators did, newest first.

import { type AuditEntry, maySee } from '../../model/operator.ts'
import { isoTime } from '../../runtime/clock.ts'
import { jsonAnswer, operatorOf } from '../call.ts'
import { cursorParameter, DEFAULT_LIMIT, limitParameter, pageOf } from '../paging.ts'
import { withQuery } from '../query.ts'
import type { ConsoleOptions } from './options.ts'
import { tenantView } from './session.ts'

const entryCursor = cursorParameter((text) => (/^[0-9a-f-]{36}$/.test(text) ? text : null))

export function auditOperations(options: ConsoleOptions) {
  const listAudit = withQuery({ limit: limitParameter, cursor: entryCursor }, async (call, query) => {
    const { limit = DEFAULT_LIMIT, cursor } = query
    const { operator } = operatorOf(call)
    const { page, next } = pageOf(await options.listAudit(cursor ?? null, limit + 1), limit, ({ id }) => id)
    // An operator who is limited to some tenants sees entries of those tenants and their own: a page may be short.
    const isSeen = ({ tenant, operatorId }: AuditEntry) =>
      operator.tenants === null || operatorId === operator.id || (tenant !== null && maySee(operator, tenant))
    return jsonAnswer({ entries: page.filter(isSeen).map(entryView), next })
  })
  return { listAudit }
}

function entryView(entry: AuditEntry) {
  return {
    id: entry.id,
    at: isoTime(entry.at),
    operator: entry.operator === '' ? null : entry.operator,
    action: entry.action,
    tenant: entry.tenant && tenantView(entry.tenant),
    target: entry.target,
    request_id: entry.requestId,
    address: entry.address,
  }
}
