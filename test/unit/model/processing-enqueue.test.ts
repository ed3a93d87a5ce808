// Enqueueing events and leasing them at once, and the progress of a claim.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Delivery, handOut, newDelivery } from '../../../src/model/processing.ts'
import { ClaimProgress, planEnqueue } from '../../../src/model/processing-enqueue.ts'
import type { ClaimOrder, IndexedEvent, LaneState, Question } from '../../../src/model/processing-plan.ts'

const NOW = 1000
const lease = (expiresAt: number, ordered = false) => ({ id: 'lease', expiresAt, ordered, keyId: 'key' })
const leasedAt = (eventId: number, expiresAt: number): Delivery =>
  handOut(newDelivery(eventId, 1, NOW), lease(expiresAt))

const ORDER: ClaimOrder = {
  now: NOW,
  lease: lease(2000, true),
  lane: null,
  limit: 3,
  maxBytes: 1000,
  atLeastOne: true,
  maxAttempts: 5,
}

const event = (eventId: number, conversationId: number | null = null, size = 10): IndexedEvent => {
  return { eventId, isEvent: true, conversationId, size }
}

/** What a plan asks for and writes, with these entries in the index and these lanes busy. */
function enqueueOf(found: readonly IndexedEvent[], busy: readonly number[] = [], order = ORDER) {
  const plan = planEnqueue(10, order)
  const asked = new Map<string, unknown>()
  let step = plan.next()
  while (!step.done) {
    const { name, ask } = step.value as Question
    asked.set(name, ask)
    step = plan.next(name === 'indexed' ? found : name === 'take' ? idleOf(ask.lanes, busy) : undefined)
  }
  const ids = (name: 'leased' | 'waiting') =>
    ((asked.get('enqueue') as Record<string, readonly Delivery[]> | undefined)?.[name] ?? []).map(
      ({ eventId }) => eventId,
    )
  return { result: step.value, asked, leased: ids('leased'), waiting: ids('waiting') }
}

function idleOf(lanes: readonly LaneState[], busy: readonly number[]): number[] {
  return lanes.flatMap(({ lane }) => (busy.includes(lane) ? [] : [lane]))
}

test('what is new in a lane that is new or idle is handed out at once, heads first, as far as there is room', () => {
  const { result, asked, leased, waiting } = enqueueOf([event(1, 1), event(2, 1), event(3, 3), event(4), event(5, 3)])
  assert.deepEqual(leased, [1, 3, 4])
  assert.deepEqual(waiting, [2, 5])
  assert.deepEqual([result.rows, result.bytes, result.isFull], [5, 30, true])
  assert.deepEqual(asked.get('setEnqueuedUpTo'), { enqueuedUpTo: 5 })
  const held = { readyAt: 2000, openAt: null, held: 1 }
  assert.deepEqual(asked.get('take'), {
    lanes: [
      { lane: 1, head: 1, ...held },
      { lane: 3, head: 3, ...held },
      { lane: 4, head: 4, ...held },
    ],
    ordered: true,
    beside: [],
  })
  assert.deepEqual((asked.get('enqueue') as { behind: unknown }).behind, [])
})

test('without order, what is left in a lane is open at once', () => {
  const { asked } = enqueueOf([event(1, 1), event(2, 1), event(3, 1), event(4, 1)], [], {
    ...ORDER,
    lease: lease(2000, false),
  })
  assert.deepEqual(asked.get('take'), {
    lanes: [{ lane: 1, head: 1, readyAt: 2000, openAt: NOW, held: 2 }],
    ordered: false,
    beside: [],
  })
})

test('without order it comes as it was stored, also where a lane has something, and nothing is looked for behind it', () => {
  const index = [event(11, 1), event(12, 1), event(13, 2), event(14, 1)]
  const loose = { ...ORDER, lease: lease(2000, false) }
  const { leased, waiting, asked } = enqueueOf(index, [], loose)
  assert.deepEqual([leased, waiting], [[11, 12, 13], [14]])
  assert.equal((asked.get('take') as { ordered: boolean }).ordered, false)
  const limits: number[] = []
  const plan = planEnqueue(3, loose)
  for (let step = plan.next(); !step.done && limits.length < 2; ) {
    const { name, ask } = step.value as Question
    if (name === 'indexed') limits.push(ask.limit)
    step = plan.next(name === 'indexed' ? index.slice(0, ask.limit) : name === 'take' ? [1, 2] : undefined)
  }
  assert.deepEqual(limits, [3])
})

