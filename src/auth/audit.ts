// The audit log of operators: an entry is on disk before the operator is answered. If it cannot be written, the service log
// says so.

import type { AuditAction, AuditEntry, Operator } from '../model/operator.ts'
import type { Tenant } from '../model/principal.ts'
import type { Clock } from '../runtime/clock.ts'
import { newUuid } from '../runtime/id.ts'
import type { OperatorStore } from '../store/contract/operators.ts'

/** The request that caused an entry. */
export interface Origin {
  readonly requestId: string | null
  readonly address: string | null
}

export interface AuditedAction {
  readonly action: AuditAction
  /** Null: unknown. */
  readonly operator: Pick<Operator, 'id' | 'name'> | null
  readonly tenant?: Tenant | null
  readonly target?: string | null
  readonly origin: Origin
}

export type RecordAudit = (action: AuditedAction) => Promise<void>

export interface AuditOptions {
  readonly store: Pick<OperatorStore, 'addAudit'>
  readonly clock: Clock
  readonly onTrouble: (doing: string, error: unknown) => void
}

/** Never fails: the action is already done. */
export function createAudit({ store, clock, onTrouble }: AuditOptions): RecordAudit {
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
      onTrouble(`write the audit log: ${action} by ${entry.operator || 'unknown'}`, error)
    }
  }
}
