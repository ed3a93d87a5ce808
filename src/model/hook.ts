// A hook: an address for a sender that can set neither a token nor references. It is a token with a recipe: the token carries
// tenant, scope, state, expiry and rate limit; here is what a hook has beside it.

import type { EventIndexEntry, StoredEvent } from './event.ts'
import type { Tenant } from './principal.ts'
import type { StoredRefusal } from './refusal.ts'

export interface HookRecord extends Tenant {
  readonly keyId: string
  /** The key id that it had before any rotation of its address: what `{hook}` is in a recipe. */
  readonly firstKeyId: string
  /** In bytes; null: the setting applies. */
  readonly maxBody: number | null
  /** HookSecrets, sealed for the key id. */
  readonly sealed: Uint8Array
}

/** What is kept encrypted: it must be used or shown again in clear. */
export interface HookSecrets {
  /** The hook id, for the address that operators copy. */
  readonly hookId: string
  /** The secrets of its signatures, the newest first; none if the recipe needs none. */
  readonly secrets: readonly HookSecret[]
}

export interface HookSecret {
  readonly value: string
  /** Until when it is taken; null: until it is replaced. */
  readonly until: number | null
}

/** The path of a hook without its id: the route of its requests and messages. */
export const HOOK_PATH = '/v1/hooks/'

/** Secrets of one hook that are valid at once: a rotation keeps older ones for an overlap. */
export const MAX_HOOK_SECRETS = 5

/** What the console and `./intray hook show` list. */
export const DELIVERIES_SHOWN = 10

/** The latest deliveries of a hook, each kind newest first. An event that is not indexed yet has no entry. */
export interface HookDeliveries {
  readonly events: readonly { readonly event: StoredEvent; readonly entry: EventIndexEntry | null }[]
  readonly refusals: readonly StoredRefusal[]
}

/** A custom recipe, found by its digest. */
export interface StoredRecipe extends Tenant {
  readonly digest: string
  /** As canonical JSON. */
  readonly recipe: string
  readonly createdAt: number
}

export function hookSecretsText({ hookId, secrets }: HookSecrets): string {
  return JSON.stringify({ hookId, secrets })
}

export function parseHookSecrets(text: string): HookSecrets {
  return JSON.parse(text) as HookSecrets
}

/** Those that are valid now. */
export function validSecrets({ secrets }: HookSecrets, now: number): string[] {
  return secrets.filter(({ until }) => until === null || until > now).map(({ value }) => value)
}
