// Makes and rotates hooks, with the same rules for the command line and the console. The hook id and the secrets of its
// signatures are sealed for its key id.

import {
  type HookRecord,
  type HookSecret,
  type HookSecrets,
  hookSecretsText,
  MAX_HOOK_SECRETS,
  parseHookSecrets,
  type StoredRecipe,
} from '../model/hook.ts'
import type { Tenant } from '../model/principal.ts'
import type { TokenRecord } from '../model/token.ts'
import type { SecretBox } from '../runtime/secret-box.ts'
import type { HookStore, NewHook } from '../store/contract/hooks.ts'
import type { NewToken, TokenStore } from '../store/contract/tokens.ts'
import { mintHookId } from './token.ts'
import { recordOf, type RotationTerms, type TokenTerms } from './token-lifecycle.ts'

/** The time for which a change of one hook is tried against others. */
const MAX_TRIES = 5

export interface HookTerms extends TokenTerms {
  /** Such as `telegram/1`. */
  readonly recipe: string
  /** The definition of a custom recipe; null for a built-in one. */
  readonly definition: string | null
  readonly maxBody: number | null
  /** Null: the recipe needs none. */
  readonly secret: string | null
}

export interface IssuedHook {
  readonly record: TokenRecord
  readonly hook: HookRecord
  readonly opened: HookSecrets
}

export async function issueHook(
  hooks: HookStore,
  box: SecretBox,
  { accountId, companyId }: Tenant,
  { recipe, definition, maxBody, secret, ...terms }: HookTerms,
  now: number,
): Promise<IssuedHook> {
  const { keyId, hash, token: hookId } = mintHookId()
  const token: NewToken = { keyId, hash, accountId, companyId, ...terms, createdAt: now, rotatedFrom: null, recipe }
  const opened = { hookId, secrets: secret === null ? [] : [{ value: secret, until: null }] }
  const stored = definition === null ? null : storedRecipeOf({ accountId, companyId }, recipe, definition, now)
  const made = { token, hook: sealedHook(box, token, { firstKeyId: keyId, maxBody }, opened), recipe: stored }
  await hooks.create(made)
  return { record: recordOf(token), hook: made.hook, opened }
}

export type HookRotation =
  | IssuedHook
  /** Already rotated: the key id of its successor. */
  | { readonly successor: string }
  /** Expired, as its successor would be: a new expiry is needed. */
  | { readonly hasExpired: true }

/** A new address with the same recipe, first key id, secrets, tenant, scope, label and limits. */
export async function rotateAddress(
  { tokens, hooks }: { readonly tokens: TokenStore; readonly hooks: HookStore },
  box: SecretBox,
  old: TokenRecord,
  { overlapMs, expiresAt: given }: RotationTerms,
  now: number,
): Promise<HookRotation> {
  const successor = await tokens.successorOf(old.keyId)
  if (successor !== null) return { successor }
  const expiresAt = given ?? old.expiresAt
  if (expiresAt !== null && expiresAt <= now && given === undefined) return { hasExpired: true }
  const hook = await hooks.find(old.keyId)
  if (!hook) throw new Error(`${old.keyId} is no hook`)
  const { keyId, hash, token: hookId } = mintHookId()
  const { accountId, companyId, scope, label, rateLimit, recipe } = old
  const terms = { accountId, companyId, scope, label, rateLimit, recipe, expiresAt }
  const token: NewToken = { keyId, hash, ...terms, createdAt: now, rotatedFrom: old.keyId }
  const opened = { hookId, secrets: openSecrets(box, hook).secrets }
  const next: NewHook = { token, hook: sealedHook(box, token, hook, opened), recipe: null }
  if (!(await hooks.rotate(next, overlapMs === null ? null : now + overlapMs, now)))
    throw new Error(`hook ${old.keyId} was deleted during its rotation`)
  return { record: recordOf(token), hook: next.hook, opened }
}

/**
 * A new secret under the same address. The older ones stay valid for the overlap, at most MAX_HOOK_SECRETS in all: the vendor may
 * sign with either meanwhile. Null if there is no such hook.
 */
export async function rotateSecret(
  hooks: HookStore,
  box: SecretBox,
  keyId: string,
  { secret, overlapMs }: { readonly secret: string; readonly overlapMs: number | null },
  now: number,
): Promise<{ readonly record: TokenRecord; readonly hook: HookRecord; readonly opened: HookSecrets } | null> {
  for (let tries = 0; tries < MAX_TRIES; tries += 1) {
    const hook = await hooks.find(keyId)
    if (!hook) return null
    const was = openSecrets(box, hook)
    const kept = overlapMs === null ? [] : shortened(was.secrets, now, now + overlapMs)
    const secrets = [{ value: secret, until: null }, ...kept].slice(0, MAX_HOOK_SECRETS)
    const opened = { ...was, secrets }
    const sealed = box.seal('hook', keyId, hookSecretsText(opened))
    const record = await hooks.reseal(keyId, hook.sealed, sealed)
    if (record) return { record, hook: { ...hook, sealed }, opened }
  }
  throw new Error(`hook ${keyId} was changed by others meanwhile`)
}

/** Throws SecretUnreadable. */
export function openSecrets(box: SecretBox, { keyId, sealed }: HookRecord): HookSecrets {
  return parseHookSecrets(box.open('hook', keyId, sealed))
}

function shortened(secrets: readonly HookSecret[], now: number, end: number): HookSecret[] {
  return secrets
    .filter(({ until }) => until === null || until > now)
    .map(({ value, until }) => ({ value, until: Math.min(until ?? end, end) }))
}

function sealedHook(
  box: SecretBox,
  { keyId, accountId, companyId }: NewToken,
  { firstKeyId, maxBody }: Pick<HookRecord, 'firstKeyId' | 'maxBody'>,
  opened: HookSecrets,
): HookRecord {
  const sealed = box.seal('hook', keyId, hookSecretsText(opened))
  return { keyId, firstKeyId, accountId, companyId, maxBody, sealed }
}

function storedRecipeOf(tenant: Tenant, ref: string, recipe: string, createdAt: number): StoredRecipe {
  return { ...tenant, digest: ref.slice(ref.indexOf('/') + 1), recipe, createdAt }
}
