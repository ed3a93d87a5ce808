// The indexer as a running part: when it steps, when it rests, and that it stops.

import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { Indexer } from '../../../src/indexing/indexer.ts'
import type { IndexLimits, IndexStepResult, IndexStore, WordLimits } from '../../../src/store/contract/indexing.ts'

const LIMITS: IndexLimits = { maxRows: 10, maxBytes: 1000 }
const WORD_LIMITS: WordLimits = { maxRows: 5, maxBytes: 500, maxWords: 3 }
const IDLE: IndexStepResult = {
  cursor: 9,
  lag: 0,
  searchable: 9,
  searchLag: 0,
  clearing: false,
  indexed: 0,
  unindexed: 0,
  unreadable: 0,
  more: false,
}
const LAGGING: IndexStepResult = { ...IDLE, lag: 500, indexed: 10, more: true }
const NEARLY_DONE: IndexStepResult = { ...IDLE, lag: 3, indexed: 10 }
const STUCK: IndexStepResult = { ...IDLE, lag: 500 }
/** Entries are done, words are not. */
const UNSEARCHABLE: IndexStepResult = { ...IDLE, searchable: 4, searchLag: 5 }
/** Neither is. */
const BEHIND: IndexStepResult = { ...LAGGING, searchable: 4, searchLag: 505 }
const CLEARING: IndexStepResult = { ...IDLE, clearing: true, more: true }

type Answer = IndexStepResult | Error | Promise<IndexStepResult>

/** An index that answers its steps from a list, and is idle after it. */
class ScriptedIndex implements IndexStore {
  readonly limits: IndexLimits[] = []
  /** The time by its clock, which each step moves by `stepMs`. */
  now = 0
  stepMs = 2
  /** What came when: e for entries, w for words. */
  order = ''
  /** Words steps that leave words; after them there are none. */
  wordSteps = 0
  readonly #answers: Answer[]

  constructor(...answers: Answer[]) {
    this.#answers = answers
  }

  get steps(): number {
    return this.limits.length
  }

  async step(limits: IndexLimits): Promise<IndexStepResult> {
    this.limits.push(limits)
    this.order += 'e'
    this.now += this.stepMs
    const answer = this.#answers.shift() ?? IDLE
    if (answer instanceof Error) throw answer
    return answer
  }

  async stepWords(limits: WordLimits): Promise<IndexStepResult> {
    assert.deepEqual(limits, WORD_LIMITS)
    this.order += 'w'
    this.now += this.stepMs
    return this.wordSteps-- > 0 ? { ...UNSEARCHABLE, more: true } : IDLE
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

/** How many messages wait for the disk. */
interface Intake {
  waiting: number
}

/** Started, with time standing still but for the steps. */
async function start(t: TestContext, index: ScriptedIndex, intake: Intake = { waiting: 0 }): Promise<Running> {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  t.mock.method(performance, 'now', () => index.now)
  const results: IndexStepResult[] = []
  const troubles: unknown[][] = []
  const indexer = new Indexer({
    index,
    limits: LIMITS,
    wordLimits: WORD_LIMITS,
    onStep: (result) => results.push(result),
    onTrouble: (...trouble) => troubles.push(trouble),
    waiting: () => intake.waiting,
  })
  const settle = async (): Promise<void> => {
    for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setImmediate(resolve))
  }
  const pass = async (ms: number): Promise<void> => {
    for (let passed = 0; passed < ms; passed += 1) {
      index.now += 1
      t.mock.timers.tick(1)
      await settle()
    }
  }
  t.after(() => indexer.stop())
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
  const { results, pass } = await start(t, index)
  assert.deepEqual(index.limits, [LIMITS])
  assert.deepEqual(results, [IDLE])
  await pass(900)
  assert.equal(index.steps, 1)
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
  for (let n = 0; n < 100; n++) indexer.wake()
  await pass(7)
  assert.equal(index.steps, 2, 'it pauses for four times what the step took')
  await pass(1)
  assert.equal(index.steps, 3)
})

