// The indexer as a running part: when it steps, when it rests, and that it stops.

import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { Indexer } from '../../../src/indexing/indexer.ts'
import type { IndexLimits, IndexStepResult, IndexStore } from '../../../src/store/contract/indexing.ts'

const LIMITS: IndexLimits = { maxRows: 10, maxBytes: 1000 }
const IDLE: IndexStepResult = { cursor: 9, lag: 0, clearing: false, indexed: 0, unindexed: 0 }
const LAGGING: IndexStepResult = { ...IDLE, lag: 500, indexed: 10 }
const NEARLY_DONE: IndexStepResult = { ...IDLE, lag: 3, indexed: 10 }
const CLEARING: IndexStepResult = { ...IDLE, clearing: true }

type Answer = IndexStepResult | Error | Promise<IndexStepResult>

/** An index that answers its steps from a list, and is idle after it. */
class ScriptedIndex implements IndexStore {
  readonly limits: IndexLimits[] = []
  readonly #answers: Answer[]

  constructor(...answers: Answer[]) {
    this.#answers = answers
  }

  get steps(): number {
    return this.limits.length
  }

  async step(limits: IndexLimits): Promise<IndexStepResult> {
    this.limits.push(limits)
    const answer = this.#answers.shift() ?? IDLE
    if (answer instanceof Error) throw answer
    return answer
  }

  async progress(): Promise<IndexStepResult> {
    return IDLE
  }

  async pruneTraffic(): Promise<void> {}

  async requestRebuild(): Promise<void> {}
}

interface Running {
  readonly indexer: Indexer
  readonly results: IndexStepResult[]
  readonly troubles: unknown[][]
  /** Lets everything happen that needs no time to pass. */
  settle(): Promise<void>
  /** Lets this much time pass, a little at a time. */
  pass(ms: number): Promise<void>
}

/** Started, with time standing still. */
async function start(t: TestContext, index: IndexStore, busyShare = 1): Promise<Running> {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  let now = 0
  t.mock.method(performance, 'now', () => now)
  const results: IndexStepResult[] = []
  const troubles: unknown[][] = []
  const indexer = new Indexer({
    index,
    limits: LIMITS,
    onStep: (result) => results.push(result),
    onTrouble: (...trouble) => troubles.push(trouble),
    busyShare: () => busyShare,
  })
  const settle = async (): Promise<void> => {
    for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setImmediate(resolve))
  }
  const pass = async (ms: number): Promise<void> => {
    for (let passed = 0; passed < ms; passed += 5) {
      now += 5
      t.mock.timers.tick(5)
      await settle()
    }
  }
  t.after(async () => {
    const stopped = indexer.stop()
    await pass(2000)
    await stopped
  })
  indexer.start()
  await settle()
  return { indexer, results, troubles, settle, pass }
}

async function isSettled(promise: Promise<unknown>, settle: () => Promise<void>): Promise<boolean> {
  let settled = false
  void promise.finally(() => {
    settled = true
  })
  await settle()
  return settled
}

test('it steps once at the start, with the limits it was given, and then waits', async (t) => {
  const index = new ScriptedIndex()
  const { results } = await start(t, index)
  assert.deepEqual(index.limits, [{ ...LIMITS, isUrgent: false }])
  assert.deepEqual(results, [IDLE])
})

test('on an idle server a hint is followed at once', async (t) => {
  const index = new ScriptedIndex()
  const { indexer, settle, pass } = await start(t, index)
  for (let n = 2; n <= 5; n++) {
    await pass(100)
    indexer.wake()
    await settle()
    assert.equal(index.steps, n)
  }
})

test('many hints in a short time are one step, so that it takes many rows', async (t) => {
  const index = new ScriptedIndex()
  const { indexer, settle, pass } = await start(t, index)
  await pass(100)
  for (let n = 0; n < 100; n++) indexer.wake()
  await settle()
  assert.equal(index.steps, 2)
  for (let n = 0; n < 100; n++) {
    indexer.wake()
    await settle()
  }
  assert.ok(index.steps <= 3, `${index.steps} steps while no time passed`)
  await pass(100)
  assert.ok(index.steps <= 4 && index.steps >= 3, 'what the hints told of is looked at')
})

test('a hint that comes during a step is not lost', async (t) => {
  const { promise, resolve } = Promise.withResolvers<IndexStepResult>()
  const index = new ScriptedIndex(promise)
  const { indexer, settle, pass } = await start(t, index)
  indexer.wake()
  await settle()
  assert.equal(index.steps, 1, 'one step at a time')
  resolve(IDLE)
  await pass(200)
  assert.equal(index.steps, 2)
})

test('without a hint it looks now and then, and never in a loop', async (t) => {
  const index = new ScriptedIndex()
  const { pass } = await start(t, index)
  await pass(10_000)
  assert.ok(index.steps > 1, 'a lost hint is made good')
  assert.ok(index.steps <= 12, `${index.steps} steps in ten idle seconds`)
})

