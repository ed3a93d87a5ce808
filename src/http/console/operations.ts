// The console's own interface: what its operations need, put together. What operators read and change of an inbox are the
// routes of /v1/inbox; here is what only operators do.

import type { RecordDeed } from '../../auth/audit.ts'
import type { Sessions } from '../../auth/sessions.ts'
import type { Accept } from '../../intake/accept.ts'
import type { AcceptRefusal } from '../../intake/accept-refusal.ts'
import type { AuditEntry } from '../../model/operator.ts'
import type { Tenant } from '../../model/principal.ts'
import type { StoredRefusal } from '../../model/refusal.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { TrafficReader } from '../../store/contract/traffic.ts'
import type { Operation } from '../call.ts'
import { whileStoreAnswers } from '../inbox/operations.ts'
import type { ConsoleOperationName } from '../routes.ts'
import { auditOperations } from './audit.ts'
import { overviewOperations } from './overview.ts'
import { refusalOperations } from './refusals.ts'
import { sessionOperations } from './session.ts'
import { tenantOperations } from './tenants.ts'
import { tokenOperations } from './tokens.ts'
import type { TenantTokens } from '../../auth/tenant-tokens.ts'

export interface ConsoleOptions {
  readonly sessions: Sessions
  readonly audit: RecordDeed
  readonly clock: Clock
  readonly remoteAddr: 'full' | 'truncated' | 'off'
  readonly maxBodyBytes: number
  readonly tokens: TenantTokens
  readonly traffic: TrafficReader
  readonly indexLag: () => Promise<number>
  readonly findRefusal: (tenant: Tenant, id: number) => Promise<StoredRefusal | null>
  readonly acceptRefusal: AcceptRefusal
  readonly accept: Accept
  readonly listAudit: (beforeId: string | null, limit: number) => Promise<AuditEntry[]>
}

export function createConsoleOperations(options: ConsoleOptions): Record<ConsoleOperationName, Operation> {
  const operations: Record<ConsoleOperationName, Operation> = {
    ...sessionOperations(options),
    ...tenantOperations(options),
    ...overviewOperations(options),
    ...tokenOperations(options),
    ...refusalOperations(options),
    ...auditOperations(options),
  }
  return Object.fromEntries(
    Object.entries(operations).map(([name, operation]) => [name, whileStoreAnswers(operation)]),
  ) as Record<ConsoleOperationName, Operation>
}
