// A step works on a few rows or a part of one at a time, so that the main thread can take in requests in between. Counted in
// bytes and in turns, not in time.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createSha256 } from '../../../../src/model/dedupe.ts'
import { derive, type JournalRow } from '../../../../src/model/index-step.ts'
import { readingOf } from '../../../../src/model/payload-reading.ts'
import { deriveInTurns, inTurns, TURN_BYTES } from '../../../../src/store/postgres/index/turns.ts'

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

const NO_RECIPES = () => null

function rowOf(id: number, text: string): JournalRow {
  const payload = Buffer.from(text)
  return {
    id,
    kind: 'event',
    revises: null,
    accountId: 7,
    companyId: 42,
    receivedAt: 1_000_000,
    channelRef: null,
    channelKey: null,
    erasedAt: null,
    size: payload.length,
    sha256: Uint8Array.from(createSha256()(payload)),
    keyId: 'AAAAAAAAAA',
    scope: 'cf',
    requestId: 'r',
    contentType: 'application/json',
    recipe: null,
    payload,
  }
}

/** Turns of the event loop that begin while the rows are derived. */
async function turnsFor(rows: readonly JournalRow[], extractBytes?: number): Promise<number> {
  let turns = 0
  let immediate: NodeJS.Immediate
  const nextTurn = () => {
    turns += 1
    immediate = setImmediate(nextTurn)
  }
  immediate = setImmediate(nextTurn)
  assert.deepEqual(
    await deriveInTurns(rows, NO_RECIPES, extractBytes),
    rows.map((row) => derive(row, readingOf(row, NO_RECIPES, extractBytes))),
  )
  clearImmediate(immediate)
  return turns
}

test('one payload larger than a turn is scanned in several, and gives the same', async () => {
  const text = 'x'.repeat(TURN_BYTES * 3)
  const large = rowOf(1, JSON.stringify({ nested: JSON.parse('['.repeat(5000) + ']'.repeat(5000)), message: { text } }))
  assert.ok((await turnsFor([large])) >= 3)
  const [small, broken, damaged] = [rowOf(2, '{"message":{"text":"a"}}'), rowOf(3, '{"a":'), rowOf(4, '{}')]
  const erased = { ...rowOf(5, '{}'), payload: null }
  assert.ok((await turnsFor([small, large, broken, { ...damaged, sha256: small.sha256 }, erased, large])) >= 6)
  assert.equal(await turnsFor([small, broken, erased]), 0, 'the control: small ones take no turn')
})

test('of a payload no more is looked at than the limit, however much follows', async () => {
  const nested = rowOf(1, `{"meta":${'['.repeat(500_000)}${']'.repeat(500_000)}}`)
  assert.equal(await turnsFor([nested, nested, nested], TURN_BYTES / 4), 0)
  assert.ok((await turnsFor([nested])) >= 14, 'the control: without a limit it takes a turn for each 64 KiB')
})
