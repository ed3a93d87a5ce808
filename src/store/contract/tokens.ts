// Stored tokens, and how token changes reach every node.
//
// Every change draws the next *generation*. A node polls for changes since the generation it knows and reports the one
// it has applied; the process that made the change can wait for that report.

import type { Tenant } from '../../model/principal.ts'
import type { TokenRecord, TokenState } from '../../model/token.ts'

export interface NewToken
  extends Omit<TokenRecord, 'disabledAt' | 'lastUsedAt' | 'isActive' | 'rateLimit' | 'movedTo' | 'recipe'> {
  readonly rateLimit?: TokenRecord['rateLimit']
  readonly recipe?: TokenRecord['recipe']
}

/** Bearer tokens, or hooks. */
export type TokenKind = 'token' | 'hook'

export interface TokenUse {
  readonly keyId: string
  readonly usedAt: number
}

export interface TokenPosition {
  readonly createdAt: number
  readonly keyId: string
}

/** A field that is left out excludes nothing. */
export interface TokenFilter {
  /** `token` if left out. */
  readonly kind?: TokenKind | undefined
  readonly accountId?: number | undefined
  readonly companyId?: number | undefined
  readonly scope?: string | undefined
  readonly state?: TokenState | undefined
  /** Not used since then. A token that was never used counts as used when it was made. */
  readonly unusedSince?: number | undefined
}

export interface TokenQuery {
  readonly filter?: TokenFilter
  /** Decides what has expired. Required by a filter by state. */
  readonly now?: number
  /** Continues after this token. */
  readonly after?: TokenRecord | null | undefined
  /** 500 if left out. */
  readonly limit?: number
}

export interface TokenStore {
  /** Fails with `rejected` if the key id exists. */
  create(token: NewToken): Promise<void>
  /** Only if there is no token yet; returns false otherwise. Of several nodes that try at once one succeeds. */
  createFirst(token: NewToken): Promise<boolean>
  find(keyId: string): Promise<TokenRecord | null>
  /** A page of the tokens of all tenants, by company and account, then in the order of creation. */
  list(query?: TokenQuery): Promise<TokenRecord[]>
  /** The tokens of a tenant, newest first, below the given one (null: from the newest). */
  listOf(tenant: Tenant, before: TokenPosition | null, limit: number, kind?: TokenKind): Promise<TokenRecord[]>
  /** Tenants that have or had a token, ordered by company and account, after the given one. */
  tenants(after: Tenant | null, limit: number): Promise<Tenant[]>
  /** Whether a token of the tenant is on record: only then the tenant is known. */
  hasTenant(tenant: Tenant): Promise<boolean>
  /** The key id of its successor, if it was rotated. */
  successorOf(keyId: string): Promise<string | null>
  /** Null when there is no such token. */
  setActive(keyId: string, isActive: boolean, now: number): Promise<TokenRecord | null>
  /** A limit of its own, `off`, or null for that of the setting. Returns null if there is no such token. */
  setRateLimit(keyId: string, rateLimit: TokenRecord['rateLimit']): Promise<TokenRecord | null>
  /**
   * Stores the successor and retires its predecessor (`successor.rotatedFrom`) in one transaction: disabled now, or
   * expiring at the given time unless it expires earlier. Null if there is no such predecessor; fails with `rejected`
   * if it has a successor already.
   */
  rotate(successor: NewToken, oldExpiresAt: number | null, now: number): Promise<TokenRecord | null>
  /** Moves last_used_at forward, never back. */
  touch(uses: readonly TokenUse[]): Promise<void>

  /** With which the key ids of imported tokens are computed (model/imported-token.ts). */
  importKey(): Promise<Uint8Array>
  /** Whether there is an imported token under a computed key id. */
  hasImported(): Promise<boolean>

  generation(): Promise<number>
  changedSince(generation: number): Promise<TokenRecord[]>
}
