import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { StoreFailure } from '../../../../src/store/contract/failure.ts'
import { ReaderScheduler } from '../../../../src/store/sqlite/threads/reader-scheduler.ts'

/** Runs jobs that note each of their steps. */
function setUp() {
  const steps: string[] = []
  const scheduler = new ReaderScheduler()
  let seq = 0
  const run = (holder: string, name: string, length: number) =>
    scheduler.run(seq++, holder, async (turn) => {
      for (let n = 1; n <= length; n++) {
        if (n > 1) await turn()
        steps.push(`${name}.${n}`)
      }
      return name
    })
  return { steps, scheduler, run }
}

test('tenants take turns step by step, so that a long job delays another tenant by one step', async () => {
  const { steps, run, scheduler } = setUp()
  const jobs = [run('greedy', 'a', 3), run('greedy', 'b', 2), run('modest', 'c', 2)]
  assert.equal(scheduler.size, 3)
  assert.deepEqual(await Promise.all(jobs), ['a', 'b', 'c'])
  assert.deepEqual(steps, ['a.1', 'c.1', 'a.2', 'c.2', 'a.3', 'b.1', 'b.2'])
  assert.equal(scheduler.size, 0)
})

test('control: without a turn between its steps, a job delays another tenant by all of them', async () => {
  const { steps, scheduler } = setUp()
  const greedy = scheduler.run(1, 'greedy', () => steps.push('a.1', 'a.2', 'a.3'))
  const modest = scheduler.run(2, 'modest', () => steps.push('c.1'))
  await Promise.all([greedy, modest])
  assert.deepEqual(steps, ['a.1', 'a.2', 'a.3', 'c.1'])
})

test('a cancelled job ends before its next step, and one that waits never begins', async () => {
  const { steps, run, scheduler } = setUp()
  const running = run('a', 'running', 1000)
  const waiting = run('a', 'waiting', 1)
  for (const job of [running, waiting]) job.catch(() => {})
  while (steps.length === 0) await nextTurn()
  const done = steps.length
  scheduler.cancel(0)
  scheduler.cancel(1)
  const isGone = (error: unknown) => error instanceof StoreFailure && error.kind === 'unavailable'
  await assert.rejects(running, isGone)
  await assert.rejects(waiting, isGone)
  assert.equal(steps.length, done)
  assert.equal(scheduler.size, 0)
})

test('cancelling a job that is over, or that never was, changes nothing', async () => {
  const { run, scheduler } = setUp()
  assert.equal(await run('a', 'first', 1), 'first')
  scheduler.cancel(0)
  scheduler.cancel(99)
  assert.equal(await run('a', 'second', 2), 'second')
})

test('a job that fails is reported to its caller, and the others go on', async () => {
  const { run, scheduler } = setUp()
  const failing = scheduler.run(7, 'a', () => {
    throw new Error('no such table')
  })
  const other = run('a', 'other', 2)
  await assert.rejects(failing, /no such table/)
  assert.equal(await other, 'other')
})
