// Sessions of operators, who sign in by password or by a one-time link and are recognised by their cookie.
//
//   name + password, or link ─► session ─► sign-out, expiry, idle for too long, disabled, new password ─► over
//
// Sessions are cached for CACHE_MS: a change is in effect on every node after a second, and at once on the node that made
// it. An unknown name, a wrong password and a disabled operator take one code path and get one answer: a password is hashed
// in each case.

import { hash } from 'node:crypto'
import type { Problem } from '../model/errors.ts'
import type { Operator, OperatorRecord } from '../model/operator.ts'
import type { Clock } from '../runtime/clock.ts'
import { randomBase62 } from '../runtime/id.ts'
import type { OperatorStore } from '../store/contract/operators.ts'
import type { Origin, RecordAudit } from './audit.ts'
import { PasswordVerifier } from './password.ts'
import type { SignInBackOff } from './sign-in-back-off.ts'

/** 256 bits in base62. */
const SECRET_LENGTH = 43
const SECRET = /^[0-9A-Za-z]{43}$/
const CACHE_MS = 1000
const MAX_CACHED = 1000
const MAX_SESSIONS = 20
/** Concurrent look-ups: a flood of unknown cookies must not fill the store's queue. */
export const MAX_LOOK_UPS = 100
/** The last use is written at most this often. */
const TOUCH_EVERY_MS = 60_000
const LINK_MS = 15 * 60_000
/** Retry-After while too many passwords wait to be verified. */
const BUSY_MS = 1000

/** Prefix of the key by which a stream checks its session. */
const SESSION_KEY = 'session:'

export interface SignedIn {
  /** The hash of the cookie, in hexadecimal. */
  readonly key: string
  readonly operator: Operator
  readonly expiresAt: number
}

export type Credentials = { readonly name: string; readonly password: string } | { readonly link: string }

export type SignInResult = { readonly cookie: string; readonly signedIn: SignedIn } | { readonly problem: Problem }

export type FoundSession = { readonly signedIn: SignedIn } | { readonly problem: Problem }

const NOT_SIGNED_IN: FoundSession = { problem: { code: 'not_signed_in' } }
const TOO_MANY: FoundSession = {
  problem: {
    code: 'overloaded',
    message: 'Too many sessions are being looked up, and nothing was changed. Try again after Retry-After seconds.',
  },
}

export interface SessionsOptions {
  readonly store: OperatorStore
  readonly clock: Clock
  readonly maxAgeMs: number
  readonly idleMs: number
  readonly backOff: SignInBackOff
  readonly audit: RecordAudit
  readonly onTrouble: (doing: string, error: unknown) => void
}

interface CachedSession {
  readonly at: number
  readonly signedIn: SignedIn
  /** The last use that was written, or is being written. */
  seenAt: number
}

interface Found {
  readonly operator: OperatorRecord | null
  readonly isRight: boolean
}

export class Sessions {
  readonly #options: SessionsOptions
  readonly #passwords = new PasswordVerifier()
  readonly #cache = new Map<string, CachedSession>()
  #lookUps = 0

  constructor(options: SessionsOptions) {
    this.#options = options
  }

  /** `peer`: the address that failures are counted for. */
  async signIn(given: Credentials, peer: string, origin: Origin): Promise<SignInResult> {
    const { backOff } = this.#options
    const name = 'name' in given ? given.name : null
    const waitMs = name !== null && this.#passwords.isBusy ? BUSY_MS : backOff.attempt(name, peer)
    if (waitMs > 0) return tooMany(waitMs)
    const { operator, isRight } = 'link' in given ? await this.#byLink(given.link) : await this.#byPassword(given)
    if (!operator || !isRight) {
      // An unknown name is not recorded: it may be a password in the wrong field.
      await this.#options.audit({ action: 'sign_in_failed', operator, origin })
      return { problem: { code: 'sign_in_failed' } }
    }
    backOff.succeeded(name, peer)
    return this.#open(operator, origin)
  }

