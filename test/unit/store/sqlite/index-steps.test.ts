// Who waits for whom in a step of the index: filing goes ahead, but only so far, and not into a rest.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { IndexLimits } from '../../../../src/store/contract/indexing.ts'
import { createIndexSteps } from '../../../../src/store/sqlite/index-steps.ts'
import type { Executor, IndexOperations, Operations } from '../../../../src/store/sqlite/operations.ts'

const SLICE = 128
const LIMITS: IndexLimits = { maxRows: 2 * SLICE, maxBytes: 1e6 }
const RESULT = { indexed: 1, unindexed: 0, cursor: 1, lag: 0, clearing: false }

/** Two threads: one that files so many rows that have arrived, and one that answers a step when it is told to. */
class Threads {
  arrived: number
  filed = 0
  indexed = 0
  failure: Error | null = null
  readonly jobs: string[] = []
  #held: PromiseWithResolvers<void> | null = null

  constructor(arrived: number) {
    this.arrived = arrived
  }

  hold(): void {
    this.#held = Promise.withResolvers()
  }

  release(): void {
    this.#held?.resolve()
    this.#held = null
  }

  readonly writer = {
    run: async (name: string, [rows]: [number]) => {
      this.jobs.push(name)
      if (this.failure) throw this.failure
      const taken = Math.min(rows, this.arrived - this.filed)
      this.filed += taken
      return { rows: taken, hasMore: this.filed < this.arrived }
    },
  } as unknown as Executor<Operations>

  readonly indexer = {
    run: async () => {
      this.indexed += 1
      await this.#held?.promise
      return RESULT
    },
  } as unknown as Executor<IndexOperations>
}

/** Until everything has happened that does not wait for the indexer. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve))
}

test('while one step is indexed four more are filed, and no more', async () => {
  const threads = new Threads(1_000_000)
  const { step } = createIndexSteps(threads.writer, threads.indexer)
  threads.hold()
  const first = step(LIMITS)
  await settled()
  assert.equal(threads.indexed, 1)
  assert.equal(threads.filed, 5 * LIMITS.maxRows)
  threads.release()
  await first
  threads.hold()
  const second = step(LIMITS)
  await settled()
  assert.equal(threads.filed, 6 * LIMITS.maxRows, 'each step makes room for one')
  threads.release()
  await second
})

test('nothing is begun behind the last step before a rest, and what was begun is taken by the steps after it', async () => {
  const threads = new Threads(1_000_000)
  const { step } = createIndexSteps(threads.writer, threads.indexer)
  await step({ ...LIMITS, isLast: true })
  await settled()
  assert.equal(threads.filed, LIMITS.maxRows)
  await step(LIMITS)
  await settled()
  const ahead = threads.filed
  for (let n = 0; n < 4; n++) await step({ ...LIMITS, isLast: true })
  await settled()
  assert.equal(threads.filed, ahead)
  await step({ ...LIMITS, isLast: true })
  assert.equal(threads.filed, ahead + LIMITS.maxRows)
})

test('what arrives after all was filed is filed by the next step', async () => {
  const threads = new Threads(3 * SLICE)
  const { step } = createIndexSteps(threads.writer, threads.indexer)
  await step(LIMITS)
  await step(LIMITS)
  await settled()
  assert.equal(threads.filed, 3 * SLICE)
  threads.arrived += SLICE
  await step(LIMITS)
  assert.equal(threads.filed, 4 * SLICE)
})

test('where filing fails, what is filed is indexed, the step says so, and the next one tries again', async () => {
  const threads = new Threads(1_000_000)
  const { step, settled: stepsSettled } = createIndexSteps(threads.writer, threads.indexer)
  threads.hold()
  const first = step(LIMITS)
  await settled()
  threads.failure = new Error('the disk is full')
  threads.release()
  await first
  // What was filed ahead is taken before the failure is met.
  for (let n = 0; n < 4; n++) await step(LIMITS)
  await assert.rejects(step(LIMITS), /the disk is full/)
  assert.equal(threads.indexed, 6)
  await stepsSettled()
  threads.failure = null
  const { filed } = threads
  await step({ ...LIMITS, isLast: true })
  assert.equal(threads.filed, filed + LIMITS.maxRows)
})

test('whoever waits is filed for at once, also by what was begun before', async () => {
  const threads = new Threads(1_000_000)
  const { step } = createIndexSteps(threads.writer, threads.indexer)
  await step({ ...LIMITS, isLast: true })
  assert.deepEqual(new Set(threads.jobs.splice(0)), new Set(['file']))
  await step({ ...LIMITS, isLast: true, isUrgent: true })
  assert.deepEqual(new Set(threads.jobs), new Set(['fileNow']))
})
