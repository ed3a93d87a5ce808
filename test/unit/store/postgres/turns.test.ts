// Rows are worked on a few at a time, so that the main thread can take in requests in between. Counted in bytes, not in time.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inTurns, TURN_BYTES } from '../../../../src/store/postgres/index/turns.ts'

/** The most bytes that were worked on in one turn of the event loop. */
async function mostBytesInATurn(sizes: readonly number[]): Promise<number> {
  let most = 0
  let inThisTurn = 0
  let turns: NodeJS.Immediate
  const nextTurn = () => {
    inThisTurn = 0
    turns = setImmediate(nextTurn)
  }
  nextTurn()
  const done = await inTurns(
    sizes,
    (size) => size,
    (size) => {
      inThisTurn += size
      most = Math.max(most, inThisTurn)
      return -size
    },
  )
  clearImmediate(turns!)
  assert.deepEqual(
    done,
    sizes.map((size) => -size),
  )
  return most
}

test('one turn works on its bytes and at most one row more, however many rows there are', async () => {
  const rows = Array.from({ length: 500 }, (_, n) => 1 + ((n * 7919) % 4096))
  assert.ok((await mostBytesInATurn(rows)) < TURN_BYTES + 4096)
  assert.ok(rows.reduce((sum, size) => sum + size) > 10 * TURN_BYTES, 'the control: all rows are far more')
})

test('a row larger than a turn is worked on alone', async () => {
  assert.equal(await mostBytesInATurn([TURN_BYTES * 3, 10, TURN_BYTES * 2, 10]), TURN_BYTES * 3)
  assert.equal(await mostBytesInATurn([]), 0)
})
