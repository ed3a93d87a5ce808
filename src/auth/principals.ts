// Cache of tokens and their principals. A token that is not cached is looked up, so a new token works at once. Changes are
// fetched by generation on a timer, so a disabled token stops working within POLL_MS. The node then reports its
// generation, which `./intray token disable` waits for. A node that stood still looks before it trusts the cache again.
//
// A token of another form is one that was imported, if any was: its key id is computed from its digest, and everything else is the
// same.
//
// An unknown, malformed or mistyped token and one with a wrong secret take one code path and get one answer: digests are
// compared in each case.

import { hash, timingSafeEqual } from 'node:crypto'
import type { Problem } from '../model/errors.ts'
import { importedKeyId } from '../model/imported-token.ts'
import type { Principal } from '../model/principal.ts'
import type { RateLimit } from '../model/rate-limit.ts'
import { type TokenRecord, tokenState } from '../model/token.ts'
import type { Clock } from '../runtime/clock.ts'
import { PeriodicTask, type Service } from '../runtime/service.ts'
import { startTimeLimit } from '../runtime/time-limit.ts'
import type { NodeStore } from '../store/contract/nodes.ts'
import type { TokenStore } from '../store/contract/tokens.ts'
import { TokenBucket } from './rate-limit.ts'
import { hasTokenPrefix, hookKeyId, tokenKeyId } from './token.ts'

export interface Grant {
  readonly principal: Principal
  /** Null for a token without a limit. */
  readonly bucket: TokenBucket | null
  /** Of a hook; null for a bearer token. */
  readonly recipe: string | null
}
export type Authentication = Grant | { readonly problem: Problem }

export const POLL_MS = 500
/** A change does not wait for a node that is silent for 4 s (store/postgres/admin/nodes.ts): by then its cache is not trusted. */
export const MAX_LOOK_AGE_MS = 2000
/** Without the database nothing is stored or read either, so no request is kept waiting here. */
export const MAX_LOOK_WAIT_MS = 1000
const FLUSH_USES_MS = 60_000
const MAX_CACHED = 100_000

/** Concurrent look-ups: a flood of unknown tokens must not fill the store's queue. Cached tokens need none. */
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
  /** Set once the tenant was moved. */
  readonly moved: { readonly problem: Problem } | null
}

const CACHED = Symbol('cached')

/**
 * A token as presented, with its cache entry once verified. Requests with the same head, byte for byte, share this object
 * (http/wire/plain-request.ts compares the heads), so that the digest is computed once.
 */
export interface PresentedToken {
  readonly token: string
  [CACHED]?: Entry
}

export interface PrincipalsOptions {
  readonly tokens: TokenStore
  readonly nodes: NodeStore
  readonly nodeId: string
  readonly clock: Clock
  /** For tokens without a limit of their own. */
  readonly rateLimit: RateLimit | null
  readonly onTrouble: (doing: string, error: unknown) => void
}

export class Principals implements Service {
  readonly #options: PrincipalsOptions
  readonly #cache = new Map<string, Entry>()
  readonly #uses = new Map<string, number>()
  readonly #follower: PeriodicTask
  readonly #flusher: PeriodicTask
  /** Reused for each token, to avoid an allocation. */
  readonly #digest = Buffer.alloc(NO_DIGEST.length)
  readonly #changeListeners: (() => void)[] = []
  /** With which key ids of imported tokens are computed; null while there are none. */
  #importKey: Uint8Array | null = null
  #generation = 0
  #reported = -1
  /** When the last look for changes that is over began. */
  #lookedAt = 0
  #looking: Promise<void> | null = null
  #catchingUp: Promise<void> | null = null
  #lookUps = 0

  constructor(options: PrincipalsOptions) {
    this.#options = options
    this.#follower = new PeriodicTask(POLL_MS, () => this.#look())
    this.#flusher = new PeriodicTask(FLUSH_USES_MS, () => this.#attempt('record token uses', () => this.#flushUses()))
  }

  async start(): Promise<void> {
    this.#lookedAt = this.#options.clock.now()
    this.#generation = await this.#options.tokens.generation()
    await this.#readImportKey()
    await this.#report()
    this.#follower.start()
    this.#flusher.start()
  }

  async stop(): Promise<void> {
    await this.#follower.stop()
    await this.#flusher.stop()
    await this.#attempt('record token uses', () => this.#flushUses())
    await this.#attempt('unregister the node', () => this.#options.nodes.remove(this.#options.nodeId))
  }

