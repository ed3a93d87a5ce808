import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type Job, WriterQueue } from '../../../../src/store/sqlite/writer-queue.ts'

const SMALL_LAG = 1000
const LARGE_LAG = 1001
/** A time at which nothing was appended for long. */
const QUIET = 1e9

let seq = 0
function job(name: Job['name']): Job {
  seq += 1
  return { seq, name, args: name === 'append' ? [{ cells: [], bytes: new Uint8Array(10) }] : [] }
}

function fill(...names: Job['name'][]): WriterQueue {
  const queue = new WriterQueue()
  for (const name of names) queue.push(job(name))
  return queue
}

function drain(queue: WriterQueue, lag: number, now = QUIET): string[] {
  const names: string[] = []
  for (let next = queue.next(lag, now); next.length > 0; next = queue.next(lag, now))
    names.push(next.map(({ name }) => name).join('+'))
  return names
}

/** Both lanes always have work; returns the share of time that indexing got. */
function shareOfIndexing(queue: WriterQueue, totalMs: number, appendMs: number, stepMs: number, lag: number): number {
  let appending = 0
  let indexing = 0
  let now = 0
  queue.push(job('append'))
  queue.push(job('indexStep'))
  while (appending + indexing < totalMs) {
    const [next] = queue.next(lag, now)
    assert.ok(next)
    const ms = next.name === 'append' ? appendMs : stepMs
    if (next.name === 'append') appending += ms
    else indexing += ms
    now += ms
    queue.ran([next], ms, lag, now)
    queue.push(job(next.name))
  }
  return indexing / (appending + indexing)
}

