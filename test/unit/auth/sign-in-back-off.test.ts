import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SignInBackOff } from '../../../src/auth/sign-in-back-off.ts'
import { TestClock } from '../../support/clock.ts'

function setUp(free = 3) {
  const clock = new TestClock()
  return { clock, backOff: new SignInBackOff({ clock, free }) }
}

/** As many attempts as are let through, each from an address of its own. */
function fail(backOff: SignInBackOff, name: string, times: number): void {
  for (let n = 0; n < times; n++) assert.equal(backOff.attempt(name, `192.0.2.${n}`), 0)
}

test('a name may fail so many times; then it waits a second, and twice as long with each further failure', () => {
  const { clock, backOff } = setUp()
  fail(backOff, 'ada', 3)
  const waits = []
  for (let n = 0; n < 9; n++) {
    const wait = backOff.attempt('ada', `198.51.100.${n}`)
    waits.push(wait / 1000)
    clock.advance(wait - 1)
    assert.equal(backOff.attempt('ada', 'x'), 1, 'not a moment earlier')
    clock.advance(1)
    assert.equal(backOff.attempt('ada', `203.0.113.${n}`), 0)
  }
  assert.deepEqual(waits, [1, 2, 4, 8, 16, 32, 60, 60, 60])
})

test('an attempt that is turned away makes nobody wait longer', () => {
  const { backOff } = setUp()
  fail(backOff, 'ada', 3)
  for (let n = 0; n < 50; n++) assert.equal(backOff.attempt('ada', 'x'), 1000)
})

test('names do not hold each other up, and an address may fail four times as often', () => {
  const { backOff } = setUp()
  fail(backOff, 'ada', 3)
  assert.equal(backOff.attempt('bob', '192.0.2.99'), 0)
  const counts = setUp()
  let letThrough = 0
  while (counts.backOff.attempt(`name${letThrough}`, '192.0.2.1') === 0) letThrough += 1
  assert.equal(letThrough, 12)
  assert.equal(counts.backOff.attempt(null, '192.0.2.1'), 1000, 'links from there wait too')
  assert.equal(counts.backOff.attempt(null, '192.0.2.2'), 0)
})

test('success, or a quarter of an hour without a failure, makes good', () => {
  const { clock, backOff } = setUp()
  fail(backOff, 'ada', 3)
  backOff.succeeded('ada', '192.0.2.0')
  fail(backOff, 'ada', 3)
  clock.advance(900_000)
  fail(backOff, 'ada', 3)
})

test('attempts at the same time count at once, not when they have failed', () => {
  const { backOff } = setUp()
  const waits = Array.from({ length: 100 }, (_, n) => backOff.attempt('ada', `192.0.2.${n}`))
  assert.equal(waits.filter((wait) => wait === 0).length, 3)
})

test('the addresses of one IPv6 network are one', () => {
  const { backOff } = setUp(1)
  const waits = Array.from({ length: 10 }, (_, n) => backOff.attempt(`name${n}`, `2001:db8:1:2::${n + 1}`))
  assert.ok(
    waits.some((ms) => ms > 0),
    'no host waits less for having many addresses',
  )
  assert.equal(backOff.attempt('another', '2001:db8:1:3::1'), 0)
})

test('what is remembered is bounded: the longest ago makes room', () => {
  const { backOff } = setUp(1)
  assert.equal(backOff.attempt('first', 'a'), 0)
  assert.ok(backOff.attempt('first', 'b') > 0)
  for (let n = 0; n < 10_000; n++) backOff.attempt(`name${n}`, `10.0.${n >> 8}.${n & 255}`)
  assert.equal(backOff.attempt('first', 'c'), 0, 'forgotten')
  assert.ok(backOff.attempt('name9999', 'd') > 0, 'the latest is not')
})
