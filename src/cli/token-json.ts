// A token as commands print it, without its secret.

import type { TokenRecord } from '../model/token.ts'
import { isoTime } from '../runtime/clock.ts'
import { formatRate } from '../runtime/rate.ts'

export function tokenJson(one: TokenRecord) {
  const time = (ms: number | null) => (ms === null ? null : isoTime(ms))
  return {
    key_id: one.keyId,
    account_id: one.accountId,
    company_id: one.companyId,
    scope: one.scope,
    is_active: one.isActive ? 1 : 0,
    expires_at: time(one.expiresAt),
    label: one.label,
    created_at: isoTime(one.createdAt),
    disabled_at: time(one.disabledAt),
    last_used_at: time(one.lastUsedAt),
    rotated_from: one.rotatedFrom,
    rate_limit: one.rateLimit === null ? null : formatRate(one.rateLimit),
    moved_to: one.movedTo,
  }
}
