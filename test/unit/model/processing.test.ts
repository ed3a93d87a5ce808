import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  acknowledge,
  backOffMs,
  type Delivery,
  fail,
  giveBack,
  handOut,
  isHeld,
  laneTimes,
  leaseFacts,
  newDelivery,
  NO_OWN_RULES,
  requeue,
  retryRules,
} from '../../../src/model/processing.ts'

const LEASE = { id: 'lease', expiresAt: 1000, ordered: true, keyId: 'K' }
const FAILED = { what: 'released', at: 500, availableAt: 700, maxAttempts: 2, keyId: 'K', error: 'no' } as const

const fresh = newDelivery(7, 3, 0)
const leased = (fields: Partial<Delivery> = {}): Delivery => ({ ...handOut(fresh, LEASE), ...fields })

test('pending → leased → done, and a lease counts only with its id and in its time', () => {
  const out = handOut(fresh, LEASE)
  assert.deepEqual([out.state, out.attempts, out.leaseExpiresAt], ['leased', 1, 1000])
  assert.ok(isHeld(out, 'lease', 999))
  assert.ok(!isHeld(out, 'lease', 1000))
  assert.ok(!isHeld(out, 'other', 0))
  assert.ok(!isHeld(undefined, 'lease', 0))
  const done = acknowledge(out, 900)
  assert.deepEqual([done.state, done.settledAt, done.leaseId], ['done', 900, 'lease'])
  assert.ok(!isHeld(done, 'lease', 0))
})

test('a failure sets it back, and the last one makes it dead', () => {
  const { delivery, entry } = fail(leased(), FAILED)
  assert.deepEqual([delivery.state, delivery.availableAt, delivery.leaseId], ['pending', 700, null])
  assert.deepEqual([entry?.what, entry?.state, entry?.error, entry?.number], ['released', 'pending', 'no', 1])
  const dead = fail(leased({ attempts: 2, entries: 1 }), FAILED)
  assert.deepEqual([dead.delivery.state, dead.delivery.settledAt, dead.entry?.number], ['dead', 500, 2])
  const back = requeue(dead.delivery, 900, 'K')
  assert.deepEqual([back.delivery.state, back.delivery.attempts, back.delivery.availableAt], ['pending', 0, 900])
})

test('a failure that is final makes it dead at once, whatever attempts are left', () => {
  const { delivery, entry } = fail(leased(), { ...FAILED, isFinal: true })
  assert.deepEqual([delivery.state, delivery.attempts, entry?.error], ['dead', 1, 'no'])
})

test('what is given back has no attempt counted', () => {
  assert.deepEqual([giveBack(leased()).state, giveBack(leased()).attempts], ['pending', 0])
})

test('the back-off doubles from one second, with up to a quarter more, and ends at an hour', () => {
  const rules = retryRules(NO_OWN_RULES, 5)
  assert.deepEqual(
    [0, 1, 2, 3, 4].map((attempts) => backOffMs(attempts, 0, rules)),
    [1000, 1000, 2000, 4000, 8000],
  )
  assert.equal(backOffMs(1, 0.999, rules), 1250)
  assert.equal(backOffMs(50, 0, rules), 3_600_000)
})

test('a subscription has its own attempts and back-off, and the default for what it does not set', () => {
  assert.deepEqual(retryRules({ maxAttempts: null, firstDelayMs: 5000, maxDelayMs: null }, 7), {
    maxAttempts: 7,
    firstDelayMs: 5000,
    maxDelayMs: 3_600_000,
  })
  const own = retryRules({ maxAttempts: 1000, firstDelayMs: 3000, maxDelayMs: 10_000 }, 7)
  assert.deepEqual(
    [1, 2, 3, 999].map((attempts) => backOffMs(attempts, 0, own)),
    [3000, 6000, 10_000, 10_000],
  )
  assert.equal(own.maxAttempts, 1000)
})

test('a lane is ready when its head is, and open when anything in it is', () => {
  const nothing = { head: null, openAt: null }
  assert.deepEqual(laneTimes(null, nothing), { head: null, readyAt: null, openAt: null, held: 0 })
  const waiting = { head: { eventId: 5, availableAt: 400 }, openAt: 100 }
  assert.deepEqual(laneTimes(null, waiting), { head: 5, readyAt: 400, openAt: 100, held: 0 })
  assert.deepEqual(laneTimes(leaseFacts([leased()]), waiting), { head: 5, readyAt: 1000, openAt: null, held: 1 })
  const loose = leaseFacts([leased({ ordered: false }), leased({ ordered: false, eventId: 8, leaseExpiresAt: 2000 })])
  assert.deepEqual(laneTimes(loose, waiting), { head: 5, readyAt: 2000, openAt: 100, held: 2 })
  assert.deepEqual(laneTimes(loose, nothing), { head: 7, readyAt: 2000, openAt: 1000, held: 2 })
})
