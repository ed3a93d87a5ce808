// The remembered keys, against a Map, with keys that want the same places.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { RecentKeys } from '../../../src/store/recent-keys.ts'

/** Keys of few homes: they stand in each other's way. */
function keyOf(n: number): Buffer {
  const key = Buffer.alloc(16)
  key.writeUInt32BE(n, 8)
  key.writeUInt32BE(n < 1000 ? (n % 7) + 1018 : (n * 2654435761) % 2 ** 32, 12)
  return key
}

test('what was added is found until it is removed, however crowded it is', () => {
  const step = fc.record({ remove: fc.boolean(), n: fc.nat(60) })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 300 }), (steps) => {
      const keys = new RecentKeys()
      const model = new Map<number, number>()
      for (const [index, { remove, n }] of steps.entries()) {
        if (!remove) {
          keys.add(keyOf(n), index + 1)
          model.set(n, index + 1)
        } else {
          keys.remove(keyOf(n), model.get(n) ?? 1)
          model.delete(n)
        }
        assert.equal(keys.size, model.size)
      }
      for (let n = 0; n <= 60; n++) assert.equal(keys.find(keyOf(n)), model.get(n) ?? 0)
    }),
  )
})

test('it grows and shrinks, and loses nothing', () => {
  const keys = new RecentKeys()
  for (let n = 1; n <= 20_000; n++) keys.add(keyOf(n), n)
  for (let n = 1; n <= 20_000; n++) assert.equal(keys.find(keyOf(n)), n)
  for (let n = 1; n <= 19_990; n++) keys.remove(keyOf(n), n)
  assert.equal(keys.size, 10)
  for (let n = 1; n <= 20_000; n++) assert.equal(keys.find(keyOf(n)), n > 19_990 ? n : 0)
})

for (const through of [0, 1, 500, 19_000, 19_999, 20_000]) {
  test(`those of 20,000 that are up to ${through} are forgotten, and the others found`, () => {
    const keys = new RecentKeys()
    for (let n = 1; n <= 20_000; n++) keys.add(keyOf(n), n)
    keys.forgetThrough(through)
    assert.equal(keys.size, 20_000 - through)
    for (let n = 1; n <= 20_000; n++) assert.equal(keys.find(keyOf(n)), n > through ? n : 0)
    for (let n = 1; n <= 3000; n++) keys.add(keyOf(n), 30_000 + n)
    for (let n = 1; n <= 3000; n++) assert.equal(keys.find(keyOf(n)), 30_000 + n)
  })
}

test('a key that stands under another id is not removed', () => {
  const keys = new RecentKeys()
  keys.add(keyOf(1), 5)
  keys.remove(keyOf(1), 4)
  assert.equal(keys.find(keyOf(1)), 5)
})
