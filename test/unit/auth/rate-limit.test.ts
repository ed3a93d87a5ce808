import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { TokenBucket } from '../../../src/auth/rate-limit.ts'

const TEN_A_SECOND = { requests: 10, windowMs: 1000 }

/** How many of so many requests at one moment pass. */
function passed(bucket: TokenBucket, tries: number, now: number): number {
  return Array.from({ length: tries }, () => bucket.take(now)).filter(({ isAllowed }) => isAllowed).length
}

describe('a bucket', () => {
  test('lets the whole limit through at once, then nothing', () => {
    const bucket = new TokenBucket(TEN_A_SECOND, 0)
    assert.equal(passed(bucket, 25, 0), 10)
  })

  test('fills up evenly, and never above its limit', () => {
    const bucket = new TokenBucket(TEN_A_SECOND, 0)
    passed(bucket, 10, 0)
    assert.equal(passed(bucket, 5, 99), 0)
    assert.equal(passed(bucket, 5, 100), 1)
    assert.equal(passed(bucket, 5, 350), 2)
    assert.equal(passed(bucket, 50, 60_000), 10)
  })

  test('tells what is left, and when there is more', () => {
    const bucket = new TokenBucket({ requests: 2, windowMs: 10_000 }, 0)
    assert.deepEqual(bucket.peek(0), { isAllowed: true, remaining: 2, resetS: 0 })
    assert.deepEqual(bucket.take(0), { isAllowed: true, remaining: 1, resetS: 5 })
    assert.deepEqual(bucket.take(0), { isAllowed: true, remaining: 0, resetS: 5 })
    assert.deepEqual(bucket.take(0), { isAllowed: false, remaining: 0, resetS: 5 })
    assert.deepEqual(bucket.take(4001), { isAllowed: false, remaining: 0, resetS: 1 })
    assert.deepEqual(bucket.take(5000), { isAllowed: true, remaining: 0, resetS: 5 })
  })

  /** Empties it, and is refused a millisecond later, unless one is back by then. */
  function refusedAfterAMillisecond(requests: number, windowMs: number): void {
    const bucket = new TokenBucket({ requests, windowMs }, 0)
    assert.equal(passed(bucket, requests + 1, 0), requests)
    const { isAllowed, resetS } = bucket.take(1)
    assert.equal(isAllowed, requests >= windowMs)
    assert.ok(isAllowed || resetS >= 1)
    assert.ok(bucket.take(1 + resetS * 1000).isAllowed)
  }

  test('who waits as long as it was told is let in', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 5000 }),
        fc.integer({ min: 1000, max: 3_600_000 }),
        refusedAfterAMillisecond,
      ),
    )
  })

  test('who is refused for less than a microsecond waits a second, too', () => {
    refusedAfterAMillisecond(1014, 1015)
    refusedAfterAMillisecond(999_999, 1_000_000)
  })

  test('one comes back to the millisecond, however often one was taken', () => {
    const bucket = new TokenBucket({ requests: 3, windowMs: 1000 }, 0)
    passed(bucket, 3, 0)
    const times = Array.from({ length: 100_000 }, (_, ms) => ms + 1).filter((now) => bucket.take(now).isAllowed)
    assert.deepEqual(
      times,
      Array.from({ length: 300 }, (_, index) => Math.ceil(((index + 1) * 1000) / 3)),
    )
  })

  test('never lets more through in any stretch of time than its limit and what came back', () => {
    const waits = fc.array(fc.integer({ min: 0, max: 400 }), { maxLength: 200 })
    fc.assert(
      fc.property(waits, (gaps) => {
        const bucket = new TokenBucket(TEN_A_SECOND, 0)
        const times: number[] = []
        let now = 0
        for (const gap of gaps) {
          now += gap
          if (bucket.take(now).isAllowed) times.push(now)
        }
        for (let from = 0; from < times.length; from++) {
          for (let to = from; to < times.length; to++) {
            const room = 10 + (times[to]! - times[from]!) / 100
            assert.ok(to - from + 1 <= room + 1e-6, `${to - from + 1} in ${times[to]! - times[from]!} ms`)
          }
        }
      }),
    )
  })

  test('a clock that is set back neither fills nor empties it', () => {
    const bucket = new TokenBucket(TEN_A_SECOND, 10_000)
    passed(bucket, 10, 10_000)
    assert.equal(passed(bucket, 1, 0), 0)
    assert.equal(passed(bucket, 3, 100), 1)
  })
})