test('while it is far behind, or emptying for a rebuild, it steps without a rest', async (t) => {
  const index = new ScriptedIndex(CLEARING, CLEARING, CLEARING, LAGGING, LAGGING, LAGGING)
  const { results } = await start(t, index)
  assert.equal(index.steps, 7)
  assert.deepEqual(results.at(-1), IDLE)
})

test('when less than a batch is left it rests a moment, so that the next step takes more', async (t) => {
  const index = new ScriptedIndex(NEARLY_DONE, NEARLY_DONE)
  const { indexer, settle, pass } = await start(t, index)
  assert.equal(index.steps, 1)
  for (let n = 0; n < 50; n++) indexer.wake()
  await settle()
  assert.equal(index.steps, 1, 'hints do not cut the rest short')
  await pass(200)
  assert.ok(index.steps >= 3, 'it goes on by itself')
})

/** A step of this many ms during which, and after which, messages come in; then the number of steps after so much time. */
async function stepsInBurst(
  t: TestContext,
  took: number,
  then: number,
  result: IndexStepResult,
  { asked = false, busyShare = 1 } = {},
): Promise<number> {
  const first = Promise.withResolvers<IndexStepResult>()
  const endless = Promise.withResolvers<IndexStepResult>()
  t.after(() => endless.resolve(IDLE))
  const index = new ScriptedIndex(first.promise, endless.promise)
  const { indexer, settle, pass } = await start(t, index, busyShare)
  indexer.wake()
  await pass(took)
  first.resolve(result)
  await settle()
  indexer.wake()
  await pass(then)
  if (asked) indexer.hurry()
  await settle()
  return index.steps
}

test('while messages come in it rests nineteen times as long as its step took', async (t) => {
  assert.equal(await stepsInBurst(t, 100, 1890, LAGGING), 1)
})

test('and then goes on', async (t) => {
  assert.equal(await stepsInBurst(t, 100, 1910, LAGGING), 2)
})

test('for two seconds at most', async (t) => {
  assert.equal(await stepsInBurst(t, 300, 2010, LAGGING), 2)
})

test('and only where they keep the process busy', async (t) => {
  assert.equal(await stepsInBurst(t, 300, 60, LAGGING, { busyShare: 0.5 }), 2)
})

test('somebody who waits for the index cuts that short', async (t) => {
  assert.equal(await stepsInBurst(t, 300, 100, LAGGING, { asked: true }), 2)
})

test('a million rows behind it takes all the time there is', async (t) => {
  assert.equal(await stepsInBurst(t, 300, 0, { ...LAGGING, lag: 1_000_001 }), 2)
})

test('a step that fails is told and tried again after a pause', async (t) => {
  const trouble = new Error('disk full')
  const index = new ScriptedIndex(trouble, trouble, NEARLY_DONE)
  const { results, troubles, settle, pass } = await start(t, index)
  assert.equal(index.steps, 1)
  assert.deepEqual(troubles, [['index the journal', trouble]])
  await settle()
  assert.equal(index.steps, 1, 'not in a loop')
  await pass(4000)
  assert.equal(troubles.length, 2)
  assert.deepEqual(results[0], NEARLY_DONE)
  assert.deepEqual(results.at(-1), IDLE)
})

test('an index that never works is tried at a calm pace', async (t) => {
  const index = new ScriptedIndex(...new Array<Error>(10_000).fill(new Error('gone')))
  const { indexer, pass } = await start(t, index)
  for (let n = 0; n < 100; n++) {
    indexer.wake()
    await pass(50)
  }
  assert.ok(index.steps <= 12, `${index.steps} tries in five seconds`)
})

test('it stops at once while it waits, and steps no more', async (t) => {
  const index = new ScriptedIndex()
  const { indexer, settle, pass } = await start(t, index)
  assert.ok(await isSettled(indexer.stop(), settle))
  const { steps } = index
  indexer.wake()
  await pass(5000)
  assert.equal(index.steps, steps)
})

test('it waits for the step in progress when it stops', async (t) => {
  const { promise, resolve } = Promise.withResolvers<IndexStepResult>()
  const index = new ScriptedIndex(promise)
  const { indexer, settle } = await start(t, index)
  const stopped = indexer.stop()
  assert.equal(await isSettled(stopped, settle), false)
  resolve(LAGGING)
  assert.ok(await isSettled(stopped, settle))
  assert.equal(index.steps, 1, 'far behind, it stops all the same')
})

test('it does not sit out the pause after a failure when it stops', async (t) => {
  const { indexer, settle } = await start(t, new ScriptedIndex(new Error('disk full')))
  assert.ok(await isSettled(indexer.stop(), settle))
})

test('stopping twice, or what was never started, is fine', async (t) => {
  const { indexer } = await start(t, new ScriptedIndex())
  await Promise.all([indexer.stop(), indexer.stop()])
  await indexer.stop()
  const never = new Indexer({ index: new ScriptedIndex(), limits: LIMITS, onTrouble: () => {} })
  await never.stop()
})
