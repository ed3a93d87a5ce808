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

interface Pressure {
  waiting: number
  busyShare: number
}

const BURST: Pressure = { waiting: 25, busyShare: 0.5 }
const CALM: Pressure = { waiting: 24, busyShare: 1 }

/** Started, with time standing still. */
async function start(t: TestContext, index: IndexStore, pressure = BURST): Promise<Running> {
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
    waiting: () => pressure.waiting,
    busyShare: () => pressure.busyShare,
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
    await pass(6000)
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
  const { results } = await start(t, index, CALM)
  assert.deepEqual(index.limits, [{ ...LIMITS, isUrgent: false, isLast: false, stepsAtOnce: 4 }])
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
  const { indexer, settle, pass } = await start(t, index, CALM)
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

/** Far behind, unless `result` says otherwise; each of its steps takes so many ms, and meanwhile messages come in. */
class FloodedIndex extends ScriptedIndex {
  tookMs: number
  result: IndexStepResult
  onStep: () => void = () => {}

  constructor(tookMs: number, result = LAGGING) {
    super()
    this.tookMs = tookMs
    this.result = result
  }

  override async step(limits: IndexLimits): Promise<IndexStepResult> {
    await super.step(limits)
    this.onStep()
    await new Promise((resolve) => setTimeout(resolve, this.tookMs))
    return this.result
  }
}

async function startFlooded(t: TestContext, index: FloodedIndex, pressure = BURST): Promise<Running> {
  const running = await start(t, index, pressure)
  index.onStep = () => running.indexer.wake()
  running.indexer.wake()
  return running
}

test('while messages come in it works for a fifth of a second, and rests for a look', async (t) => {
  const index = new FloodedIndex(100)
  const pressure = { ...CALM }
  const { pass } = await startFlooded(t, index, pressure)
  await pass(350)
  assert.deepEqual(
    index.limits.map(({ isLast }) => isLast),
    [false, false, true],
  )
  Object.assign(pressure, BURST)
  await pass(500)
  assert.equal(index.steps, 3)
})

test('a crowd that stands before its first step is reason enough for a look', async (t) => {
  const index = new FloodedIndex(100)
  const { pass } = await startFlooded(t, index)
  await pass(850)
  assert.equal(index.steps, 1)
})

test('in a burst it then rests forty-nine times as long as a step took', async (t) => {
  const index = new FloodedIndex(50)
  const { pass } = await startFlooded(t, index)
  await pass(350)
  const { steps } = index
  await pass(2300)
  assert.equal(index.steps, steps)
  await pass(400)
  assert.equal(index.steps, steps + 1)
  assert.equal(index.limits.at(-1)?.isLast, true, 'and again after each step')
  assert.equal(index.limits.at(-1)?.stepsAtOnce, 1, 'which are short')
  await pass(2300)
  assert.equal(index.steps, steps + 1)
})

test('as long as after a whole step, where the last one had few rows', async (t) => {
  const index = new FloodedIndex(40)
  const pressure = { ...CALM }
  const { pass } = await startFlooded(t, index, pressure)
  await pass(1000)
  index.result = { ...NEARLY_DONE, indexed: 1 }
  index.tookMs = 5
  Object.assign(pressure, BURST)
  await pass(3000)
  const { steps } = index
  await pass(4000)
  assert.ok(
    index.steps - steps <= 2,
    `${index.steps - steps} steps in four seconds: forty-nine times 40 ms between them`,
  )
})

test('for five seconds at most', async (t) => {
  const index = new FloodedIndex(500)
  const { pass } = await startFlooded(t, index)
  await pass(550)
  const { steps } = index
  await pass(4900)
  assert.equal(index.steps, steps)
  await pass(500)
  assert.equal(index.steps, steps + 1)
})

for (const [load, pressure] of [
  ['under a steady load, of which little waits while the index rests', CALM],
  ['where messages wait for a slow disk', { waiting: 500, busyShare: 0.4 }],
] as const) {
  test(`${load}, it goes on after a look, for longer each time`, async (t) => {
    const index = new FloodedIndex(100)
    const { pass } = await startFlooded(t, index, pressure)
    await pass(10_000)
    assert.ok(index.steps >= 85, `${index.steps} steps of 100 ms in ten seconds`)
  })
}

test('what came while it worked, and crowds in as it rests, is no burst: it goes on, for longer each time', async (t) => {
  const index = new FloodedIndex(100)
  const pressure = { ...BURST }
  const { indexer, pass } = await startFlooded(t, index, pressure)
  let steppedAt = 0
  index.onStep = () => {
    indexer.wake()
    steppedAt = performance.now()
    pressure.waiting = BURST.waiting
  }
  for (let ms = 0; ms < 20_000; ms += 5) {
    await pass(5)
    if (performance.now() - steppedAt > 300) pressure.waiting = 5
  }
  assert.ok(index.steps >= 150, `${index.steps} steps of 100 ms in twenty seconds`)
})

for (const [waves, waveMs, isSilent] of [
  ['with lulls in it', 2000, false],
  ['in waves', 1000, true],
] as const) {
  test(`a burst ${waves} is one, also after a steady load`, async (t) => {
    const index = new FloodedIndex(50)
    const pressure = { waiting: 5, busyShare: 1 }
    const { indexer, pass } = await startFlooded(t, index, pressure)
    await pass(10_000)
    const { steps } = index
    for (let wave = 0; wave < 10; wave++) {
      Object.assign(pressure, BURST)
      index.onStep = () => indexer.wake()
      indexer.wake()
      await pass(waveMs)
      pressure.waiting = 0
      if (isSilent) index.onStep = () => {}
      await pass(400)
    }
    const share = ((index.steps - steps) * 50) / (10 * (waveMs + 400))
    assert.ok(share < 0.5, `it worked for ${Math.round(100 * share)} % of the time, lulls of 400 ms included`)
  })
}

test('a burst is over when little waits for a quarter of a second', async (t) => {
  const index = new FloodedIndex(100)
  const pressure = { ...BURST }
  const { pass } = await startFlooded(t, index, pressure)
  await pass(2000)
  const { steps } = index
  pressure.waiting = 5
  await pass(500)
  assert.equal(index.limits.at(steps)?.isLast, false, 'no look after its first step')
  await pass(2000)
  assert.ok(index.steps > steps + 14, `${index.steps - steps} steps of 100 ms in two seconds and a half`)
})

test('a moment in which nothing waits is used, and does not end it', async (t) => {
  const index = new FloodedIndex(100)
  const pressure = { ...BURST }
  const { pass } = await startFlooded(t, index, pressure)
  await pass(2000)
  const { steps } = index
  pressure.waiting = 0
  await pass(300)
  Object.assign(pressure, BURST)
  await pass(3000)
  assert.ok(index.steps <= steps + 4, `${index.steps - steps} steps`)
})

test('somebody who waits for the index cuts that short', async (t) => {
  const index = new FloodedIndex(100)
  const { indexer, settle, pass } = await startFlooded(t, index)
  await pass(1500)
  const { steps } = index
  indexer.hurry()
  await settle()
  assert.equal(index.steps, steps + 1)
  assert.equal(index.limits.at(-1)?.isUrgent, true)
})

test('somebody who waits during the first look only puts it off', async (t) => {
  const index = new FloodedIndex(100)
  const { indexer, pass } = await startFlooded(t, index)
  await pass(200)
  assert.equal(index.steps, 1)
  indexer.hurry()
  await pass(50)
  assert.equal(index.steps, 2, 'the step that was asked for')
  await pass(2000)
  assert.ok(index.steps <= 4, `${index.steps} steps: there is a burst as before`)
})

test('somebody who waits for the index again and again does not end the burst', async (t) => {
  const index = new FloodedIndex(20)
  const pressure = { waiting: 5, busyShare: 1 }
  const { indexer, pass } = await startFlooded(t, index, pressure)
  await pass(7000)
  Object.assign(pressure, BURST)
  await pass(4000)
  const { steps } = index
  for (let n = 0; n < 20; n++) {
    await pass(300)
    indexer.hurry()
  }
  assert.ok(index.steps - steps <= 45, `${index.steps - steps} steps in six seconds, 20 of them asked for`)
})

test('it stops at once in a burst', async (t) => {
  const index = new FloodedIndex(100)
  const { indexer, settle, pass } = await startFlooded(t, index)
  await pass(1500)
  assert.ok(await isSettled(indexer.stop(), settle))
})

for (const lag of [500, 2_000_000]) {
  test(`with ${lag} rows that nobody may take yet it does not try without a rest`, async (t) => {
    const index = new FloodedIndex(0, { ...LAGGING, lag, indexed: 0 })
    const { pass } = await startFlooded(t, index)
    await pass(1000)
    assert.ok(index.steps > 2 && index.steps <= 21, `${index.steps} steps in a second`)
  })
}

test('two million rows behind it takes all the time there is', async (t) => {
  const index = new FloodedIndex(100, { ...LAGGING, lag: 2_000_001 })
  const { pass } = await startFlooded(t, index)
  await pass(5000)
  assert.ok(index.steps >= 49, `${index.steps} steps of 100 ms in five seconds`)
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
  const never = new Indexer({ index: new ScriptedIndex(), limits: LIMITS, onTrouble: () => {}, waiting: () => 0 })
  await never.stop()
})
