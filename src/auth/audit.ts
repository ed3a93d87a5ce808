// The log of what operators did: each entry is on disk before the operator is answered, or, where
// that fails, in the log of the service.

import type { AuditAction, AuditEntry, Operator } from '../model/operator.ts'
import type { Tenant } from '../model/principal.ts'
import type { Clock } from '../runtime/clock.ts'
import { newUuid } from '../runtime/id.ts'
import type { OperatorStore } from '../store/contract/operators.ts'

/** Where a call came from. */
export interface Origin {
  readonly requestId: string | null
  readonly address: string | null
}

export interface Deed {
  readonly action: AuditAction
  /** Null: nobody we know. */
  readonly operator: Pick<Operator, 'id' | 'name'> | null
  readonly tenant?: Tenant | null
  readonly target?: string | null
  readonly origin: Origin
}

export type RecordDeed = (deed: Deed) => Promise<void>

export interface AuditOptions {
  readonly store: Pick<OperatorStore, 'addAudit'>
  readonly clock: Clock
  readonly onTrouble: (doing: string, error: unknown) => void
}

/** What is done is done: where the log cannot be written, that is told in the other log. */
export function createAudit({ store, clock, onTrouble }: AuditOptions): RecordDeed {
  return async ({ action, operator, tenant = null, target = null, origin }) => {
    const entry: AuditEntry = {
      id: newUuid(),
      at: clock.now(),
      operatorId: operator?.id ?? null,
      operator: operator?.name ?? '',
      action,
      tenant,
      target,
      ...origin,
    }
    try {
      await store.addAudit(entry)
    } catch (error) {
      onTrouble(`note in the audit log: ${action} by ${entry.operator || 'somebody unknown'}`, error)
    }
  }
}
