// Who waits for whom in a step of the index: filing goes ahead, but only so far, and not into a rest.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { IndexLimits } from '../../../../src/store/contract/indexing.ts'
import { createIndexSteps } from '../../../../src/store/sqlite/index-steps.ts'
import type { Executor, IndexOperations, Operations } from '../../../../src/store/sqlite/operations.ts'

const SLICE = 128
const LIMITS: IndexLimits = { maxRows: 2 * SLICE, maxBytes: 1e6, stepsAtOnce: 4 }
const LAST: IndexLimits = { ...LIMITS, stepsAtOnce: 1, isLast: true }
const RESULT = { unindexed: 0, cursor: 1, lag: 0, clearing: false }

/** Something that is waited for until it is let go. */
class Gate {
  #held: PromiseWithResolvers<void> | null = null

  hold(): void {
    this.#held = Promise.withResolvers()
  }

  release(): void {
    this.#held?.resolve()
    this.#held = null
  }

  pass(): Promise<void> {
    return this.#held?.promise ?? Promise.resolve()
  }
}

/** Two threads: one that files what has arrived, and one that indexes what is filed. Each does its next job only if it is not held. */
class Threads {
  arrived: number
  filed = 0
  indexed = 0
  steps = 0
  failure: Error | null = null
  readonly filing = new Gate()
  readonly indexing = new Gate()
  readonly jobs: string[] = []

  constructor(arrived: number) {
    this.arrived = arrived
  }

  readonly writer = {
    run: async (name: string, [rows]: [number]) => {
      this.jobs.push(name)
      await this.filing.pass()
      if (this.failure) throw this.failure
      const taken = Math.min(rows, this.arrived - this.filed)
      this.filed += taken
      return { rows: taken, hasMore: this.filed < this.arrived }
    },
  } as unknown as Executor<Operations>

  readonly indexer = {
    run: async (_name: string, [{ maxRows, stepsAtOnce = 1 }]: [IndexLimits]) => {
      this.steps += 1
      await this.indexing.pass()
      const indexed = Math.min(stepsAtOnce * maxRows, this.filed - this.indexed)
      this.indexed += indexed
      return { ...RESULT, indexed }
    },
  } as unknown as Executor<IndexOperations>
}

/** A moment, in which a slice may be filed. */
const turn = (): Promise<void> => new Promise((resolve) => queueMicrotask(resolve))

/** Until everything has happened that waits for nobody who is held. */
async function quiet(): Promise<void> {
  for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve))
}

test('where rows lie ready four steps are indexed as one, and meanwhile as many more are filed', async () => {
  const threads = new Threads(1_000_000)
  const { step } = createIndexSteps(threads.writer, threads.indexer)
  for (let n = 0; n < 3; n++) {
    threads.indexing.hold()
    const running = step(LIMITS)
    await quiet()
    assert.equal(threads.steps, n + 1)
    assert.equal(threads.filed, (4 * n + 8) * LIMITS.maxRows)
    threads.indexing.release()
    await running
    assert.equal(threads.indexed, 4 * (n + 1) * LIMITS.maxRows)
  }
})

test('the last step before a rest takes its own rows, however many lie ready', async () => {
  const threads = new Threads(1_000_000)
  const { step } = createIndexSteps(threads.writer, threads.indexer)
  await step(LIMITS)
  await quiet()
  const { indexed } = threads
  await step(LAST)
  assert.equal(threads.indexed, indexed + LIMITS.maxRows)
})

test('a step begins as soon as it has its rows', async () => {
  const threads = new Threads(1_000_000)
  const { step } = createIndexSteps(threads.writer, threads.indexer)
  threads.indexing.hold()
  const first = step(LIMITS)
  await quiet()
  threads.filing.hold()
  threads.indexing.release()
  await first
  // Nothing more is filed, and the rows of four steps lie ready.
  await step(LIMITS)
  assert.equal(threads.indexed, 8 * LIMITS.maxRows)
  const waiting = step(LAST)
  await quiet()
  assert.equal(threads.steps, 2, 'the next has to wait')
  threads.filing.release()
  await waiting
  assert.equal(threads.indexed, 9 * LIMITS.maxRows)
})

