// The services that console operations call.

import type { RecordAudit } from '../../auth/audit.ts'
import type { Sessions } from '../../auth/sessions.ts'
import type { TenantHooks } from '../../auth/tenant-hooks.ts'
import type { TenantTokens } from '../../auth/tenant-tokens.ts'
import type { Accept } from '../../intake/accept.ts'
import type { AcceptRefusal } from '../../intake/accept-refusal.ts'
import type { AuditEntry } from '../../model/operator.ts'
import type { Tenant } from '../../model/principal.ts'
import type { StoredRefusal } from '../../model/refusal.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { PublicAddress } from '../wire/public-address.ts'
import type { TrafficReader } from '../../store/contract/traffic.ts'

export interface ConsoleOptions {
  readonly sessions: Sessions
  readonly audit: RecordAudit
  readonly clock: Clock
  readonly remoteAddr: 'full' | 'truncated' | 'off'
  readonly maxBodyBytes: number
  readonly tokens: TenantTokens
  readonly hooks: TenantHooks
  /** INTRAY_PUBLIC_URL. */
  readonly publicUrl: string | null
  readonly publicAddress: PublicAddress
  readonly traffic: TrafficReader
  readonly indexLag: () => Promise<number>
  readonly findRefusal: (tenant: Tenant, id: number) => Promise<StoredRefusal | null>
  readonly acceptRefusal: AcceptRefusal
  readonly accept: Accept
  readonly listAudit: (beforeId: string | null, limit: number) => Promise<AuditEntry[]>
}
