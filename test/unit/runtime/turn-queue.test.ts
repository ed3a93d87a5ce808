import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TurnQueue } from '../../../src/runtime/turn-queue.ts'

const nextTurn = () => new Promise((resolve) => setImmediate(resolve))

test('a turn has room for so many jobs; further ones run in order in the next turns', async () => {
  const queue = new TurnQueue(3)
  const ran: number[] = []
  const perTurn: number[] = []
  for (let n = 0; n < 10; n += 1) {
    if (queue.hasRoom()) ran.push(n)
    else queue.runLater(() => ran.push(n))
  }
  for (let before = 0; before < ran.length || queue.size > 0; ) {
    perTurn.push(ran.length - before)
    before = ran.length
    await nextTurn()
  }
  assert.deepEqual(perTurn, [3, 3, 3, 1])
  assert.deepEqual(ran, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
})

test('without a limit all of them would run in one turn', () => {
  const queue = new TurnQueue(Number.POSITIVE_INFINITY)
  assert.ok(Array.from({ length: 1000 }, () => queue.hasRoom()).every((hasRoom) => hasRoom))
})

test('a new job does not overtake those that wait, and there is room again afterwards', async () => {
  const queue = new TurnQueue(1)
  assert.ok(queue.hasRoom())
  await nextTurn()
  assert.ok(queue.hasRoom())
  queue.runLater(() => {})
  assert.equal(queue.hasRoom(), false)
  await nextTurn()
  await nextTurn()
  assert.ok(queue.hasRoom())
})
