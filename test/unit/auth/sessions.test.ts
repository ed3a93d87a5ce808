import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { test } from 'node:test'
import { MAX_LOOK_UPS, sessionKey, Sessions } from '../../../src/auth/sessions.ts'
import { SignInBackOff } from '../../../src/auth/sign-in-back-off.ts'
import { randomBase62 } from '../../../src/runtime/id.ts'
import type { OperatorStore, SessionRecord } from '../../../src/store/contract/operators.ts'
import { TestClock } from '../../support/clock.ts'

const MINUTE_MS = 60_000
const OPERATOR = {
  id: 'op',
  name: 'ada',
  role: 'viewer',
  tenants: null,
  password: null,
  createdAt: 0,
  disabledAt: null,
}

/** Sessions in memory, whose answers can be held back. */
class FakeStore {
  readonly records = new Map<string, SessionRecord>()
  finds = 0
  beforeAnswer: () => Promise<void> | void = () => {}

  readonly store = {
    findSession: async (hashed: Uint8Array) => {
      this.finds += 1
      const session = this.records.get(Buffer.from(hashed).toString('hex')) ?? null
      await this.beforeAnswer()
      return session && { session, operator: OPERATOR }
    },
    touchSession: async (hashed: Uint8Array, seenAt: number) => {
      const key = Buffer.from(hashed).toString('hex')
      this.records.set(key, { ...this.records.get(key)!, seenAt })
    },
  } as unknown as OperatorStore
}

function setUp() {
  const store = new FakeStore()
  const clock = new TestClock()
  const sessions = new Sessions({
    store: store.store,
    clock,
    maxAgeMs: 720 * MINUTE_MS,
    idleMs: 60 * MINUTE_MS,
    backOff: new SignInBackOff({ clock, free: 3 }),
    audit: async () => {},
    onTrouble: (doing, error) => assert.fail(`${doing}: ${String(error)}`),
  })
  const open = (): string => {
    const cookie = randomBase62(43)
    const hashed = hash('sha256', cookie, 'buffer')
    const now = clock.now()
    const record = { hash: hashed, operatorId: 'op', createdAt: now, expiresAt: now + 720 * MINUTE_MS, seenAt: now }
    store.records.set(hashed.toString('hex'), record)
    return cookie
  }
  return { store, clock, sessions, open }
}

async function codeOf(found: ReturnType<Sessions['find']>): Promise<string> {
  const result = await found
  return 'problem' in result ? result.problem.code : 'signed in'
}

test('an operator whose stream keeps the session cached is at work, and stays signed in', async () => {
  const { clock, sessions, open } = setUp()
  const cookie = open()
  const found = await sessions.find(cookie)
  assert.ok('signedIn' in found)
  for (let minute = 0; minute < 120; minute += 2) {
    clock.advance(2 * MINUTE_MS)
    assert.equal(await sessions.revocation(sessionKey(found.signedIn)), null, `the stream after ${minute} minutes`)
    assert.equal(await codeOf(sessions.find(cookie)), 'signed in', `a request after ${minute} minutes`)
  }
})

test('an open stream alone is no use: the session ends after its idle time', async () => {
  const { clock, sessions, open } = setUp()
  const cookie = open()
  const found = await sessions.find(cookie)
  assert.ok('signedIn' in found)
  for (let minute = 2; minute < 60; minute += 2) {
    clock.advance(2 * MINUTE_MS)
    assert.equal(await sessions.revocation(sessionKey(found.signedIn)), null)
  }
  clock.advance(2 * MINUTE_MS)
  assert.deepEqual(await sessions.revocation(sessionKey(found.signedIn)), { code: 'not_signed_in' })
  assert.equal(await codeOf(sessions.find(cookie)), 'not_signed_in')
})

test('unknown cookies are looked up a bounded number at a time; who is signed in is still let in', async () => {
  const { store, clock, sessions, open } = setUp()
  const [cookie, absent] = [open(), open()]
  assert.equal(await codeOf(sessions.find(cookie)), 'signed in')
  clock.advance(1000)
  const gate = Promise.withResolvers<void>()
  store.beforeAnswer = () => gate.promise
  store.finds = 0
  const flood = Array.from({ length: 3 * MAX_LOOK_UPS }, () => codeOf(sessions.find(randomBase62(43))))
  assert.equal(store.finds, MAX_LOOK_UPS)
  const signedIn = codeOf(sessions.find(cookie))
  assert.equal(store.finds, MAX_LOOK_UPS + 1, 'a known session is looked up again beside them')
  assert.equal(await codeOf(sessions.find(absent)), 'overloaded')
  gate.resolve()
  assert.equal(await signedIn, 'signed in')
  const codes = await Promise.all(flood)
  assert.equal(codes.filter((code) => code === 'not_signed_in').length, MAX_LOOK_UPS)
  assert.equal(codes.filter((code) => code === 'overloaded').length, 2 * MAX_LOOK_UPS)
  assert.equal(await codeOf(sessions.find(absent)), 'signed in', 'afterwards all are looked up again')
})

test('what cannot be a cookie is not looked up', async () => {
  const { store, sessions } = setUp()
  for (const cookie of ['', 'x', randomBase62(44), `${randomBase62(42)}-`]) {
    assert.equal(await codeOf(sessions.find(cookie)), 'not_signed_in')
  }
  assert.equal(store.finds, 0)
})
