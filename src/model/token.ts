// A token as it is kept: its public key id and a digest, never the secret.

import type { Tenant } from './principal.ts'
import type { TokenRateLimit } from './rate-limit.ts'

export interface TokenRecord extends Tenant {
  readonly keyId: string
  /** SHA-256 of the whole token string. */
  readonly hash: Uint8Array
  /** '' for a token without scope. */
  readonly scope: string
  readonly label: string
  readonly isActive: boolean
  readonly expiresAt: number | null
  readonly createdAt: number
  readonly disabledAt: number | null
  readonly lastUsedAt: number | null
  /** The key id of the token this one was rotated from. */
  readonly rotatedFrom: string | null
  /** Of a hook, such as `telegram/1` (model/recipes/); null for a bearer token. */
  readonly recipe: string | null
  /** Null: the setting applies. */
  readonly rateLimit: TokenRateLimit | null
  /** Not null once its tenant was moved to another database: the address of its new server, '' if that is not told. */
  readonly movedTo: string | null
}

export type TokenState = 'active' | 'disabled' | 'expired'

/** Disabled wins over expired: an operator decided it. */
export function tokenState(token: Pick<TokenRecord, 'isActive' | 'expiresAt'>, now: number): TokenState {
  if (!token.isActive) return 'disabled'
  if (token.expiresAt !== null && token.expiresAt <= now) return 'expired'
  return 'active'
}
