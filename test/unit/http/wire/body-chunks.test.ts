import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { BodyChunks } from '../../../../src/http/wire/body-chunks.ts'
import type { BodyReservation } from '../../../../src/http/wire/body-memory.ts'

const KIB = 1024

/** Notes what is reserved, up to the limit. */
function reservation(limit = Number.POSITIVE_INFINITY) {
  const noted = { reserved: 0 }
  const growTo = (size: number) => {
    if (size > limit) return false
    noted.reserved = size
    return true
  }
  return Object.assign(noted, { growTo, release: () => {} }) satisfies BodyReservation
}

/** With memory of its own. */
const large = (length = 64 * KIB) => randomBytes(length)

test('chunks of all sizes are joined in their order, up to a limit', () => {
  const sizes = [5, 70_000, 1, 1, 16 * KIB, 16 * KIB - 1, 40_000, 0, 20_000, 3]
  const whole = randomBytes(sizes.reduce((sum, size) => sum + size, 0))
  for (const limit of [whole.length, 100_000, 3, 0]) {
    const chunks = new BodyChunks(null)
    let at = 0
    for (const size of sizes) {
      const part = whole.subarray(at, at + size)
      // Some have memory of their own, as from a socket, others are a part of a larger buffer.
      assert.ok(chunks.add(size % 2 === 0 ? Buffer.from(new Uint8Array(part).buffer) : part))
      at += size
    }
    assert.equal(chunks.size, whole.length)
    assert.deepEqual(chunks.take(limit), whole.subarray(0, limit))
    assert.equal(chunks.count, 0, 'the chunks are not kept')
  }
  assert.equal(new BodyChunks(null).take(0).length, 0)
})

test('a body of one chunk is that chunk', () => {
  const chunk = large()
  const chunks = new BodyChunks(null)
  chunks.add(chunk)
  assert.equal(chunks.take(chunk.length).buffer, chunk.buffer)
})

test('large chunks are kept and reserve what they are: nothing is copied before the end', () => {
  const held = reservation()
  const chunks = new BodyChunks(held)
  for (let n = 1; n <= 16; n += 1) {
    chunks.add(large())
    assert.equal(chunks.count, n)
    assert.equal(held.reserved, n * 64 * KIB)
  }
})

test('100,000 chunks of one byte leave few buffers, of twice their size at most', () => {
  const held = reservation()
  const chunks = new BodyChunks(held)
  const byte = Buffer.from('x')
  for (let n = 0; n < 100_000; n += 1) chunks.add(byte)
  assert.ok(chunks.count < 10, `${chunks.count} buffers`)
  assert.ok(held.reserved < 200_000, `${held.reserved} bytes`)
})

test('small parts of large buffers do not keep those in memory', () => {
  const held = reservation()
  const chunks = new BodyChunks(held)
  for (let n = 0; n < 100; n += 1) chunks.add(large().subarray(0, 20 * KIB))
  assert.equal(held.reserved, 100 * 20 * KIB)
})

test('small chunks between large ones count with the memory that they take', () => {
  const held = reservation()
  const chunks = new BodyChunks(held)
  for (let n = 0; n < 10; n += 1) {
    chunks.add(large(16 * KIB))
    chunks.add(Buffer.from('x'))
  }
  assert.equal(held.reserved, 20 * 16 * KIB)
})

test('a chunk for which there is no room is not added', () => {
  const chunks = new BodyChunks(reservation(130 * KIB))
  assert.ok(chunks.add(large()))
  assert.ok(chunks.add(large()))
  assert.equal(chunks.add(large()), false)
  assert.equal(chunks.size, 128 * KIB)
  assert.equal(chunks.add(Buffer.from('x')), false)
  assert.equal(chunks.take(128 * KIB).length, 128 * KIB)
})
