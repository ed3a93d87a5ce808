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
  /** May read and process: `processor` alone. */
  | 'processor'
  /** No token: an operator with a session. */
  | 'operator'

export function scopeAllows(rule: ScopeRule, scope: string, intakeScopes: readonly string[] | null): boolean {
  if (rule === 'public' || rule === 'any') return true
  if (rule === 'operator') return false
  if (rule === 'processor') return scope === PROCESSOR_SCOPE
  if (scope === PROCESSOR_SCOPE) return false
  return intakeScopes === null || intakeScopes.includes(scope)
}
