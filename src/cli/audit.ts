// Records what a command did in the audit log.

import { createAudit } from '../auth/audit.ts'
import { type AuditAction, COMMAND_LINE } from '../model/operator.ts'
import type { Tenant } from '../model/principal.ts'
import { systemClock } from '../runtime/clock.ts'
import type { Store } from '../store/contract/store.ts'
import { note } from './output.ts'

const OPERATOR = { id: '', name: COMMAND_LINE }
const ORIGIN = { requestId: null, address: null }

/** `target`: the key id of a token, or the name of an operator. */
export async function recordCommand(
  store: Pick<Store, 'operators'>,
  action: AuditAction,
  target: string,
  tenant: Tenant | null = null,
): Promise<void> {
  const onTrouble = (doing: string, error: unknown) => note(`intray: could not ${doing}: ${String(error)}`)
  const audit = createAudit({ store: store.operators, clock: systemClock, onTrouble })
  await audit({ action, operator: OPERATOR, tenant, target, origin: ORIGIN })
}
