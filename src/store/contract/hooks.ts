// Stored hooks: what they have beside their tokens, and the custom recipes that they and their events name.
//
// Promises
// - A hook and its token are written in one transaction. Every change draws a generation of tokens, so that nodes follow it as a
//   change of a token.
// - A custom recipe is never deleted: the events that name it can be indexed again.

import type { HookDeliveries, HookRecord, StoredRecipe } from '../../model/hook.ts'
import type { Tenant } from '../../model/principal.ts'
import type { TokenRecord } from '../../model/token.ts'
import type { NewToken } from './tokens.ts'

export interface NewHook {
  /** With its recipe. */
  readonly token: NewToken
  readonly hook: HookRecord
  /** Null: it is built in, or stored already. */
  readonly recipe: StoredRecipe | null
}

export interface HookStore {
  /** Fails with `rejected` if the key id exists. */
  create(hook: NewHook): Promise<void>
  find(keyId: string): Promise<HookRecord | null>
  /** A page of all hooks by key id, after the given one. */
  list(afterKeyId: string, limit: number): Promise<HookRecord[]>
  /** Replaces what is sealed, if it still is `was`. Null: it is not, or there is no such hook. */
  reseal(keyId: string, was: Uint8Array, sealed: Uint8Array): Promise<TokenRecord | null>
  /** As `rotate` of tokens. */
  rotate(successor: NewHook, oldExpiresAt: number | null, now: number): Promise<TokenRecord | null>
  /** Custom recipes as canonical JSON, by digest; null for an unknown one. */
  recipe(tenant: Tenant, digest: string): Promise<string | null>
  /** Keeps a custom recipe, if it is not kept already. */
  keepRecipe(recipe: StoredRecipe): Promise<void>
  /** At most `limit` of each kind. */
  deliveries(tenant: Tenant, keyId: string, limit: number): Promise<HookDeliveries>
}
