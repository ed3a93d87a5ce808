// Token → principal, from memory. What is not in memory is looked up, so a new token works at once; what changed is
// fetched by generation on a timer, so a disabled one stops working within FOLLOW_EVERY_MS. The node then reports the
// generation it follows, which is what `./intray token disable` waits for.
//
// An unknown, malformed or mistyped token and one with a wrong secret take one path and get one answer: a comparison of
// digests is made in each case.

import { hash, timingSafeEqual } from 'node:crypto'
import type { Problem } from '../model/errors.ts'
import type { Principal } from '../model/principal.ts'
import type { RateLimit } from '../model/rate-limit.ts'
import { type TokenRecord, tokenState } from '../model/token.ts'
import type { Clock } from '../runtime/clock.ts'
import { Repeating, type Service } from '../runtime/service.ts'
import type { NodeStore } from '../store/contract/nodes.ts'
import type { TokenStore } from '../store/contract/tokens.ts'
import { TokenBucket } from './rate-limit.ts'
import { tokenKeyId } from './token.ts'

export interface Grant {
  readonly principal: Principal
  /** Null for a token without a limit. */
  readonly bucket: TokenBucket | null
}
export type Authentication = Grant | { readonly problem: Problem }

const FOLLOW_EVERY_MS = 500
const FLUSH_USES_EVERY_MS = 60_000
const MAX_CACHED = 100_000

/** Look-ups under way at once: a flood of unknown tokens must not fill the store's queue. Tokens in memory need none. */
const MAX_LOOK_UPS = 1000

const INVALID: Authentication = { problem: { code: 'invalid_token' } }
const DISABLED: Authentication = { problem: { code: 'token_disabled' } }
const EXPIRED: Authentication = { problem: { code: 'token_expired' } }
const UNREACHABLE: Authentication = { problem: { code: 'storage_unavailable' } }
const TOO_MANY: Authentication = {
  problem: {
    code: 'overloaded',
    message: 'Too many tokens are being looked up, and nothing was stored. Send it again after Retry-After seconds.',
  },
}
const NO_DIGEST = new Uint8Array(32)

interface Entry {
  readonly record: TokenRecord
  readonly granted: Grant
}

const OPENED = Symbol('opened')

/**
 * A token as it was shown. What it opened is kept with it: who sends the same head again and again, byte for byte, shows the same
 * object (http/wire/plain-request.ts has compared all of it), and no digest is needed to see that.
 */
export interface ShownToken {
  readonly token: string
  [OPENED]?: Entry
}

export interface PrincipalsOptions {
  readonly tokens: TokenStore
  readonly nodes: NodeStore
  readonly nodeId: string
  readonly clock: Clock
  /** For tokens that have none of their own. */
  readonly rateLimit: RateLimit | null
  readonly onTrouble: (doing: string, error: unknown) => void
}

export class Principals implements Service {
  readonly #options: PrincipalsOptions
  readonly #cache = new Map<string, Entry>()
  readonly #uses = new Map<string, number>()
  readonly #follower: Repeating
  readonly #flusher: Repeating
  /** Used again for each token: cheaper than a digest in a buffer of its own. */
  readonly #digest = Buffer.alloc(NO_DIGEST.length)
  readonly #changeListeners: (() => void)[] = []
  #generation = 0
  #reported = -1
  #lookUps = 0

