// When keys are read: with a rest after each slice, as long as there is more, and not after the end.

import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { KeyReading } from '../../../../src/store/sqlite/key-reading.ts'

/** A queue that runs what it is given at once, and keys that are read in so many slices of so many ms. */
function prepare(t: TestContext, slices: number, sliceMs: number) {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  let [left, now, failures] = [slices, 0, 0]
  const stored = {
    get hasMore() {
      return left > 0
    },
    readSome() {
      now += sliceMs
      if (failures-- > 0) throw new Error('no')
      left -= 1
    },
  }
  const reading: KeyReading = new KeyReading({
    stored,
    now: () => now,
    enqueue: () => {
      reading.read()
      reading.look()
    },
  })
  return {
    reading,
    left: () => left,
    failNext: (count: number) => {
      failures = count
    },
    more: (count: number) => {
      left += count
    },
  }
}

test('it reads to the end, one slice after each rest, and again when there is more', (t) => {
  const { reading, left, more } = prepare(t, 3, 0.1)
  reading.look()
  reading.look()
  assert.equal(left(), 3)
  t.mock.timers.tick(1)
  assert.equal(left(), 2)
  t.mock.timers.tick(1)
  t.mock.timers.tick(1)
  assert.equal(left(), 0)
  more(1)
  t.mock.timers.tick(1000)
  assert.equal(left(), 1, 'nobody has looked')
  reading.look()
  t.mock.timers.tick(1)
  assert.equal(left(), 0)
})

test('the slower it is, the longer it rests', (t) => {
  const { reading, left } = prepare(t, 3, 10)
  reading.look()
  t.mock.timers.tick(1)
  assert.equal(left(), 2)
  t.mock.timers.tick(39)
  assert.equal(left(), 2)
  t.mock.timers.tick(1)
  assert.equal(left(), 1)
})

test('a rest is not cut short to whole milliseconds', (t) => {
  const { reading, left } = prepare(t, 2, 0.3)
  reading.look()
  t.mock.timers.tick(1)
  assert.equal(left(), 1)
  t.mock.timers.tick(1)
  assert.equal(left(), 1)
  t.mock.timers.tick(1)
  assert.equal(left(), 0)
})

test('a slice that failed is tried again, a minute later', (t) => {
  const { reading, left, failNext } = prepare(t, 2, 0.1)
  failNext(1)
  reading.look()
  t.mock.timers.tick(1)
  t.mock.timers.tick(59_999)
  assert.equal(left(), 2)
  t.mock.timers.tick(1)
  assert.equal(left(), 1)
  t.mock.timers.tick(1)
  assert.equal(left(), 0)
})

test('nothing is read after it was stopped, be it resting or in the queue', (t) => {
  const { reading, left } = prepare(t, 2, 0.1)
  reading.look()
  reading.stop()
  t.mock.timers.tick(1000)
  reading.read()
  reading.look()
  t.mock.timers.tick(1000)
  assert.equal(left(), 2)
})
