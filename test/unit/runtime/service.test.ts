import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PeriodicTask } from '../../../src/runtime/service.ts'
import { within } from '../../support/until.ts'

test('a task is repeated and never overlaps itself', async () => {
  let running = 0
  let overlapped = false
  let runs = 0
  const enough = Promise.withResolvers<void>()
  const repeating = new PeriodicTask(1, async () => {
    running += 1
    overlapped ||= running > 1
    await new Promise((resolve) => setImmediate(resolve))
    running -= 1
    runs += 1
    if (runs === 5) enough.resolve()
  })
  repeating.start()
  await within('five runs', enough.promise)
  await repeating.stop()
  assert.equal(overlapped, false)
})

test('stop waits for a run in progress, and there is none after it', async () => {
  let runs = 0
  const begun = Promise.withResolvers<void>()
  const gate = Promise.withResolvers<void>()
  const repeating = new PeriodicTask(1, async () => {
    begun.resolve()
    await gate.promise
    runs += 1
  })
  repeating.start()
  await within('the first run', begun.promise)
  const stopped = repeating.stop()
  assert.equal(runs, 0)
  gate.resolve()
  await within('the stop', stopped)
  assert.equal(runs, 1)
  await within('a second stop', repeating.stop())
})

test('what was never started can be stopped', async () => {
  await within('the stop', new PeriodicTask(1, async () => {}).stop())
})
