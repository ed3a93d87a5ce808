// The operations that only operators call, put together. Operators read and change an inbox by the routes of /v1/inbox.

import type { Operation } from '../call.ts'
import { withUnavailableAnswer } from '../inbox/operations.ts'
import type { ConsoleOperationName } from '../routes.ts'
import { auditOperations } from './audit.ts'
import type { ConsoleOptions } from './options.ts'
import { overviewOperations } from './overview.ts'
import { refusalOperations } from './refusals.ts'
import { sessionOperations } from './session.ts'
import { tenantOperations } from './tenants.ts'
import { tokenOperations } from './tokens.ts'

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
    Object.entries(operations).map(([name, operation]) => [name, withUnavailableAnswer(operation)]),
  ) as Record<ConsoleOperationName, Operation>
}