test('a hint that comes during a step is not lost', async (t) => {
  const { promise, resolve } = Promise.withResolvers<IndexStepResult>()
  const index = new ScriptedIndex(promise)
  const { indexer, settle, pass } = await start(t, index)
  indexer.wake()
  await settle()
  assert.equal(index.steps, 1, 'one step at a time')
  resolve(IDLE)
  await settle()
  await pass(20)
  assert.equal(index.steps, 2)
})

test('without any hint it looks after a second', async (t) => {
  const index = new ScriptedIndex()
  const { pass } = await start(t, index)
  await pass(1100)
  assert.equal(index.steps, 2)
})

test('it steps on without a pause while rows are left and no message waits', async (t) => {
  const index = new ScriptedIndex(LAGGING, LAGGING, LAGGING, LAGGING, NEARLY_DONE)
  await start(t, index)
  assert.equal(index.steps, 5)
})

test('while messages wait for the disk it works a fifth of the time', async (t) => {
  const index = new ScriptedIndex(...Array.from({ length: 100 }, () => LAGGING))
  const { pass } = await start(t, index, { waiting: 1 })
  assert.equal(index.steps, 1)
  await pass(8 * 10)
  assert.equal(index.steps, 11)
  assert.equal(index.now, 8 * 10 + 2 * 11)
})

test('when the messages stop it goes on at once', async (t) => {
  const index = new ScriptedIndex(...Array.from({ length: 10 }, () => LAGGING))
  const intake = { waiting: 5 }
  const { pass } = await start(t, index, intake)
  intake.waiting = 0
  await pass(8)
  assert.equal(index.steps, 11)
})

test('when it could not keep up for two seconds it pauses no more, until nothing is left', async (t) => {
  const index = new ScriptedIndex(...Array.from({ length: 300 }, () => LAGGING), NEARLY_DONE, LAGGING)
  const { indexer, pass } = await start(t, index, { waiting: 1000 })
  await pass(8 * 199)
  assert.equal(index.steps, 200, 'a step of 2 ms every 10 ms')
  await pass(8)
  assert.equal(index.steps, 301, 'two seconds have passed: the rest without a pause')
  indexer.wake()
  await pass(8)
  assert.equal(index.steps, 302, 'and then it goes as before')
  await pass(7)
  assert.equal(index.steps, 302)
})

test('a reader that waits for the index cuts its pause short, for one step', async (t) => {
  const index = new ScriptedIndex(...Array.from({ length: 10 }, () => LAGGING))
  const { indexer, settle } = await start(t, index, { waiting: 1 })
  for (let n = 2; n <= 4; n++) {
    indexer.hurry()
    await settle()
    assert.equal(index.steps, n)
  }
})

test('a reader that waits wakes it from its wait', async (t) => {
  const index = new ScriptedIndex()
  const { indexer, settle, pass } = await start(t, index)
  await pass(100)
  indexer.hurry()
  await settle()
  assert.equal(index.steps, 2)
})

test('words come after the entries, a step at a time, and entries are looked for between two of them', async (t) => {
  const index = new ScriptedIndex(...Array.from({ length: 5 }, () => UNSEARCHABLE))
  index.wordSteps = 3
  await start(t, index)
  assert.equal(index.order, 'ewewewew', 'the last one left none, so the loop waits')
})

test('where no words are left there is no step for them', async (t) => {
  const index = new ScriptedIndex(LAGGING, LAGGING, NEARLY_DONE)
  await start(t, index)
  assert.equal(index.order, 'eee')
})

test('while entries are left, every fourth round has a step for words: search does not stand still', async (t) => {
  const index = new ScriptedIndex(...Array.from({ length: 12 }, () => BEHIND))
  index.wordSteps = 100
  await start(t, index)
  assert.match(index.order, /^eeeeweeeeweeeew/)
})

test('while messages wait for the disk, so has every fourth round, even if no entries are left', async (t) => {
  const index = new ScriptedIndex(...Array.from({ length: 100 }, () => UNSEARCHABLE))
  index.wordSteps = 100
  const intake = { waiting: 1 }
  const { settle, pass } = await start(t, index, intake)
  await pass(3 * 8)
  assert.equal(index.order, 'eeeew')
  intake.waiting = 0
  await pass(16)
  await settle()
  assert.match(index.order, /^eeeew(ew){50}/, 'when they stop, words follow without a pause')
})

