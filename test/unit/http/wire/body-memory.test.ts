import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BodyMemory } from '../../../../src/http/wire/body-memory.ts'

const KIB = 1024

test('the first 64 KiB of each body are not counted, for any number of bodies', () => {
  const memory = new BodyMemory(1024)
  for (let n = 0; n < 1000; n++) assert.ok(memory.newReservation('a').growTo(64 * KIB))
  assert.equal(memory.bytes, 0)
})

test('bytes of a body beyond 64 KiB are counted once and released once', () => {
  const memory = new BodyMemory(1024 * KIB)
  const body = memory.newReservation('a')
  for (const size of [16, 65, 128, 128, 320]) assert.ok(body.growTo(size * KIB))
  assert.equal(memory.bytes, 256 * KIB)
  body.release()
  body.release()
  assert.equal(memory.bytes, 0)
})

test('a body beyond the share of its tenant is refused and reserves nothing; that of another tenant is taken', () => {
  const memory = new BodyMemory(100 * KIB)
  const [first, second, other] = ['a', 'a', 'b'].map((tenant) => memory.newReservation(tenant))
  assert.ok(first!.growTo((64 + 40) * KIB))
  assert.ok(second!.growTo((64 + 10) * KIB))
  assert.equal(second!.growTo((64 + 11) * KIB), false)
  assert.equal(memory.bytes, 50 * KIB)
  assert.ok(other!.growTo((64 + 25) * KIB))
  assert.equal(other!.growTo((64 + 26) * KIB), false)
  first!.release()
  assert.ok(second!.growTo((64 + 30) * KIB))
})

test('300 half-sent bodies of one tenant leave room for a body of another', () => {
  const memory = new BodyMemory(256 * 1024 * KIB)
  const taken = Array.from({ length: 300 }, () => memory.newReservation('greedy')).filter((body) =>
    body.growTo(1024 * KIB),
  )
  assert.ok(taken.length > 100 && taken.length < 150, `${taken.length} bodies`)
  assert.ok(memory.newReservation('other').growTo(900 * KIB))
})

test('the only body may grow beyond the limit', () => {
  const memory = new BodyMemory(KIB)
  const body = memory.newReservation('a')
  assert.ok(body.growTo(500 * KIB))
  assert.ok(body.growTo(1000 * KIB))
  assert.equal(memory.newReservation('a').growTo(65 * KIB), false)
})
