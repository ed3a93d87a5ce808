import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BodyMemory } from '../../../../src/http/wire/body-memory.ts'

const KIB = 1024

test('the first 64 KiB of each body are not counted, however many there are', () => {
  const receiving = new BodyMemory(1024)
  for (let n = 0; n < 1000; n++) assert.ok(receiving.begin().grow(64 * KIB))
  assert.equal(receiving.bytes, 0)
})

test('what a body takes beyond that is counted once, and given back once', () => {
  const receiving = new BodyMemory(1024 * KIB)
  const share = receiving.begin()
  for (const size of [16, 65, 128, 128, 320]) assert.ok(share.grow(size * KIB))
  assert.equal(receiving.bytes, 256 * KIB)
  share.end()
  share.end()
  assert.equal(receiving.bytes, 0)
})

test('what does not fit is refused, and takes nothing', () => {
  const receiving = new BodyMemory(100 * KIB)
  const [first, second] = [receiving.begin(), receiving.begin()]
  assert.ok(first.grow(124 * KIB))
  assert.ok(second.grow(104 * KIB))
  assert.equal(second.grow(105 * KIB), false)
  assert.equal(receiving.bytes, 100 * KIB)
  first.end()
  assert.ok(second.grow(105 * KIB))
})

test('one that is alone may go on, however large it is', () => {
  const receiving = new BodyMemory(KIB)
  const share = receiving.begin()
  assert.ok(share.grow(500 * KIB))
  assert.ok(share.grow(1000 * KIB))
  assert.equal(receiving.begin().grow(65 * KIB), false)
})
