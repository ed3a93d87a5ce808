// Which scopes may do what. Compared exactly: no prefixes, no hierarchy.

import { PROCESSOR_SCOPE } from '../model/principal.ts'

/** What a route asks of a token's scope. */
export type ScopeRule =
  /** No token at all. */
  | 'public'
  /** Every valid token. */
  | 'any'
  /** May send: every scope but `processor`, or those listed in the settings. */
  | 'intake'

export function scopeAllows(rule: ScopeRule, scope: string, intakeScopes: readonly string[] | null): boolean {
  if (rule !== 'intake') return true
  if (scope === PROCESSOR_SCOPE) return false
  return intakeScopes === null || intakeScopes.includes(scope)
}
