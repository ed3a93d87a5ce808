// Making, replacing and switching tokens, for the command line and for the console: one set of rules for both.

import type { Tenant } from '../model/principal.ts'
import type { TokenRecord } from '../model/token.ts'
import type { NodeStore } from '../store/contract/nodes.ts'
import type { NewToken, TokenStore } from '../store/contract/tokens.ts'
import { mintToken } from './token.ts'

export const TOKEN_LIFE_MS = { min: 2000, max: 365 * 86_400_000 } as const
export const MAX_LABEL = 200

const IN_FORCE_POLL_MS = 50

export interface IssuedToken {
  readonly record: TokenRecord
  /** Shown once, never kept. */
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
  /** It has a successor already, whose key id this is. */
  | { readonly successor: string }
  /** It has expired, and so would its successor: say how long that lives. */
  | { readonly hasExpired: true }

export interface RotationTerms {
  /** How long the old one keeps working; null: not at all. */
  readonly overlapMs: number | null
  /** Undefined: as the old one. */
  readonly expiresAt: number | undefined
}

/** The successor has tenant, scope, label, rate limit and expiry of the old one, unless a new expiry is given. */
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
  if (!retired) throw new Error(`token ${old.keyId} was to be replaced and is not there`)
  return { record: recordOf(made), token }
}

/** Waits until every running server follows the newest change; false if one has not said so in time. */
export async function untilInForce(
  { tokens, nodes }: { readonly tokens: TokenStore; readonly nodes: NodeStore },
  timeoutMs: number,
): Promise<boolean> {
  const generation = await tokens.generation()
  const deadline = performance.now() + timeoutMs
  for (;;) {
    const behind = (await nodes.live()).filter((node) => node.tokenGeneration < generation)
    if (behind.length === 0) return true
    if (performance.now() > deadline) return false
    await new Promise((resolve) => setTimeout(resolve, IN_FORCE_POLL_MS))
  }
}

/** What was stored just now. Not read back: if that failed, a token would be in force that nobody was shown. */
function recordOf(made: NewToken): TokenRecord {
  return { rateLimit: null, ...made, isActive: true, disabledAt: null, lastUsedAt: null }
}