test('with the last step before a rest filing ends, behind the slice that is under way', async () => {
  const threads = new Threads(1_000_000)
  const { step } = createIndexSteps(threads.writer, threads.indexer)
  threads.indexing.hold()
  const first = step(LIMITS)
  while (threads.filed < LIMITS.maxRows) await turn()
  threads.filing.hold()
  threads.indexing.release()
  await first
  const last = step(LAST)
  await quiet()
  const before = threads.filed
  threads.filing.release()
  await last
  await quiet()
  assert.ok(threads.filed - before <= LIMITS.maxRows, `${threads.filed - before} rows were filed for nobody`)
  const rested = threads.filed
  await quiet()
  assert.equal(threads.filed, rested)
})

test('what arrives after all was filed is filed by the next step', async () => {
  const threads = new Threads(3 * SLICE)
  const { step } = createIndexSteps(threads.writer, threads.indexer)
  await step(LIMITS)
  await step(LIMITS)
  assert.equal(threads.indexed, 3 * SLICE)
  threads.arrived += SLICE
  await step(LIMITS)
  assert.equal(threads.indexed, 4 * SLICE)
})

test('what somebody else has indexed does not keep more from being filed', async () => {
  const threads = new Threads(1_000_000)
  const { step } = createIndexSteps(threads.writer, threads.indexer)
  await step(LIMITS)
  await quiet()
  threads.indexed = threads.filed
  const { filed } = threads
  await step(LAST)
  await step(LAST)
  assert.equal(threads.filed, filed + LIMITS.maxRows)
})

test('where filing fails, what is filed is indexed, the step says so, and the next one tries again', async () => {
  const threads = new Threads(1_000_000)
  const { step } = createIndexSteps(threads.writer, threads.indexer)
  await step(LAST)
  threads.failure = new Error('the disk is full')
  await assert.rejects(step(LIMITS), /the disk is full/)
  assert.equal(threads.steps, 2)
  threads.failure = null
  await step(LAST)
  assert.equal(threads.indexed, 2 * LIMITS.maxRows)
})

test('a failure between two steps is told by the next one', async () => {
  const threads = new Threads(1_000_000)
  const { step } = createIndexSteps(threads.writer, threads.indexer)
  threads.indexing.hold()
  const first = step(LIMITS)
  while (threads.filed < LIMITS.maxRows) await turn()
  threads.failure = new Error('the disk is full')
  await quiet()
  threads.indexing.release()
  await first
  threads.failure = null
  await assert.rejects(step(LIMITS), /the disk is full/)
  await step(LIMITS)
})

test('whoever waits is filed for at once, also by what was begun before', async () => {
  const threads = new Threads(1_000_000)
  const { step } = createIndexSteps(threads.writer, threads.indexer)
  threads.filing.hold()
  const first = step(LIMITS)
  await quiet()
  const second = step({ ...LIMITS, isUrgent: true })
  await quiet()
  threads.filing.release()
  await Promise.all([first, second])
  await quiet()
  const [begun, ...others] = threads.jobs
  assert.equal(begun, 'file')
  assert.deepEqual(new Set(others), new Set(['fileNow']))
})

test('whoever closes waits for the slice that is under way, and nothing is begun after it', async () => {
  const threads = new Threads(1_000_000)
  const { step, settled } = createIndexSteps(threads.writer, threads.indexer)
  await step(LIMITS)
  threads.filing.hold()
  await quiet()
  const begun = threads.jobs.length
  let isSettled = false
  const closing = settled().then(() => {
    isSettled = true
  })
  await quiet()
  assert.equal(isSettled, false)
  threads.filing.release()
  await closing
  await quiet()
  assert.equal(threads.jobs.length, begun)
})
