// Scope rules of routes. Scopes are compared exactly: no prefixes, no hierarchy.

import { ADMIN_SCOPE, PROCESSOR_SCOPE } from '../model/principal.ts'

/** The scope that a route requires. */
export type ScopeRule =
  /** No token at all. */
  | 'public'
  /** Every valid token. */
  | 'any'
  /** May send: every scope but `processor` and `admin`, or those listed in the settings. */
  | 'intake'
  /** May read and process: `processor` and `admin`. */
  | 'processor'
  /** May erase: `admin` alone. */
  | 'admin'
  /** No token: an operator with a session. */
  | 'operator'

export function scopeAllows(rule: ScopeRule, scope: string, intakeScopes: readonly string[] | null): boolean {
  if (rule === 'public' || rule === 'any') return true
  if (rule === 'operator') return false
  if (rule === 'admin') return scope === ADMIN_SCOPE
  if (rule === 'processor') return scope === PROCESSOR_SCOPE || scope === ADMIN_SCOPE
  if (scope === PROCESSOR_SCOPE || scope === ADMIN_SCOPE) return false
  return intakeScopes === null || intakeScopes.includes(scope)
}

/** What to tell a token that a rule does not allow: a sentence, and the scope itself where there is only one. */
export function scopeNeeded(
  rule: ScopeRule,
  scope: string,
  intakeScopes: readonly string[] | null,
): { readonly message: string; readonly scope?: string } {
  const own = scope === '' ? 'This token has no scope' : `This token has the scope ${scope}`
  const reserved = { processor: PROCESSOR_SCOPE, admin: ADMIN_SCOPE }[rule as string]
  const needed = reserved === undefined ? intakeScopes : [reserved]
  if (needed === null) {
    return { message: `${own}, which may not send. Ask the operator for a token with another scope, such as cf.` }
  }
  const [only, ...others] = needed
  return {
    message: `${own}, and this call needs ${needed.join(' or ')}. Ask the operator for a token with that scope.`,
    ...(only !== undefined && others.length === 0 ? { scope: only } : {}),
  }
}
