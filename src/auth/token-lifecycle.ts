// Issues and rotates tokens, with the same rules for the command line and the console.

import type { Tenant } from '../model/principal.ts'
import type { TokenRecord } from '../model/token.ts'
import type { NodeStore } from '../store/contract/nodes.ts'
import type { NewToken, TokenStore } from '../store/contract/tokens.ts'
import { mintToken } from './token.ts'

export const TOKEN_LIFE_MS = { min: 2000, max: 365 * 86_400_000 } as const
export const MAX_LABEL = 200

const IN_EFFECT_POLL_MS = 50

export interface IssuedToken {
  readonly record: TokenRecord
  /** Shown once, not stored. */
  readonly token: string
}

export interface TokenTerms {
  readonly scope: string
  readonly label: string
  readonly expiresAt: number | null
  readonly rateLimit: TokenRecord['rateLimit']
}

export async function issueToken(
  tokens: TokenStore,
  { accountId, companyId }: Tenant,
  terms: TokenTerms,
  now: number,
): Promise<IssuedToken> {
  const { keyId, hash, token } = mintToken()
  const made: NewToken = { keyId, hash, accountId, companyId, ...terms, createdAt: now, rotatedFrom: null }
  await tokens.create(made)
  return { record: recordOf(made), token }
}

export type Rotation =
  | IssuedToken
  /** Already rotated: the key id of its successor. */
  | { readonly successor: string }
  /** Expired, as its successor would be: a new expiry is needed. */
  | { readonly hasExpired: true }

export interface RotationTerms {
  /** How long the old token keeps working; null: not at all. */
  readonly overlapMs: number | null
  /** Undefined: that of the old token. */
  readonly expiresAt: number | undefined
}

/** The successor has the tenant, scope, label, rate limit and expiry of the old token, unless a new expiry is given. */
export async function rotateToken(
  tokens: TokenStore,
  old: TokenRecord,
  { overlapMs, expiresAt: given }: RotationTerms,
  now: number,
): Promise<Rotation> {
  const successor = await tokens.successorOf(old.keyId)
  if (successor !== null) return { successor }
  const expiresAt = given ?? old.expiresAt
  if (expiresAt !== null && expiresAt <= now && given === undefined) return { hasExpired: true }
  const { keyId, hash, token } = mintToken()
  const { accountId, companyId, scope, label, rateLimit } = old
  const made = {
    rateLimit,
    keyId,
    hash,
    accountId,
    companyId,
    scope,
    label,
    expiresAt,
    createdAt: now,
    rotatedFrom: old.keyId,
  }
  const retired = await tokens.rotate(made, overlapMs === null ? null : now + overlapMs, now)
  if (!retired) throw new Error(`token ${old.keyId} was deleted during its rotation`)
  return { record: recordOf(made), token }
}

/** Waits until every running server has confirmed the newest change; false after the timeout. */
export async function waitUntilInEffect(
  { tokens, nodes }: { readonly tokens: TokenStore; readonly nodes: NodeStore },
  timeoutMs: number,
): Promise<boolean> {
  const generation = await tokens.generation()
  const deadline = performance.now() + timeoutMs
  for (;;) {
    const behind = (await nodes.live()).filter((node) => node.tokenGeneration < generation)
    if (behind.length === 0) return true
    if (performance.now() > deadline) return false
    await new Promise((resolve) => setTimeout(resolve, IN_EFFECT_POLL_MS))
  }
}

/** The stored record. Not read back: if that failed, the token would be valid and never shown. */
export function recordOf(made: NewToken): TokenRecord {
  return { rateLimit: null, recipe: null, ...made, isActive: true, disabledAt: null, lastUsedAt: null, movedTo: null }
}
