import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CLOSED, FAILURES_TO_OPEN } from '../../../../src/model/endpoint.ts'
import { CircuitBreaker } from '../../../../src/processing/push/circuit-breaker.ts'
import { ClaimPace } from '../../../../src/processing/push/claim-pace.ts'
import { headerProblem, parseHeaderLine } from '../../../../src/processing/push/header-field.ts'

const failTimes = (breaker: CircuitBreaker, times: number, now: number) =>
  Array.from({ length: times }, () => breaker.failed(now)).filter((changed) => changed !== null)

test('a run of failures opens the circuit once, and a success between begins a new run', () => {
  const breaker = new CircuitBreaker(CLOSED)
  assert.deepEqual(failTimes(breaker, FAILURES_TO_OPEN - 1, 0), [])
  assert.equal(breaker.succeeded(), null)
  assert.deepEqual(failTimes(breaker, FAILURES_TO_OPEN - 1, 0), [])
  assert.equal(breaker.begin(0), true)
  const opened = failTimes(breaker, 5, 1000)
  assert.deepEqual(opened, [{ openedAt: 1000, retryAt: 31_000, trips: 1 }], 'those under way change nothing more')
  assert.deepEqual([breaker.begin(30_999), breaker.waitMs(30_999)], [false, 1])
})

test('half-open, one request at a time is tried; it doubles the time, up to ten minutes, or closes', () => {
  const breaker = new CircuitBreaker({ openedAt: 0, retryAt: 30_000, trips: 1 })
  let now = 30_000
  for (const openMs of [60_000, 120_000, 240_000, 480_000, 600_000, 600_000]) {
    assert.deepEqual([breaker.begin(now), breaker.begin(now)], [true, false])
    assert.equal(breaker.failed(now)?.retryAt, now + openMs)
    breaker.ended()
    assert.equal(breaker.begin(now), false)
    now += openMs
  }
  assert.equal(breaker.begin(now), true)
  breaker.ended()
  assert.equal(breaker.begin(now), true, 'one that was broken off may be followed by another')
  assert.deepEqual(breaker.succeeded(), CLOSED)
})

test('an endpoint that asks to be left alone is, without a circuit', () => {
  const breaker = new CircuitBreaker(CLOSED)
  breaker.quiet(5000)
  breaker.quiet(3000)
  assert.deepEqual([breaker.begin(4999), breaker.begin(5000)], [false, true])
})

test('claims of a quick endpoint grow to the limit, those of a slow one shrink to its concurrency', () => {
  let now = 0
  const pace = new ClaimPace(8, () => now)
  const after = (ms: number) => {
    pace.claimed(pace.limit)
    now += ms
    assert.equal(pace.usedUp(false), 0)
    return pace.limit
  }
  assert.deepEqual([pace.limit, after(10), after(10), after(10), after(10), after(10)], [16, 32, 64, 128, 200, 200])
  assert.deepEqual([after(5000), after(5000), after(5000), after(5000), after(5000)], [100, 50, 25, 12, 8])
})

test('while messages wait for the disk, pushes take a fifth of the time, and the pause is no part of what a claim lasted', () => {
  let now = 0
  const pace = new ClaimPace(8, () => now)
  assert.equal(pace.usedUp(true), 0)
  pace.claimed(16)
  now += 100
  assert.equal(pace.usedUp(true), 400)
  assert.equal(pace.usedUp(true), 0, 'once for each claim')
  now += 400
  pace.claimed(32)
  now += 499
  assert.equal(pace.usedUp(false), 0)
  assert.equal(pace.limit, 64)
  pace.claimed(64)
  now += 60_000
  assert.equal(pace.usedUp(true), 2000)
})

test('a header has a name and a value that HTTP allows, and is none of the service', () => {
  for (const line of ['Authorization: Bearer a b', 'X-A: 1', 'x_y: a:b']) {
    assert.equal(headerProblem(parseHeaderLine(line, true)!), null, line)
  }
  const wrong = [
    'Host: a',
    'content-type: a',
    'Webhook-Id: a',
    'Transfer-Encoding: chunked',
    'A b: c',
    'X: ',
    'X: é',
    'X: a\rb',
  ]
  for (const line of wrong) assert.notEqual(headerProblem(parseHeaderLine(line, true)!), null, line)
  assert.equal(parseHeaderLine('no colon', true), null)
})
