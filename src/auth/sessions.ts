// Operators sign in, by password or by a link that works once, and are known by their cookie from then on.
//
//   name + password, or link ─► session ─► sign-out, expiry, idle for too long, disabled, new password ─► over
//
// What a session is worth is remembered for REMEMBERED_MS: whatever ends it is in force a second later on every node, and
// at once where it was done. An unknown name, a wrong password and a disabled operator take one path and get one answer:
// the password is worked on in each case.

import { hash } from 'node:crypto'
import type { Problem } from '../model/errors.ts'
import type { Operator, OperatorRecord } from '../model/operator.ts'
import type { Clock } from '../runtime/clock.ts'
import { randomBase62 } from '../runtime/id.ts'
import type { OperatorStore } from '../store/contract/operators.ts'
import type { Origin, RecordDeed } from './audit.ts'
import { PasswordCheck } from './password.ts'
import type { SignInBackOff } from './sign-in-back-off.ts'

/** 256 bits in base62. */
const SECRET_LENGTH = 43
const SECRET = /^[0-9A-Za-z]{43}$/
const REMEMBERED_MS = 1000
const MAX_REMEMBERED = 1000
const MAX_SESSIONS = 20
/** A use is noted only so often: it costs a write. */
const TOUCH_EVERY_MS = 60_000
const LINK_MS = 15 * 60_000
/** So many passwords wait to be checked that one more has to come again. */
const BUSY_MS = 1000

/** The key by which a stream asks for the standing of its session. */
const SESSION_KEY = 'session:'

export interface SignedIn {
  /** The hash of the cookie, in hexadecimal. */
  readonly key: string
  readonly operator: Operator
  readonly expiresAt: number
}

export type Credentials = { readonly name: string; readonly password: string } | { readonly link: string }

export type SignInResult = { readonly cookie: string; readonly signedIn: SignedIn } | { readonly problem: Problem }

export interface SessionsOptions {
  readonly store: OperatorStore
  readonly clock: Clock
  readonly maxAgeMs: number
  readonly idleMs: number
  readonly backOff: SignInBackOff
  readonly audit: RecordDeed
  readonly onTrouble: (doing: string, error: unknown) => void
}

interface Remembered {
  readonly at: number
  readonly signedIn: SignedIn
}

interface Found {
  readonly operator: OperatorRecord | null
  readonly isRight: boolean
}

export class Sessions {
  readonly #options: SessionsOptions
  readonly #passwords = new PasswordCheck()
  readonly #remembered = new Map<string, Remembered>()

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
      // A name that nobody has is not written down: it may be a password in the wrong field.
      await this.#options.audit({ action: 'sign_in_failed', operator, origin })
      return { problem: { code: 'sign_in_failed' } }
    }
    backOff.succeeded(name, peer)
    return this.#open(operator, origin)
  }

  /** Null for a cookie that is not, or no longer, worth anything. */
  async find(cookie: string): Promise<SignedIn | null> {
    return SECRET.test(cookie) ? this.#findByHash(digest(cookie)) : null
  }

  /** For what outlives its request: null if the session of this key still holds. */
  async standing(key: string): Promise<Problem | null> {
    try {
      const found = await this.#findByHash(Buffer.from(key.slice(SESSION_KEY.length), 'hex'), false)
      return found ? null : { code: 'not_signed_in' }
    } catch (error) {
      this.#options.onTrouble('look up a session', error)
      return null
    }
  }

  async signOut({ key, operator }: SignedIn, origin: Origin): Promise<void> {
    this.#remembered.delete(key)
    await this.#options.store.closeSession(Buffer.from(key, 'hex'))
    await this.#options.audit({ action: 'sign_out', operator, origin })
  }

  async signOutEverywhere({ operator }: SignedIn, origin: Origin): Promise<void> {
    for (const [key, { signedIn }] of this.#remembered) {
      if (signedIn.operator.id === operator.id) this.#remembered.delete(key)
    }
    await this.#options.store.closeSessions(operator.id)
    await this.#options.audit({ action: 'sign_out_everywhere', operator, origin })
  }

  /** A stream that is only open is no use of a session: it would keep it from ever being idle. */
  async #findByHash(hashed: Buffer, isUse = true): Promise<SignedIn | null> {
    const { store, clock, idleMs, onTrouble } = this.#options
    const now = clock.now()
    const key = hashed.toString('hex')
    const known = this.#remembered.get(key)
    if (known && now >= known.at && now - known.at < REMEMBERED_MS) return known.signedIn
    this.#remembered.delete(key)
    const found = await store.findSession(hashed, now)
    if (!found || now - found.session.seenAt >= idleMs) return null
    if (isUse && now - found.session.seenAt >= Math.min(TOUCH_EVERY_MS, idleMs / 4)) {
      store.touchSession(hashed, now).catch((error: unknown) => onTrouble('note the use of a session', error))
    }
    const { id, name, role, tenants } = found.operator
    const signedIn = { key, operator: { id, name, role, tenants }, expiresAt: found.session.expiresAt }
    if (this.#remembered.size >= MAX_REMEMBERED) this.#remembered.clear()
    this.#remembered.set(key, { at: now, signedIn })
    return signedIn
  }

  async #open({ id, name, role, tenants, password }: OperatorRecord, origin: Origin): Promise<SignInResult> {
    const { store, clock, maxAgeMs, audit } = this.#options
    const cookie = randomBase62(SECRET_LENGTH)
    const hashed = digest(cookie)
    const now = clock.now()
    const expiresAt = now + maxAgeMs
    const session = { hash: hashed, operatorId: id, createdAt: now, expiresAt, seenAt: now }
    // Checking took its time: what was changed meanwhile ended all sessions, and must end this one.
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

/** A code that signs an operator in once, in the next quarter of an hour. */
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
  const message = 'Too many attempts to sign in. Try again after Retry-After seconds.'
  return { problem: { code: 'rate_limited', message, retryAfterS: Math.ceil(waitMs / 1000) } }
}
