import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BodyMemory } from '../../../../src/http/wire/body-memory.ts'

const KIB = 1024

test('the first 64 KiB of each body are not counted, for any number of bodies', () => {
  const memory = new BodyMemory(1024)
  for (let n = 0; n < 1000; n++) assert.ok(memory.newReservation().growTo(64 * KIB))
  assert.equal(memory.bytes, 0)
})

test('bytes of a body beyond 64 KiB are counted once and released once', () => {
  const memory = new BodyMemory(1024 * KIB)
  const body = memory.newReservation()
  for (const size of [16, 65, 128, 128, 320]) assert.ok(body.growTo(size * KIB))
  assert.equal(memory.bytes, 256 * KIB)
  body.release()
  body.release()
  assert.equal(memory.bytes, 0)
})

test('a body that does not fit is refused and reserves nothing', () => {
  const memory = new BodyMemory(100 * KIB)
  const [first, second] = [memory.newReservation(), memory.newReservation()]
  assert.ok(first.growTo(124 * KIB))
  assert.ok(second.growTo(104 * KIB))
  assert.equal(second.growTo(105 * KIB), false)
  assert.equal(memory.bytes, 100 * KIB)
  first.release()
  assert.ok(second.growTo(105 * KIB))
})

test('the only body may grow beyond the limit', () => {
  const memory = new BodyMemory(KIB)
  const body = memory.newReservation()
  assert.ok(body.growTo(500 * KIB))
  assert.ok(body.growTo(1000 * KIB))
  assert.equal(memory.newReservation().growTo(65 * KIB), false)
})
