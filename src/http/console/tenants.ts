// GET /v1/console/tenants: the tenants that an operator may see.

import { parseTenant, type Tenant, tenantText } from '../../model/principal.ts'
import type { Parameter } from '../../runtime/parameter.ts'
import { jsonAnswer, operatorOf, type Operation } from '../call.ts'
import { DEFAULT_LIMIT, limitParameter } from '../inbox/cursor.ts'
import { readQuery } from '../query.ts'
import type { ConsoleOptions } from './options.ts'
import { tenantView } from './session.ts'

const tenantCursor: Parameter<Tenant> = (text) => {
  const tenant = parseTenant(text)
  if (!tenant) throw new Error('must be the value of next from an earlier page, unchanged')
  return tenant
}

export function tenantOperations({ tokens }: ConsoleOptions) {
  const listTenants: Operation = async (call) => {
    const query = readQuery(call.req, { limit: limitParameter, cursor: tenantCursor })
    if ('problem' in query) return query.problem
    const { limit = DEFAULT_LIMIT, cursor } = query.values
    const { tenants } = operatorOf(call).operator
    // Those of a list are few, and shown whether there is anything of them or not.
    const found = tenants
      ? inOrder(tenants)
          .filter((one) => !cursor || compare(one, cursor) > 0)
          .slice(0, limit + 1)
      : await tokens.tenants(cursor ?? null, limit + 1)
    const page = found.slice(0, limit)
    return jsonAnswer({
      tenants: page.map(tenantView),
      next: found.length > limit ? tenantText(page.at(-1)!) : null,
    })
  }
  return { listTenants }
}

function inOrder(tenants: readonly Tenant[]): Tenant[] {
  return tenants.toSorted(compare)
}

function compare(a: Tenant, b: Tenant): number {
  return a.companyId - b.companyId || a.accountId - b.accountId
}
