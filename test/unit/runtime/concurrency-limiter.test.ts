import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ConcurrencyLimiter } from '../../../src/runtime/concurrency-limiter.ts'

test('there are so many places, and of these a share for each', () => {
  const places = new ConcurrencyLimiter(5, 40)
  const left = [places.acquire('a'), places.acquire('a')]
  assert.ok(left.every((leave) => leave !== null))
  assert.equal(places.acquire('a'), null, 'its share is taken')
  assert.ok(places.acquire('b') && places.acquire('b') && places.acquire('c'))
  assert.equal(places.inUse, 5)
  assert.equal(places.acquire('c'), null, 'all are taken')
  left[0]!()
  left[0]!()
  assert.equal(places.inUse, 4, 'a place is left once')
  assert.ok(places.acquire('a'))
})

test('what is urgent may exceed the share, and not the number of places', () => {
  const places = new ConcurrencyLimiter(3, 34)
  assert.ok(places.acquire('a'))
  assert.equal(places.acquire('a'), null)
  assert.ok(places.acquire('a', true) && places.acquire('a', true))
  assert.equal(places.acquire('a', true), null)
})

test('everybody gets one at least, unless there is none', () => {
  assert.ok(new ConcurrencyLimiter(3, 1).acquire('a'))
  assert.equal(new ConcurrencyLimiter(0, 100).acquire('a'), null)
})
