import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FailedTokenLimiter } from '../../../src/auth/failed-token-limiter.ts'
import { networkOf } from '../../../src/auth/network.ts'
import { TestClock } from '../../support/clock.ts'

const limit = { requests: 3, windowMs: 60_000 }

test('an address is told to wait from the failure after its limit on, and may try again later', () => {
  const clock = new TestClock()
  const failed = new FailedTokenLimiter({ limit, clock })
  assert.deepEqual(
    Array.from({ length: 5 }, () => failed.recordFailure('203.0.113.7')),
    [null, null, null, 20, 20],
  )
  assert.equal(failed.recordFailure('203.0.113.8'), null, 'another address')
  clock.advance(20_000)
  assert.deepEqual([failed.recordFailure('203.0.113.7'), failed.recordFailure('203.0.113.7')], [null, 20])
})

test('off, or an address that is not known: nobody is told to wait', () => {
  const off = new FailedTokenLimiter({ limit: null, clock: new TestClock() })
  const unknown = new FailedTokenLimiter({ limit, clock: new TestClock() })
  for (let n = 0; n < 10; n++)
    assert.deepEqual([off.recordFailure('203.0.113.7'), unknown.recordFailure(undefined)], [null, null])
  assert.deepEqual([off.size, unknown.size], [0, 0])
})

test('it remembers so many addresses and no more; the one that failed longest ago is forgotten first', () => {
  const failed = new FailedTokenLimiter({
    limit: { requests: 1, windowMs: 60_000 },
    clock: new TestClock(),
    maxAddresses: 3,
  })
  for (const host of [1, 2, 3]) assert.equal(failed.recordFailure(`203.0.113.${host}`), null)
  assert.equal(failed.recordFailure('203.0.113.1'), 60)
  for (let host = 10; host < 1000; host++) {
    failed.recordFailure(`198.51.${host >> 8}.${host & 255}`)
    if (host === 10) assert.equal(failed.recordFailure('203.0.113.1'), 60, 'it failed last')
    assert.ok(failed.size <= 3)
  }
  assert.equal(failed.recordFailure('203.0.113.1'), null, 'forgotten')
})

test('hosts of one /64 are one', () => {
  assert.equal(networkOf('203.0.113.7'), '203.0.113.7')
  assert.equal(networkOf('::ffff:203.0.113.7'), '203.0.113.7')
  assert.equal(networkOf('2001:db8:1:2:3:4:5:6'), '2001:db8:1:2')
  assert.equal(networkOf('2001:DB8:1:2::6'), '2001:db8:1:2')
  assert.equal(networkOf('2001:0db8:0001:0002:ffff::'), '2001:db8:1:2')
  assert.notEqual(networkOf('2001:db8:1:3::6'), networkOf('2001:db8:1:2::6'))
  assert.equal(networkOf('fe80::1%eth0'), 'fe80:0:0:0')
  assert.equal(networkOf('::1'), '0:0:0:0')
})
