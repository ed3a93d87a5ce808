import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { startTimeLimit } from '../../../src/runtime/time-limit.ts'

function started(t: TestContext, ms: number) {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const limit = { isOver: false, end: () => {} }
  limit.end = startTimeLimit(ms, () => {
    limit.isOver = true
  })
  const run = (runMs: number) => {
    for (let n = 0; n < runMs; n++) t.mock.timers.tick(1)
  }
  return { limit, run, standStill: (stillMs: number) => t.mock.timers.tick(stillMs) }
}

test('a limit is over after its time, and not before', (t) => {
  const { limit, run } = started(t, 1000)
  run(999)
  assert.equal(limit.isOver, false)
  run(1)
  assert.equal(limit.isOver, true)
})

test('time in which the process stood still is a tenth of the limit, however long it was', (t) => {
  const { limit, run, standStill } = started(t, 1000)
  standStill(60_000)
  run(899)
  assert.equal(limit.isOver, false)
  run(1)
  assert.equal(limit.isOver, true)
})

test('a limit that was ended is never over', (t) => {
  const { limit, run } = started(t, 1000)
  run(500)
  limit.end()
  run(5000)
  assert.equal(limit.isOver, false)
})