test('a search that waits gets a step for words in the next round, however busy it is', async (t) => {
  const index = new ScriptedIndex(...Array.from({ length: 100 }, () => BEHIND))
  index.wordSteps = 100
  const { indexer, settle } = await start(t, index, { waiting: 1 })
  assert.equal(index.order, 'e')
  indexer.hurry('words')
  await settle()
  assert.equal(index.order, 'eew')
  indexer.hurry()
  await settle()
  assert.equal(index.order, 'eewe', 'a reader of a list hurries the entries alone')
})

test('a rebuild is carried out without a pause', async (t) => {
  const index = new ScriptedIndex(CLEARING, CLEARING, CLEARING, LAGGING, IDLE)
  await start(t, index)
  assert.equal(index.steps, 5)
})

test('rows that it cannot reach yet do not make it spin', async (t) => {
  const index = new ScriptedIndex(LAGGING, ...Array.from({ length: 100 }, () => STUCK))
  const { pass } = await start(t, index)
  assert.equal(index.steps, 2)
  await pass(900)
  assert.equal(index.steps, 2)
})

test('a step that had to wait for long does not make it pause for long', async (t) => {
  const index = new ScriptedIndex(NEARLY_DONE)
  index.stepMs = 2000
  const { indexer, pass } = await start(t, index)
  indexer.wake()
  await pass(999)
  assert.equal(index.steps, 1)
  await pass(1)
  assert.equal(index.steps, 2)
})

test('a step that failed is told and tried again after a second, whoever waits', async (t) => {
  const failure = new Error('the disk is full')
  const index = new ScriptedIndex(failure)
  const { indexer, troubles, pass, settle } = await start(t, index)
  assert.deepEqual(troubles, [['index the journal', failure]])
  indexer.hurry()
  await settle()
  await pass(990)
  assert.equal(index.steps, 1)
  await pass(10)
  assert.ok(index.steps > 1)
})

test('it stops while it waits, and while it pauses', async (t) => {
  for (const [answer, waiting] of [
    [IDLE, 0],
    [LAGGING, 9],
  ] as const) {
    const index = new ScriptedIndex(answer)
    const { indexer, settle } = await start(t, index, { waiting })
    assert.ok(await isSettled(indexer.stop(), settle))
    t.mock.timers.reset()
    t.mock.restoreAll()
  }
})

test('it stops after a step that failed, without waiting for the next try', async (t) => {
  const { indexer, settle } = await start(t, new ScriptedIndex(new Error('gone')))
  assert.ok(await isSettled(indexer.stop(), settle))
})

test('a step that is under way is finished before it stops', async (t) => {
  const underWay = Promise.withResolvers<IndexStepResult>()
  const { indexer, results, settle } = await start(t, new ScriptedIndex(underWay.promise))
  const stopped = indexer.stop()
  assert.equal(await isSettled(stopped, settle), false)
  underWay.resolve(LAGGING)
  await stopped
  assert.deepEqual(results, [LAGGING])
})

test('stopping twice, or what was never started, is fine', async (t) => {
  const { indexer } = await start(t, new ScriptedIndex())
  await Promise.all([indexer.stop(), indexer.stop()])
  await indexer.stop()
  const options = { limits: LIMITS, wordLimits: WORD_LIMITS, onTrouble: () => {}, waiting: () => 0 }
  const never = new Indexer({ index: new ScriptedIndex(), ...options })
  await never.stop()
})

test('who waits for a step learns of the next one that indexed anything, or that the time is over', async (t) => {
  const { indexer, settle, pass } = await start(t, new ScriptedIndex(IDLE, IDLE, NEARLY_DONE))
  const watched = indexer.stepped(1000)
  indexer.wake()
  assert.equal(await isSettled(watched, settle), false, 'a step that found nothing')
  indexer.hurry()
  await pass(20)
  indexer.wake()
  assert.equal(await isSettled(watched, settle), true)
  const late = indexer.stepped(30)
  assert.equal(await isSettled(late, settle), false)
  await pass(30)
  assert.equal(await isSettled(late, settle), true)
})
