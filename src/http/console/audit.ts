// GET /v1/console/audit: what operators did, newest first.

import type { AuditEntry } from '../../model/operator.ts'
import { maySee } from '../../model/operator.ts'
import { isoTime } from '../../runtime/clock.ts'
import type { Parameter } from '../../runtime/parameter.ts'
import { jsonAnswer, operatorOf, type Operation } from '../call.ts'
import { DEFAULT_LIMIT, limitParameter } from '../inbox/cursor.ts'
import { readQuery } from '../query.ts'
import type { ConsoleOptions } from './options.ts'
import { tenantView } from './session.ts'

const entryCursor: Parameter<string> = (text) => {
  if (!/^[0-9a-f-]{36}$/.test(text)) throw new Error('must be the value of next from an earlier page, unchanged')
  return text
}

export function auditOperations({ listAudit }: ConsoleOptions) {
  const operation: Operation = async (call) => {
    const query = readQuery(call.req, { limit: limitParameter, cursor: entryCursor })
    if ('problem' in query) return query.problem
    const { limit = DEFAULT_LIMIT, cursor } = query.values
    const { operator } = operatorOf(call)
    const found = await listAudit(cursor ?? null, limit + 1)
    const page = found.slice(0, limit)
    // One who is limited to some tenants sees what was done there, and what they did themselves: a page may be short.
    const isSeen = ({ tenant, operatorId }: AuditEntry) =>
      operator.tenants === null || operatorId === operator.id || (tenant !== null && maySee(operator, tenant))
    return jsonAnswer({
      entries: page.filter(isSeen).map(entryView),
      next: found.length > limit ? page.at(-1)!.id : null,
    })
  }
  return { listAudit: operation }
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