  /** Counts as a use of the session. */
  async find(cookie: string): Promise<FoundSession> {
    if (!SECRET.test(cookie)) return NOT_SIGNED_IN
    const key = digest(cookie).toString('hex')
    // Operators who are signed in are let in at any load.
    if (this.#lookUps >= MAX_LOOK_UPS && !this.#cache.has(key)) return TOO_MANY
    const found = await this.#findByKey(key)
    if (!found) return NOT_SIGNED_IN
    this.#recordUse(found)
    return { signedIn: found.signedIn }
  }

  /**
   * For streams, which outlive their request: null while the session is valid. Does not count as a use: the session would
   * never become idle.
   */
  async revocation(key: string): Promise<Problem | null> {
    try {
      const found = await this.#findByKey(key.slice(SESSION_KEY.length))
      return found ? null : { code: 'not_signed_in' }
    } catch (error) {
      this.#options.onTrouble('look up a session', error)
      return null
    }
  }

  async signOut({ key, operator }: SignedIn, origin: Origin): Promise<void> {
    this.#cache.delete(key)
    await this.#options.store.closeSession(Buffer.from(key, 'hex'))
    await this.#options.audit({ action: 'sign_out', operator, origin })
  }

  async signOutEverywhere({ operator }: SignedIn, origin: Origin): Promise<void> {
    for (const [key, { signedIn }] of this.#cache) {
      if (signedIn.operator.id === operator.id) this.#cache.delete(key)
    }
    await this.#options.store.closeSessions(operator.id)
    await this.#options.audit({ action: 'sign_out_everywhere', operator, origin })
  }

  async #findByKey(key: string): Promise<CachedSession | null> {
    const { store, clock, idleMs } = this.#options
    const now = clock.now()
    const known = this.#cache.get(key)
    if (known && now >= known.at && now - known.at < CACHE_MS) return known
    this.#lookUps += 1
    const found = await store.findSession(Buffer.from(key, 'hex'), now).finally(() => (this.#lookUps -= 1))
    if (!found || now - found.session.seenAt >= idleMs) {
      this.#cache.delete(key)
      return null
    }
    const { id, name, role, tenants } = found.operator
    const { expiresAt, seenAt } = found.session
    const session = { at: now, signedIn: { key, operator: { id, name, role, tenants }, expiresAt }, seenAt }
    if (this.#cache.size >= MAX_CACHED && !known) this.#cache.clear()
    this.#cache.set(key, session)
    return session
  }

  #recordUse(session: CachedSession): void {
    const { store, clock, idleMs, onTrouble } = this.#options
    const now = clock.now()
    if (now - session.seenAt < Math.min(TOUCH_EVERY_MS, idleMs / 4)) return
    session.seenAt = now
    store
      .touchSession(Buffer.from(session.signedIn.key, 'hex'), now)
      .catch((error: unknown) => onTrouble('record the use of a session', error))
  }

  async #open({ id, name, role, tenants, password }: OperatorRecord, origin: Origin): Promise<SignInResult> {
    const { store, clock, maxAgeMs, audit } = this.#options
    const cookie = randomBase62(SECRET_LENGTH)
    const hashed = digest(cookie)
    const now = clock.now()
    const expiresAt = now + maxAgeMs
    const session = { hash: hashed, operatorId: id, createdAt: now, expiresAt, seenAt: now }
    // A password changed during the verification ended all sessions, and must end this one.
    if (!(await store.openSession(session, MAX_SESSIONS, password))) return { problem: { code: 'sign_in_failed' } }
    const signedIn = { key: hashed.toString('hex'), operator: { id, name, role, tenants }, expiresAt }
    await audit({ action: 'sign_in', operator: signedIn.operator, origin })
    return { cookie, signedIn }
  }

  async #byPassword({ name, password }: { readonly name: string; readonly password: string }): Promise<Found> {
    let operator: OperatorRecord | null = null
    const isRight = await this.#passwords.matches(password, async () => {
      operator = await this.#options.store.findByName(name)
      return operator?.disabledAt === null ? operator.password : null
    })
    return { operator, isRight }
  }

  async #byLink(code: string): Promise<Found> {
    const { store, clock } = this.#options
    const operator = SECRET.test(code) ? await store.useLink(digest(code), clock.now()) : null
    return { operator, isRight: operator !== null }
  }
}

export function sessionKey({ key }: SignedIn): string {
  return SESSION_KEY + key
}

export function isSessionKey(key: string): boolean {
  return key.startsWith(SESSION_KEY)
}

/** A code that signs an operator in once, within 15 minutes. */
export async function createSignInLink(
  store: Pick<OperatorStore, 'addLink'>,
  { id }: Pick<Operator, 'id'>,
  now: number,
): Promise<string> {
  const code = randomBase62(SECRET_LENGTH)
  await store.addLink({ operatorId: id, hash: digest(code), expiresAt: now + LINK_MS })
  return code
}

function digest(secret: string): Buffer {
  return hash('sha256', secret, 'buffer')
}

function tooMany(waitMs: number): SignInResult {
  const message = 'Too many failed sign-ins. Try again after Retry-After seconds.'
  return { problem: { code: 'rate_limited', message, retryAfterS: Math.ceil(waitMs / 1000) } }
}