  constructor(options: PrincipalsOptions) {
    this.#options = options
    this.#follower = new Repeating(FOLLOW_EVERY_MS, () => this.#attempt('follow token changes', () => this.#follow()))
    this.#flusher = new Repeating(FLUSH_USES_EVERY_MS, () =>
      this.#attempt('record token uses', () => this.#flushUses()),
    )
  }

  async start(): Promise<void> {
    this.#generation = await this.#options.tokens.generation()
    await this.#report()
    this.#follower.start()
    this.#flusher.start()
  }

  async stop(): Promise<void> {
    await this.#follower.stop()
    await this.#flusher.stop()
    await this.#attempt('record token uses', () => this.#flushUses())
    await this.#attempt('sign off', () => this.#options.nodes.remove(this.#options.nodeId))
  }

  /** Answers at once for a token in memory; a promise otherwise. */
  authenticate(shown: ShownToken): Authentication | Promise<Authentication> {
    const opened = shown[OPENED]
    // Another entry if anything about the token has changed since.
    if (opened && this.#cache.get(opened.record.keyId) === opened) return this.#admit(opened)
    const keyId = tokenKeyId(shown.token)
    const entry = keyId === null ? undefined : this.#cache.get(keyId)
    if (entry || keyId === null) return this.#check(shown, entry)
    if (this.#lookUps >= MAX_LOOK_UPS) return TOO_MANY
    return this.#lookUp(keyId).then(
      (found) => this.#check(shown, found),
      (error: unknown) => {
        this.#options.onTrouble('look up a token', error)
        return UNREACHABLE
      },
    )
  }

  /**
   * What has become of a token that was let in, for what outlives its request: null if it still may. At once for a token
   * in memory.
   */
  standing(keyId: string): Problem | null | Promise<Problem | null> {
    const entry = this.#cache.get(keyId)
    if (entry) return this.#refusal(entry)
    return this.#lookUp(keyId).then(
      (found) => (found ? this.#refusal(found) : { code: 'invalid_token' }),
      (error: unknown) => {
        this.#options.onTrouble('look up a token', error)
        return null
      },
    )
  }

  /** Called when tokens have changed, before this node says that it has put the change into force. */
  onChange(listener: () => void): void {
    this.#changeListeners.push(listener)
  }

  #refusal({ record }: Entry): Problem | null {
    const state = tokenState(record, this.#options.clock.now())
    if (state === 'active') return null
    return { code: state === 'disabled' ? 'token_disabled' : 'token_expired' }
  }

  #check(shown: ShownToken, entry: Entry | undefined): Authentication {
    this.#digest.write(hash('sha256', shown.token, 'latin1'), 'latin1')
    const matches = timingSafeEqual(this.#digest, entry?.record.hash ?? NO_DIGEST)
    if (!entry || !matches) return INVALID
    shown[OPENED] = entry
    return this.#admit(entry)
  }

  /** Whoever has shown the secret. */
  #admit(entry: Entry): Authentication {
    const now = this.#options.clock.now()
    const state = tokenState(entry.record, now)
    if (state !== 'active') return state === 'disabled' ? DISABLED : EXPIRED
    this.#uses.set(entry.record.keyId, now)
    return entry.granted
  }

  /** If a change is fetched while we look, what we found may be older than it: look again. */
  async #lookUp(keyId: string): Promise<Entry | undefined> {
    this.#lookUps += 1
    try {
      for (;;) {
        const generation = this.#generation
        const record = await this.#options.tokens.find(keyId)
        if (!record) return undefined
        if (generation === this.#generation) return this.#remember(record)
      }
    } finally {
      this.#lookUps -= 1
    }
  }

  #remember(record: TokenRecord): Entry {
    const { keyId, accountId, companyId, scope } = record
    const bucket = this.#bucketOf(record)
    const entry = { record, granted: { principal: { keyId, accountId, companyId, scope }, bucket } }
    if (this.#cache.size >= MAX_CACHED) this.#cache.delete(this.#cache.keys().next().value ?? '')
    this.#cache.set(keyId, entry)
    return entry
  }

  /** The one it had, as long as its limit is the same: another change of the token is no new start. */
  #bucketOf({ keyId, rateLimit }: TokenRecord): TokenBucket | null {
    const limit = rateLimit ?? this.#options.rateLimit
    if (limit === null || limit === 'off') return null
    const known = this.#cache.get(keyId)?.granted.bucket
    const isSame = known?.limit.requests === limit.requests && known.limit.windowMs === limit.windowMs
    return isSame ? known : new TokenBucket(limit, this.#options.clock.now())
  }

  async #follow(): Promise<void> {
    const { tokens } = this.#options
    const generation = await tokens.generation()
    if (generation !== this.#generation) {
      const changed = await tokens.changedSince(this.#generation)
      this.#generation = generation
      for (const record of changed) if (this.#cache.has(record.keyId)) this.#remember(record)
      for (const listener of this.#changeListeners) listener()
    }
    if (this.#reported !== this.#generation) await this.#report()
  }

  async #report(): Promise<void> {
    const tokenGeneration = this.#generation
    await this.#options.nodes.report({ nodeId: this.#options.nodeId, tokenGeneration })
    this.#reported = tokenGeneration
  }

  async #flushUses(): Promise<void> {
    if (this.#uses.size === 0) return
    const uses = Array.from(this.#uses, ([keyId, usedAt]) => ({ keyId, usedAt }))
    await this.#options.tokens.touch(uses)
    for (const { keyId, usedAt } of uses) if (this.#uses.get(keyId) === usedAt) this.#uses.delete(keyId)
  }

  async #attempt(doing: string, work: () => Promise<void>): Promise<void> {
    try {
      await work()
    } catch (error) {
      this.#options.onTrouble(doing, error)
    }
  }
}
