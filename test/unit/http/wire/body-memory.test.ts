import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BodyMemory } from '../../../../src/http/wire/body-memory.ts'

const KIB = 1024

test('the first 64 KiB of each body are not counted, however many there are', () => {
  const receiving = new BodyMemory(1024)
  for (let n = 0; n < 1000; n++) assert.ok(receiving.newReservation().growTo(64 * KIB))
  assert.equal(receiving.bytes, 0)
})

test('what a body takes beyond that is counted once, and given back once', () => {
  const receiving = new BodyMemory(1024 * KIB)
  const share = receiving.newReservation()
  for (const size of [16, 65, 128, 128, 320]) assert.ok(share.growTo(size * KIB))
  assert.equal(receiving.bytes, 256 * KIB)
  share.release()
  share.release()
  assert.equal(receiving.bytes, 0)
})

test('what does not fit is refused, and takes nothing', () => {
  const receiving = new BodyMemory(100 * KIB)
  const [first, second] = [receiving.newReservation(), receiving.newReservation()]
  assert.ok(first.growTo(124 * KIB))
  assert.ok(second.growTo(104 * KIB))
  assert.equal(second.growTo(105 * KIB), false)
  assert.equal(receiving.bytes, 100 * KIB)
  first.release()
  assert.ok(second.growTo(105 * KIB))
})

test('one that is alone may go on, however large it is', () => {
  const receiving = new BodyMemory(KIB)
  const share = receiving.newReservation()
  assert.ok(share.growTo(500 * KIB))
  assert.ok(share.growTo(1000 * KIB))
  assert.equal(receiving.newReservation().growTo(65 * KIB), false)
})
