import assert from 'node:assert/strict'
import test from 'node:test'
import type { AppendOutcome } from '../../../../src/store/contract/append.ts'
import { Hope } from '../../../../src/store/postgres/hope.ts'

const stored: AppendOutcome = { outcome: 'stored', id: 1 }

/** How many batches of 20 are stored with a look at each message, before there is hope again. */
function carefulBatches(hope: Hope): number {
  for (let batches = 0; ; batches++) if (hope.allows(20)) return batches
}

test('there is hope for a batch as long as all were new', () => {
  const hope = new Hope()
  for (let n = 0; n < 100; n++) {
    assert.equal(hope.allows(20), true)
    hope.learn([stored, stored])
  }
})

test('there is none for a few messages', () => {
  const hope = new Hope()
  assert.deepEqual(
    [1, 7, 8].map((messages) => hope.allows(messages)),
    [false, false, true],
  )
})

for (const outcome of ['duplicate', 'conflict'] as const) {
  test(`after a ${outcome} there is none for 64 batches, whatever came with it`, () => {
    const hope = new Hope()
    hope.learn([stored, { outcome, id: 1 }, stored])
    assert.equal(carefulBatches(hope), 64)
    assert.equal(carefulBatches(hope), 0)
  })
}

test('a further one begins the 64 anew, and small batches do not count', () => {
  const hope = new Hope()
  hope.learn([{ outcome: 'duplicate', id: 1 }])
  for (let n = 0; n < 40; n++) hope.allows(20)
  for (let n = 0; n < 40; n++) hope.allows(2)
  hope.learn([stored])
  hope.learn([{ outcome: 'duplicate', id: 1 }])
  assert.equal(carefulBatches(hope), 64)
})

test('a message that failed says nothing about the others', () => {
  const hope = new Hope()
  hope.learn([{ outcome: 'failed', reason: 'too odd' }, stored])
  assert.equal(carefulBatches(hope), 0)
})