  /** Synchronous for a cached token. */
  authenticate(shown: PresentedToken): Authentication | Promise<Authentication> {
    return this.#onceCurrent(() => {
      const cached = shown[CACHED]
      // The entry is replaced when the token changes.
      if (cached && this.#cache.get(cached.record.keyId) === cached) return this.#admit(cached)
      return this.#authenticate(shown, tokenKeyId(shown.token) ?? this.#importedKeyId(shown.token))
    })
  }

  /** The same for a hook id, which is no bearer token, as a bearer token is no hook id: their digests differ. */
  authenticateHook(shown: PresentedToken): Authentication | Promise<Authentication> {
    return this.#onceCurrent(() => this.#authenticate(shown, hookKeyId(shown.token)))
  }

  #authenticate(shown: PresentedToken, keyId: string | null): Authentication | Promise<Authentication> {
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

  /** For streams, which outlive their request: null while the token is valid. Synchronous for a cached token. */
  revocation(keyId: string): Problem | null | Promise<Problem | null> {
    return this.#onceCurrent(() => {
      const entry = this.#cache.get(keyId)
      if (entry) return this.#refusal(entry)
      return this.#lookUp(keyId).then(
        (found) => (found ? this.#refusal(found) : { code: 'invalid_token' }),
        (error: unknown) => {
          this.#options.onTrouble('look up a token', error)
          return null
        },
      )
    })
  }

  /** Called when tokens have changed, before this node confirms the change. */
  onChange(listener: () => void): void {
    this.#changeListeners.push(listener)
  }

  #refusal({ record }: Entry): Problem | null {
    const state = tokenState(record, this.#options.clock.now())
    if (state === 'active') return movedProblem(record)
    return { code: state === 'disabled' ? 'token_disabled' : 'token_expired' }
  }

  #importedKeyId(token: string): string | null {
    if (this.#importKey === null || hasTokenPrefix(token)) return null
    return importedKeyId(this.#importKey, hash('sha256', token, 'buffer'))
  }

  async #readImportKey(): Promise<void> {
    const { tokens } = this.#options
    if (this.#importKey === null && (await tokens.hasImported())) this.#importKey = await tokens.importKey()
  }

  #check(shown: PresentedToken, entry: Entry | undefined): Authentication {
    this.#digest.write(hash('sha256', shown.token, 'latin1'), 'latin1')
    const matches = timingSafeEqual(this.#digest, entry?.record.hash ?? NO_DIGEST)
    if (!entry || !matches) return INVALID
    shown[CACHED] = entry
    return this.#admit(entry)
  }

  /** For a token whose secret was verified. */
  #admit(entry: Entry): Authentication {
    const now = this.#options.clock.now()
    const state = tokenState(entry.record, now)
    if (state !== 'active') return state === 'disabled' ? DISABLED : EXPIRED
    if (entry.moved) return entry.moved
    this.#uses.set(entry.record.keyId, now)
    return entry.granted
  }

  /** If a change is fetched meanwhile, the record may be older than it: reads again. */
  async #lookUp(keyId: string): Promise<Entry | undefined> {
    this.#lookUps += 1
    try {
      for (;;) {
        const generation = this.#generation
        const record = await this.#options.tokens.find(keyId)
        if (!record) return undefined
        if (generation === this.#generation) return this.#store(record)
      }
    } finally {
      this.#lookUps -= 1
    }
  }

  #store(record: TokenRecord): Entry {
    const { keyId, accountId, companyId, scope } = record
    const bucket = this.#bucketOf(record)
    const problem = movedProblem(record)
    const granted = { principal: { keyId, accountId, companyId, scope }, bucket, recipe: record.recipe }
    const entry = { record, granted, moved: problem && { problem } }
    if (this.#cache.size >= MAX_CACHED) this.#cache.delete(this.#cache.keys().next().value ?? '')
    this.#cache.set(keyId, entry)
    return entry
  }

  /** Keeps the bucket while the limit is the same, so that other changes do not reset it. */
  #bucketOf({ keyId, rateLimit }: TokenRecord): TokenBucket | null {
    const limit = rateLimit ?? this.#options.rateLimit
    if (limit === null || limit === 'off') return null
    const known = this.#cache.get(keyId)?.granted.bucket
    const isSame = known?.limit.requests === limit.requests && known.limit.windowMs === limit.windowMs
    return isSame ? known : new TokenBucket(limit, this.#options.clock.now())
  }

  /** At once, unless this process stood still and may have missed changes. */
  #onceCurrent<T>(work: () => T | Promise<T>): T | Promise<T> {
    const isBehind = this.#options.clock.now() - this.#lookedAt > MAX_LOOK_AGE_MS
    return isBehind ? this.#catchUp().then(work) : work()
  }

  /** Resolves once a look that begins now is over, or has taken too long. */
  #catchUp(): Promise<void> {
    this.#catchingUp ??= new Promise<void>((resolve) => {
      const endLimit = startTimeLimit(MAX_LOOK_WAIT_MS, resolve)
      void this.#lookAnew().then(() => {
        endLimit()
        resolve()
      })
    }).finally(() => {
      this.#catchingUp = null
    })
    return this.#catchingUp
  }

  async #lookAnew(): Promise<void> {
    // It may have begun before the process stood still.
    await this.#looking
    await this.#look()
  }

  /** Never rejects. */
  #look(): Promise<void> {
    this.#looking ??= this.#lookOnce().finally(() => {
      this.#looking = null
    })
    return this.#looking
  }

  async #lookOnce(): Promise<void> {
    const beganAt = this.#options.clock.now()
    await this.#attempt('follow token changes', () => this.#follow())
    this.#lookedAt = beganAt
  }

  async #follow(): Promise<void> {
    const { tokens } = this.#options
    const generation = await tokens.generation()
    if (generation !== this.#generation) {
      const changed = await tokens.changedSince(this.#generation)
      await this.#readImportKey()
      this.#generation = generation
      for (const record of changed) if (this.#cache.has(record.keyId)) this.#store(record)
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

function movedProblem({ movedTo }: TokenRecord): Problem | null {
  if (movedTo === null) return null
  if (movedTo === '') return { code: 'tenant_moved' }
  return {
    code: 'tenant_moved',
    message: `This tenant is moved to ${movedTo}, and nothing was stored here. Send it there, with the same token.`,
  }
}