test('lanes there is no room for are locked with the others', () => {
  const { asked } = enqueueOf([event(1, 1), event(2, 2), event(3, 3), event(4, 4)])
  assert.deepEqual((asked.get('take') as { beside: unknown }).beside, [4])
})

test('in a lane that has something it waits behind it', () => {
  const { result, asked, leased, waiting } = enqueueOf([event(11, 1), event(12, 2), event(13, 1)], [1, 2])
  assert.deepEqual([leased, waiting], [[], [11, 13, 12]])
  assert.deepEqual((asked.get('enqueue') as { behind: unknown }).behind, [
    { lane: 1, head: 11 },
    { lane: 2, head: 12 },
  ])
  assert.deepEqual([result.isFull, result.bytes], [false, 0])
  assert.deepEqual(enqueueOf([event(11, 1), event(12, 2), event(13, 1)], [1]).leased, [12])
})

test('with a lane named, only from that; and within the bytes, but at least one', () => {
  assert.deepEqual(enqueueOf([event(1, 1), event(2, 2)], [], { ...ORDER, lane: 2 }).leased, [2])
  const large = [event(1, 1, 5000), event(2, 2)]
  const { leased, waiting, result } = enqueueOf(large)
  assert.deepEqual([leased, waiting, result.isFull], [[1], [2], true])
  assert.deepEqual(enqueueOf(large, [], { ...ORDER, atLeastOne: false }).leased, [])
  assert.equal(enqueueOf(large, [1]).result.isFull, false, 'the large one could not be had')
})

test('where a conversation has several of the next, many are looked at: the heads of others come first', () => {
  const index = [event(1, 1), event(2, 1), event(3, 1), event(4, 4), event(5, 5)]
  const asked: number[] = []
  const plan = planEnqueue(3, ORDER)
  let step = plan.next()
  let leased: readonly number[] = []
  while (!step.done) {
    const { name, ask } = step.value as Question
    if (name === 'indexed') asked.push(ask.limit)
    if (name === 'enqueue') leased = ask.leased.map(({ eventId }) => eventId)
    const idle = name === 'take' ? idleOf(ask.lanes, []) : undefined
    step = plan.next(name === 'indexed' ? index.slice(0, ask.limit) : idle)
  }
  assert.deepEqual(
    [asked, leased],
    [
      [3, 1000],
      [1, 4, 5],
    ],
  )
})

test('revisions are passed over, and an index with nothing new writes nothing', () => {
  const { result, asked } = enqueueOf([{ ...event(7), isEvent: false }])
  assert.deepEqual([result.rows, result.handedOut.length], [1, 0])
  assert.deepEqual(Array.from(asked.keys()), ['indexed', 'setEnqueuedUpTo'])
  assert.deepEqual(Array.from(enqueueOf([]).asked.keys()), ['indexed'])
})

test('a claim enqueues as much as it has room for, of more if that brought nothing, and twice at most', () => {
  const progress = new ClaimProgress(ORDER)
  const handedOut = (count: number) => ({
    handedOut: Array.from({ length: count }, (_, n) => leasedAt(n + 1, 2000)),
    bytes: 10 * count,
    isFull: false,
    foundNoLane: false,
  })
  progress.add(handedOut(1))
  assert.deepEqual([progress.enqueueRows, progress.order.limit, progress.order.maxBytes], [2, 2, 990])
  assert.equal(progress.order.atLeastOne, false)
  progress.addEnqueued({ ...handedOut(1), rows: 2, left: 1 })
  assert.equal(progress.enqueueRows, 1)
  progress.addEnqueued({ ...handedOut(0), rows: 1, left: 1 })
  assert.deepEqual([progress.enqueueRows, progress.grants.length], [0, 2])
  const other = new ClaimProgress(ORDER)
  other.addEnqueued({ ...handedOut(0), rows: 3, left: 3 })
  assert.equal(other.enqueueRows, 1000)
  other.addEnqueued({ ...handedOut(0), rows: 0, left: 0 })
  assert.equal(other.enqueueRows, 0)
  const full = new ClaimProgress(ORDER)
  full.add({ ...handedOut(3), isFull: true })
  assert.equal(full.enqueueRows, 0)
  assert.deepEqual(
    [progress, other, full].map(({ mayClaimAgain }) => mayClaimAgain),
    [false, true, false],
  )
  const loose = new ClaimProgress({ ...ORDER, lease: lease(2000, false) })
  loose.add(handedOut(1))
  assert.equal(loose.mayClaimAgain, false)
  loose.addEnqueued({ ...handedOut(0), rows: 1, left: 1 })
  assert.equal(loose.mayClaimAgain, true)
})
