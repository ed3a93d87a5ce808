// GET /v1/console/tenants: the tenants that an operator may see.

import { parseTenant, type Tenant, tenantText } from '../../model/principal.ts'
import { jsonAnswer, operatorOf } from '../call.ts'
import { cursorParameter, DEFAULT_LIMIT, limitParameter, pageOf } from '../paging.ts'
import { withQuery } from '../query.ts'
import type { ConsoleOptions } from './options.ts'
import { tenantView } from './session.ts'

export function tenantOperations({ tokens }: ConsoleOptions) {
  const query = { limit: limitParameter, cursor: cursorParameter(parseTenant) }
  const listTenants = withQuery(query, async (call, { limit = DEFAULT_LIMIT, cursor }) => {
    const { tenants } = operatorOf(call).operator
    // An operator's own list is short, and is shown in full, also tenants without data.
    const found = tenants
      ? tenants
          .toSorted(compare)
          .filter((one) => !cursor || compare(one, cursor) > 0)
          .slice(0, limit + 1)
      : await tokens.tenants(cursor ?? null, limit + 1)
    const { page, next } = pageOf(found, limit, tenantText)
    return jsonAnswer({ tenants: page.map(tenantView), next })
  })
  return { listTenants }
}

function compare(a: Tenant, b: Tenant): number {
  return a.companyId - b.companyId || a.accountId - b.accountId
}
