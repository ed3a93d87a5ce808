import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RefusalRecorder } from '../../../src/intake/refusals.ts'
import type { Refusal } from '../../../src/model/refusal.ts'
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
    bounds: { maxCount },
    bufferMax,
    onTrouble: (doing) => troubles.push(doing),
  })
  return { recorder, batches, troubles, release: gate.resolve }
}

test('refusals that come while others are written are written together', async () => {
  const { recorder, batches, release } = setUp()
  for (const name of ['a', 'b', 'c']) recorder.record('t', async () => refusal(name))
  release()
  await within('the stop', recorder.stop())
  assert.deepEqual(batches, [['a'], ['b', 'c']])
})

test('what does not fit into the buffer is counted and let go', async () => {
  const { recorder, batches, release } = setUp({ bufferMax: 4 })
  for (const name of ['a', 'b', 'c', 'd', 'e']) recorder.record('t', async () => refusal(name))
  assert.equal(recorder.dropped, 2)
  release()
  await within('the stop', recorder.stop())
  assert.deepEqual(batches, [['a'], ['b', 'c']])
})

test('a store that fails is told to the operator, and the next are tried', async () => {
  const { recorder, batches, troubles, release } = setUp({ failing: true })
  recorder.record('t', async () => refusal('a'))
  recorder.record('t', async () => refusal('b'))
  release()
  await within('the stop', recorder.stop())
  assert.equal(batches.length, 2)
  assert.equal(troubles.length, 2)
  assert.equal(recorder.dropped, 2)
})

test('with a count of zero nothing is written', async () => {
  const { recorder, batches } = setUp({ maxCount: 0 })
  recorder.record('t', async () => refusal('a'))
  await within('the stop', recorder.stop())
  assert.deepEqual(batches, [])
})

test('a tenant that floods the buffer leaves room for others; nothing is made of what does not fit', async () => {
  const { recorder, batches, release } = setUp({ bufferMax: 16 })
  let made = 0
  recorder.record('first', async () => refusal('first'))
  for (let n = 0; n < 1000; n += 1) {
    recorder.record('greedy', async () => {
      made += 1
      return refusal('greedy')
    })
  }
  recorder.record('other', async () => refusal('other'))
  release()
  await within('the stop', recorder.stop())
  assert.ok(batches.flat().includes('other'))
  assert.equal(made, 8)
  assert.equal(recorder.dropped, 992)
})

test('no more than one refusal is made in a turn', async () => {
  const { recorder, release } = setUp({ bufferMax: 100 })
  let turn = 0
  const turns: number[] = []
  const count = () => {
    turn += 1
    if (turns.length < 20) setImmediate(count)
  }
  count()
  for (let n = 0; n < 20; n += 1) {
    recorder.record('t', async () => {
      turns.push(turn)
      return refusal('a')
    })
  }
  release()
  await within('the stop', recorder.stop())
  assert.equal(turns.length, 20)
  assert.equal(new Set(turns).size, 20)
})

test('settled waits for what was recorded before, written or dropped, and not for what comes later', async () => {
  const { recorder, batches, release } = setUp({ bufferMax: 200 })
  for (let n = 0; n < 40; n += 1) recorder.record('t', async () => refusal('before'))
  recorder.record('t', async () => {
    throw new Error('cannot be made')
  })
  let later = 0
  const settled = recorder.settled().then(() => later)
  const goOn = async () => {
    later += 1
    if (later < 500) recorder.record('t', goOn)
    return refusal('later')
  }
  recorder.record('t', goOn)
  release()
  assert.ok((await within('what was recorded before', settled)) < 100)
  assert.equal(batches.flat().filter((what) => what === 'before').length, 40)
  await within('the rest', recorder.stop())
  await within('nothing', recorder.settled())
})
