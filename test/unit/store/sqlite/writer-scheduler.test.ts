import assert from 'node:assert/strict'
import { setImmediate } from 'node:timers/promises'
import { describe, test } from 'node:test'
import { type WriterJob, WriterQueue } from '../../../../src/store/sqlite/threads/writer-queue.ts'
import { WriterScheduler } from '../../../../src/store/sqlite/threads/writer-scheduler.ts'
import { until } from '../../../support/until.ts'

function append(seq: number): WriterJob {
  return { seq, name: 'append', args: [{ metas: '[]', payloads: new Uint8Array(10) }] }
}

function start() {
  const queue = new WriterQueue()
  const ran: number[][] = []
  let hasEnded = false
  const scheduler = new WriterScheduler({
    queue,
    execute: (jobs) => ran.push(jobs.map(({ seq }) => seq)),
    onEnd: () => (hasEnded = true),
  })
  return { queue, ran, scheduler, hasEnded: () => hasEnded }
}

describe('the scheduler of the writer', () => {
  test('what arrives in one turn is run together, in the next', async () => {
    const { ran, scheduler } = start()
    scheduler.push(append(1))
    scheduler.push(append(2))
    assert.deepEqual(ran, [])
    await setImmediate()
    assert.deepEqual(ran, [[1, 2]])
  })

  test('after a slow commit it waits for more, and runs what is there when none comes', async () => {
    const { queue, ran, scheduler } = start()
    const ranBefore: number[] = []
    queue.pause = () => [5, 0][ranBefore.push(ran.length) - 1]!
    scheduler.push(append(1))
    await until('it goes on alone', () => ran.length > 0)
    assert.deepEqual(ranBefore, [0, 0], 'it waits once')
    assert.deepEqual(ran, [[1]])
  })

  test('after a slow commit those it waited for are run at once, together', async () => {
    const { queue, ran, scheduler } = start()
    // So that the wait cannot be over by itself.
    queue.committed(2, 200, performance.now() + 3_600_000)
    scheduler.push(append(1))
    await setImmediate()
    scheduler.push(append(2))
    await setImmediate()
    assert.deepEqual(ran, [[1, 2]])
  })

  test('the end waits for nobody, and comes after what was pushed before', async () => {
    const { queue, ran, scheduler, hasEnded } = start()
    queue.committed(2, 200, performance.now() + 3_600_000)
    scheduler.push(append(1))
    await setImmediate()
    scheduler.end()
    await setImmediate()
    assert.deepEqual(ran, [[1]])
    assert.ok(hasEnded())
  })
})
