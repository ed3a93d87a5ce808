import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RefusalRecorder } from '../../../src/intake/refusals.ts'
import type { Refusal } from '../../../src/model/refusal.ts'
import { TestClock } from '../../support/clock.ts'
import { within } from '../../support/until.ts'

function refusal(requestId: string): Refusal {
  return { requestId } as unknown as Refusal
}

function setUp(options: { bufferMax?: number; maxCount?: number; failing?: boolean } = {}) {
  const { bufferMax = 10, maxCount = 100, failing = false } = options
  const batches: string[][] = []
  const troubles: string[] = []
  const gate = Promise.withResolvers<void>()
  const recorder = new RefusalRecorder({
    store: {
      add: async (refusals) => {
        batches.push(refusals.map(({ requestId }) => requestId))
        await gate.promise
        if (failing) throw new Error('disk full')
      },
      list: async () => [],
      find: async () => null,
      accept: async () => {},
    },
    bounds: { maxCount, maxAgeMs: 1000 },
    bufferMax,
    clock: new TestClock(),
    onTrouble: (doing) => troubles.push(doing),
  })
  return { recorder, batches, troubles, release: gate.resolve }
}

test('refusals that come while others are written are written together', async () => {
  const { recorder, batches, release } = setUp()
  for (const name of ['a', 'b', 'c']) recorder.record(refusal(name))
  release()
  await within('the stop', recorder.stop())
  assert.deepEqual(batches, [['a'], ['b', 'c']])
})

test('what does not fit into the buffer is counted and let go', async () => {
  const { recorder, batches, release } = setUp({ bufferMax: 2 })
  for (const name of ['a', 'b', 'c', 'd', 'e']) recorder.record(refusal(name))
  assert.equal(recorder.dropped, 2)
  release()
  await within('the stop', recorder.stop())
  assert.deepEqual(batches, [['a'], ['b', 'c']])
})

test('a store that fails is told to the operator, and the next are tried', async () => {
  const { recorder, batches, troubles, release } = setUp({ failing: true })
  recorder.record(refusal('a'))
  recorder.record(refusal('b'))
  release()
  await within('the stop', recorder.stop())
  assert.equal(batches.length, 2)
  assert.equal(troubles.length, 2)
  assert.equal(recorder.dropped, 2)
})

test('with a count of zero nothing is written', async () => {
  const { recorder, batches } = setUp({ maxCount: 0 })
  recorder.record(refusal('a'))
  await within('the stop', recorder.stop())
  assert.deepEqual(batches, [])
})