describe('the writer’s queue', () => {
  test('is empty at first and after the last job', () => {
    const queue = new WriterQueue()
    assert.ok(queue.isEmpty)
    assert.deepEqual(queue.next(0, QUIET), [])
    queue.push(job('append'))
    assert.ok(!queue.isEmpty)
    queue.next(0, QUIET)
    assert.ok(queue.isEmpty)
  })

  test('takes control first, then intake, then indexing', () => {
    const queue = fill('indexStep', 'append', 'setTokenActive', 'append', 'probe')
    assert.deepEqual(drain(queue, 0), ['setTokenActive', 'probe', 'append+append', 'indexStep'])
  })

  test('takes jobs of one kind in their order', () => {
    const queue = new WriterQueue()
    const jobs = Array.from({ length: 5 }, () => job('probe'))
    for (const one of jobs) queue.push(one)
    for (const one of jobs) assert.deepEqual(queue.next(0, QUIET), [one])
  })

  test('takes all appends that are waiting together, in their order', () => {
    const queue = new WriterQueue()
    const jobs = Array.from({ length: 5 }, () => job('append'))
    for (const one of jobs) queue.push(one)
    assert.deepEqual(queue.next(0, QUIET), jobs)
    assert.ok(queue.isEmpty)
  })

  test('bounds what goes into one commit, but always takes one', () => {
    const queue = new WriterQueue()
    const large = { cells: [], bytes: new Uint8Array(10 * 1024 * 1024) }
    for (let n = 0; n < 3; n += 1) queue.push({ seq: n, name: 'append', args: [large] })
    assert.deepEqual(
      [queue.next(0, QUIET), queue.next(0, QUIET), queue.next(0, QUIET)].map((jobs) => jobs.length),
      [1, 1, 1],
    )
  })

  test('lets processing and intake take turns, and indexing where there is no intake', () => {
    const queue = fill('claim', 'ack', 'append', 'claim', 'indexStep')
    assert.deepEqual(drain(queue, SMALL_LAG), ['claim', 'append', 'ack', 'indexStep', 'claim'])
  })

  test('lets notes wait for intake, but not for ever', () => {
    const queue = fill('addRefusals')
    for (let turn = 1; turn < 50; turn += 1) {
      queue.push(job('append'))
      assert.equal(queue.next(0, QUIET)[0]?.name, 'append', `turn ${turn}`)
    }
    queue.push(job('append'))
    assert.equal(queue.next(0, QUIET)[0]?.name, 'addRefusals')
  })

  test('leaves indexing to the gaps while the lag is small', () => {
    const queue = new WriterQueue()
    assert.equal(shareOfIndexing(queue, 10_000, 5, 5, SMALL_LAG), 0)
  })

  test('lets the indexer wait until intake has been quiet for a moment, and says how long', () => {
    const queue = fill('indexStep')
    queue.ran([job('indexStep')], 1, SMALL_LAG, 999)
    queue.ran([job('append')], 1, SMALL_LAG, 1000)
    assert.deepEqual(queue.next(SMALL_LAG, 1001), [])
    assert.equal(queue.pauseMs(1001), 4)
    queue.push(job('append'))
    assert.equal(queue.next(SMALL_LAG, 1002)[0]?.name, 'append')
    queue.ran([job('append')], 1, SMALL_LAG, 1003)
    assert.deepEqual(queue.next(SMALL_LAG, 1007), [])
    assert.equal(queue.next(SMALL_LAG, 1008)[0]?.name, 'indexStep')
    assert.ok(queue.isEmpty)
  })

  test('does not let the indexer wait for longer than its patience, nor processing behind it', () => {
    const queue = fill('indexStep')
    queue.ran([job('indexStep')], 1, SMALL_LAG, 1000)
    for (let now = 1001; now < 1050; now += 3) {
      queue.ran([job('append')], 1, SMALL_LAG, now)
      assert.deepEqual(queue.next(SMALL_LAG, now), [], `at ${now}`)
      queue.push(job('ack'))
      assert.equal(queue.next(SMALL_LAG, now)[0]?.name, 'ack')
    }
    queue.ran([job('append')], 1, SMALL_LAG, 1050)
    assert.equal(queue.next(SMALL_LAG, 1050)[0]?.name, 'indexStep')
  })

  for (const [appendMs, stepMs] of [
    [5, 5],
    [1, 50],
    [50, 1],
    [0.3, 12],
    [20, 20],
  ] as const) {
    test(`gives a late indexer 30 % of the time: appends of ${appendMs} ms, steps of ${stepMs} ms`, () => {
      const share = shareOfIndexing(new WriterQueue(), 20_000, appendMs, stepMs, LARGE_LAG)
      assert.ok(share >= 0.295, `the indexer got ${share}`)
      assert.ok(share <= 0.35, `intake got only ${1 - share}`)
    })
  }

  test('does not hold the time against the indexer that it had while intake was idle', () => {
    const queue = new WriterQueue()
    for (let count = 0; count < 1000; count += 1) {
      const step = job('indexStep')
      queue.push(step)
      assert.deepEqual(queue.next(LARGE_LAG, QUIET), [step])
      queue.ran([step], 10, LARGE_LAG, 0)
    }
    const share = shareOfIndexing(queue, 4000, 5, 5, LARGE_LAG)
    assert.ok(share >= 0.27, `the indexer got ${share}`)
  })

  test('does not let an indexer that had nothing to do save up time', () => {
    const queue = new WriterQueue()
    for (let count = 0; count < 1000; count += 1) {
      const append = job('append')
      queue.push(append)
      assert.deepEqual(queue.next(LARGE_LAG, QUIET), [append])
      queue.ran([append], 10, LARGE_LAG, 0)
    }
    const share = shareOfIndexing(queue, 2000, 5, 5, LARGE_LAG)
    assert.ok(share <= 0.5, `intake got only ${1 - share}`)
  })

  test('starts anew when the lag was small in between', () => {
    const queue = new WriterQueue()
    shareOfIndexing(queue, 1000, 5, 50, LARGE_LAG)
    assert.equal(shareOfIndexing(queue, 1000, 5, 5, SMALL_LAG) < 0.2, true)
  })
})
