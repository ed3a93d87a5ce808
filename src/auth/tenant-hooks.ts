// Hook management for the console, limited to one tenant, and for commands: hooks of other tenants are not found.

import { DELIVERIES_SHOWN, type HookDeliveries, type HookRecord, type HookSecrets } from '../model/hook.ts'
import type { Tenant } from '../model/principal.ts'
import type { Recipe } from '../model/recipes/recipe.ts'
import type { TokenRecord } from '../model/token.ts'
import type { Clock } from '../runtime/clock.ts'
import { randomBase62 } from '../runtime/id.ts'
import { SecretUnreadable } from '../runtime/secret-box.ts'
import { type Secrets, SecretsKeyMissing } from '../runtime/secrets.ts'
import type { HookStore } from '../store/contract/hooks.ts'
import type { TokenPosition, TokenStore } from '../store/contract/tokens.ts'
import { findRecipe } from './hook-access.ts'
import {
  type HookRotation,
  type HookTerms,
  type IssuedHook,
  issueHook,
  openSecrets,
  rotateAddress,
  rotateSecret,
} from './hook-lifecycle.ts'
import type { RotationTerms } from './token-lifecycle.ts'

export interface FoundTenantHook {
  readonly record: TokenRecord
  readonly hook: HookRecord
  /** Null for one of a newer Intray. */
  readonly recipe: Recipe | null
}

export interface TenantHooksOptions {
  readonly tokens: TokenStore
  readonly hooks: HookStore
  readonly secrets: Secrets
  /** Whether anything is sealed in this database, be it of another kind. */
  readonly hasSealed: () => Promise<boolean>
  readonly clock: Clock
}

export class TenantHooks {
  readonly #options: TenantHooksOptions

  constructor(options: TenantHooksOptions) {
    this.#options = options
  }

  list(tenant: Tenant, before: TokenPosition | null, limit: number): Promise<TokenRecord[]> {
    return this.#options.tokens.listOf(tenant, before, limit, 'hook')
  }

  /** `tenant`: null for commands, which see all. */
  async find(tenant: Tenant | null, keyId: string): Promise<FoundTenantHook | null> {
    const { tokens, hooks } = this.#options
    const record = await tokens.find(keyId)
    if (!record || record.recipe === null || !isOf(record, tenant)) return null
    const hook = await hooks.find(keyId)
    return hook && { record, hook, recipe: await findRecipe(hooks, record, record.recipe) }
  }

  /** Throws SecretsKeyMissing. */
  async issue(tenant: Tenant, terms: HookTerms): Promise<IssuedHook> {
    return issueHook(this.#options.hooks, await this.#boxForSealing(), tenant, terms, this.#options.clock.now())
  }

  /** Throws SecretsKeyMissing, or SecretUnreadable. */
  async rotateAddress(old: TokenRecord, terms: RotationTerms): Promise<HookRotation> {
    return rotateAddress(this.#options, await this.#boxForSealing(), old, terms, this.#options.clock.now())
  }

  /** Null if the hook is gone. Throws SecretsKeyMissing, or SecretUnreadable. */
  async rotateSecret(keyId: string, secret: string, overlapMs: number | null) {
    const { hooks, clock } = this.#options
    return rotateSecret(hooks, await this.#boxForSealing(), keyId, { secret, overlapMs }, clock.now())
  }

  setActive(keyId: string, isActive: boolean): Promise<TokenRecord | null> {
    return this.#options.tokens.setActive(keyId, isActive, this.#options.clock.now())
  }

  /** Null if the key of secrets is missing, or another one than it was sealed with. */
  open(hook: HookRecord): HookSecrets | null {
    try {
      return openSecrets(this.#options.secrets.box(), hook)
    } catch (error) {
      if (error instanceof SecretsKeyMissing || error instanceof SecretUnreadable) return null
      throw error
    }
  }

  deliveries(tenant: Tenant, keyId: string): Promise<HookDeliveries> {
    return this.#options.hooks.deliveries(tenant, keyId, DELIVERIES_SHOWN)
  }

  #boxForSealing() {
    const { secrets, hasSealed } = this.#options
    return secrets.boxForSealing(hasSealed)
  }
}

/** A secret that Intray makes: what vendors take everywhere, or the key itself where the recipe wants it in base64. */
export function newHookSecret({ signature }: Pick<Recipe, 'signature'>): string {
  if (signature.kind !== 'hmac' || signature.secret !== 'base64') return randomBase62(SECRET_LENGTH)
  return (signature.secretPrefix ?? '') + Buffer.from(randomBase62(SECRET_LENGTH)).toString('base64')
}

/** 190 bits. */
const SECRET_LENGTH = 32
function isOf({ accountId, companyId }: Tenant, tenant: Tenant | null): boolean {
  return tenant === null || (accountId === tenant.accountId && companyId === tenant.companyId)
}
