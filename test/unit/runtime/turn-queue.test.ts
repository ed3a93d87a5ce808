import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TurnQueue, type TurnQueueOptions } from '../../../src/runtime/turn-queue.ts'

const nextTurn = () => new Promise((resolve) => setImmediate(resolve))

/** Runs ten jobs of these holders, and notes which ran in which turn. `costMs`: how far each job moves the clock. */
async function turnsOf(holders: readonly string[], options: TurnQueueOptions, costMs = 0): Promise<string[][]> {
  let nowMs = 0
  const queue = new TurnQueue({ maxTurnMs: Number.POSITIVE_INFINITY, ...options, now: () => nowMs })
  const turns: string[][] = [[]]
  const job = (holder: string) => {
    turns.at(-1)!.push(holder)
    nowMs += costMs
  }
  for (const holder of holders) {
    const own = queue.of(holder)
    if (own.hasRoom()) job(holder)
    else own.runLater(() => job(holder))
  }
  while (queue.size > 0) {
    turns.push([])
    await nextTurn()
  }
  return turns
}

const TEN = Array.from({ length: 10 }, () => 'a')
const lengths = (turns: readonly string[][]) => turns.map(({ length }) => length)

test('a turn has room for so many jobs; further ones run in the next turns', async () => {
  assert.deepEqual(lengths(await turnsOf(TEN, { maxPerTurn: 3 })), [3, 3, 3, 1])
})

test('jobs that take long are fewer in a turn, at least one', async () => {
  const options = { maxPerTurn: 6, maxTurnMs: 2 }
  assert.deepEqual(lengths(await turnsOf(TEN, options, 1)), [2, 2, 2, 2, 2])
  assert.deepEqual(lengths(await turnsOf(TEN, options, 100)), [1, 1, 1, 1, 1, 1, 1, 1, 1, 1])
  assert.deepEqual(lengths(await turnsOf(TEN, options, 0)), [6, 4], 'control: jobs that take no time')
})

test('without a limit all of them would run in one turn', async () => {
  assert.deepEqual(lengths(await turnsOf(TEN, { maxPerTurn: Number.POSITIVE_INFINITY })), [10])
})

test('a holder that comes last waits for one job of each of the others, however many they have', async () => {
  const greedy = ['a', 'a', 'a', 'a', 'a', 'b', 'b', 'b']
  const order = (await turnsOf([...greedy, 'c'], { maxPerTurn: 1 })).flat().join('')
  assert.equal(order, 'aabcababa')
})

test('a new job does not overtake those that wait, and there is room again afterwards', async () => {
  const queue = new TurnQueue({ maxPerTurn: 1 })
  const [one, other] = [queue.of('one'), queue.of('other')]
  assert.ok(one.hasRoom())
  await nextTurn()
  assert.ok(one.hasRoom())
  one.runLater(() => {})
  assert.equal(other.hasRoom(), false)
  await nextTurn()
  await nextTurn()
  assert.ok(other.hasRoom())
})
