// Token management for the console, limited to one tenant: tokens of other tenants are not found.

import type { Tenant } from '../model/principal.ts'
import type { TokenRecord } from '../model/token.ts'
import type { Clock } from '../runtime/clock.ts'
import type { NodeStore } from '../store/contract/nodes.ts'
import type { TokenPosition, TokenStore } from '../store/contract/tokens.ts'
import {
  type IssuedToken,
  issueToken,
  type Rotation,
  type RotationTerms,
  rotateToken,
  type TokenTerms,
  waitUntilInEffect,
} from './token-lifecycle.ts'

/** How long an answer waits until every server confirms the change. */
const IN_EFFECT_TIMEOUT_MS = 2000

export interface TenantTokensOptions {
  readonly tokens: TokenStore
  readonly nodes: NodeStore
  readonly clock: Clock
}

export class TenantTokens {
  readonly #options: TenantTokensOptions

  constructor(options: TenantTokensOptions) {
    this.#options = options
  }

  list(tenant: Tenant, before: TokenPosition | null, limit: number): Promise<TokenRecord[]> {
    return this.#options.tokens.listOf(tenant, before, limit)
  }

  tenants(after: Tenant | null, limit: number): Promise<Tenant[]> {
    return this.#options.tokens.tenants(after, limit)
  }

  async find({ accountId, companyId }: Tenant, keyId: string): Promise<TokenRecord | null> {
    const found = await this.#options.tokens.find(keyId)
    return found?.accountId === accountId && found.companyId === companyId ? found : null
  }

  issue(tenant: Tenant, terms: TokenTerms): Promise<IssuedToken> {
    const { tokens, clock } = this.#options
    return issueToken(tokens, tenant, terms, clock.now())
  }

  async rotate(tenant: Tenant, keyId: string, terms: RotationTerms): Promise<Rotation | null> {
    const { tokens, clock } = this.#options
    const old = await this.find(tenant, keyId)
    return old && rotateToken(tokens, old, terms, clock.now())
  }

  async setActive(tenant: Tenant, keyId: string, isActive: boolean): Promise<TokenRecord | null> {
    const { tokens, clock } = this.#options
    return (await this.find(tenant, keyId)) && tokens.setActive(keyId, isActive, clock.now())
  }

  /** Whether every running server has confirmed the newest change; false if unknown. The change itself is stored. */
  inEffect(): Promise<boolean> {
    return waitUntilInEffect(this.#options, IN_EFFECT_TIMEOUT_MS).catch((error: unknown) => {
      if ((error as { kind?: unknown } | null)?.kind !== 'unavailable') throw error
      return false
    })
  }
}
