import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ByteRates } from '../../../src/http/byte-rates.ts'
import { TestClock } from '../../support/clock.ts'

function setUp(bytesPerSecond: number) {
  const clock = new TestClock()
  return { clock, rates: new ByteRates(bytesPerSecond, clock) }
}

test('a tenant at its rate waits while others go on, and goes on when the time is over', () => {
  const { clock, rates } = setUp(1000)
  assert.equal(rates.waitS('a'), null)
  rates.count('a', 600)
  assert.equal(rates.waitS('a'), null)
  rates.count('a', 600)
  assert.equal(rates.waitS('a'), 1)
  assert.equal(rates.waitS('b'), null)
  clock.advance(201)
  assert.equal(rates.waitS('a'), null)
})

test('one large body overdraws the bucket and is waited for', () => {
  const { clock, rates } = setUp(1000)
  rates.count('a', 5000)
  assert.equal(rates.waitS('a'), 4)
  clock.advance(4001)
  assert.equal(rates.waitS('a'), null)
})

test('control: without a limit nobody waits, and nothing is kept', () => {
  const { rates } = setUp(0)
  for (let n = 0; n < 10; n += 1) rates.count('a', 1e12)
  assert.equal(rates.waitS('a'), null)
  assert.equal(rates.size, 0)
})

test('only so many tenants are remembered', () => {
  const { rates } = setUp(1000)
  for (let n = 0; n < 10_500; n += 1) rates.count(`tenant ${n}`, 2000)
  assert.equal(rates.size, 10_000)
  assert.equal(rates.waitS('tenant 0'), null)
  assert.equal(rates.waitS('tenant 10499'), 1)
})
