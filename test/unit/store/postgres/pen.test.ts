// What a node under the pen knows of its batches: the keys that are late or under way, and no other.

import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { type Entry, type Heard, Pen } from '../../../../src/store/postgres/pen.ts'

/** So many keys, from this one on. */
function keys(from: number, count: number): Buffer {
  const digests = Array.from({ length: count }, (_, n) =>
    createHash('sha256')
      .update(`${from + n}`)
      .digest(),
  )
  return Buffer.concat(digests.map((digest) => digest.subarray(0, 16)))
}

function enter(pen: Pen, batch: Buffer): Entry {
  const entry = pen.enter(batch)
  assert.ok(entry, 'it enters')
  return entry
}

/** Sends them, and hears that they are late. */
function store(pen: Pen, from: number, count: number, heard: Partial<Heard> = {}): void {
  const batch = keys(from, count)
  pen.leave(enter(pen, batch), batch, { lateFrom: from, putThrough: 0, ...heard })
}

function knows(pen: Pen, key: number): boolean {
  const entry = pen.enter(keys(key, 1))
  if (entry) pen.leave(entry, keys(key, 1), undefined)
  return entry === null
}

/** Everything that is stored was read: nothing. */
function given(): Pen {
  const pen = new Pen()
  pen.give(0)
  pen.bits.next()
  pen.bits.learn([])
  return pen
}

test('a key is known from the moment its batch enters: until it leaves, or as long as it is late', () => {
  const pen = new Pen()
  const [left, late] = [enter(pen, keys(1, 10)), enter(pen, keys(11, 10))]
  assert.deepEqual(
    [1, 10, 11, 20, 21].map((key) => knows(pen, key)),
    [true, true, true, true, false],
  )
  pen.leave(left, keys(1, 10), { lateFrom: null, putThrough: 0 })
  pen.leave(late, keys(11, 10), { lateFrom: 1, putThrough: 0 })
  assert.deepEqual(
    [1, 10, 11, 20].map((key) => knows(pen, key)),
    [false, false, true, true],
  )
})

test('a pen is let go of by a batch with a key that is known, or that it has twice, and when it is heard that it is not held', () => {
  const over = (work: (pen: Pen) => void): boolean => {
    const pen = given()
    store(pen, 1, 10)
    assert.equal(pen.overSince, null)
    work(pen)
    return pen.overSince !== null
  }
  assert.equal(
    over((pen) => assert.equal(pen.enter(keys(5, 1)), null)),
    true,
  )
  assert.equal(
    over((pen) => assert.equal(pen.enter(Buffer.concat([keys(20, 5), keys(22, 1)])), null)),
    true,
  )
  assert.equal(
    over((pen) => store(pen, 20, 5, { lateFrom: null, putThrough: null })),
    true,
  )
  assert.equal(
    over((pen) => store(pen, 20, 5)),
    false,
  )
})

test('no key is in doubt once all that are stored are read, but those, and what was sent before', () => {
  const pen = new Pen()
  assert.deepEqual(enter(pen, keys(300, 3)).doubts, [1, 2, 3], 'nothing is read yet')
  pen.give(100)
  pen.bits.next()
  const meanwhile = enter(pen, keys(200, 1))
  pen.bits.learn(Array.from({ length: 100 }, (_, n) => [1, keys(n, 1)]))
  assert.equal(pen.bits.hasMore, false)
  assert.deepEqual(enter(pen, keys(1000, 50)).doubts, [])
  for (let n = 0; n < 100; n++) assert.deepEqual(enter(pen, keys(n, 1)).doubts, [1], `${n}`)
  pen.leave(meanwhile, keys(200, 1), undefined)
  assert.deepEqual(enter(pen, Buffer.concat([keys(2000, 2), keys(200, 1)])).doubts, [3])
})

test('keys that are put are forgotten, none of a batch that is under way or behind what is put', () => {
  const pen = given()
  for (let n = 0; n < 20; n++) store(pen, 1 + n * 500, 500)
  const underWay = enter(pen, keys(10_001, 500))
  for (let n = 21; n < 40; n++) store(pen, 1 + n * 500, 500)
  // Put up to the end of the thirtieth, with the twentieth still under way.
  store(pen, 20_001, 500, { putThrough: 15_000 })
  assert.deepEqual(
    [9_999, 10_001, 10_501, 15_001].map((key) => knows(pen, key)),
    [false, true, true, true],
  )
  pen.leave(underWay, keys(10_001, 500), { lateFrom: 20_501, putThrough: 25_000 })
  assert.deepEqual(
    [10_001, 15_000, 20_500].map((key) => knows(pen, key)),
    [false, false, false],
  )
})

test('keys come late under it once it is given and all are read, as long as there are fewer than 65,536; also again', () => {
  const pen = new Pen()
  assert.equal(pen.isOpen, false)
  pen.give(0)
  pen.bits.next()
  assert.equal(pen.isOpen, false)
  pen.bits.learn([])
  for (let n = 0; n < 128; n++) {
    assert.equal(pen.isOpen, true)
    store(pen, 1 + n * 512, 512)
  }
  assert.equal(pen.isOpen, false)
  // What comes now has its keys put at once, and hears how far the filing is.
  store(pen, 100_001, 10, { lateFrom: null, putThrough: 30_000 })
  assert.equal(pen.isOpen, true)
})
