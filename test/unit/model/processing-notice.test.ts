// Taking notice and handing out at once: the times of a lane that already has leases, and how a claim goes.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type Delivery, handOut, joinedTimes, laneTimes, noticed } from '../../../src/model/processing.ts'
import { ClaimCourse, planNotice } from '../../../src/model/processing-notice.ts'
import type { ClaimOrder, IndexedEvent, LaneState, Question } from '../../../src/model/processing-plan.ts'

const NOW = 1000
const lease = (expiresAt: number, ordered = false) => ({ id: 'lease', expiresAt, ordered, keyId: 'key' })
const leasedAt = (eventId: number, expiresAt: number): Delivery => handOut(noticed(eventId, 1, NOW), lease(expiresAt))

test('times that are joined are those of all leases together', () => {
  const time = fc.integer({ min: 900, max: 1100 })
  const pending = fc.option(fc.record({ eventId: fc.integer({ min: 1, max: 50 }), availableAt: time }))
  fc.assert(
    fc.property(
      fc.array(time, { minLength: 1, maxLength: 5 }),
      pending,
      time,
      fc.integer({ min: 1, max: 5 }),
      fc.boolean(),
      (expiries, head, expiresAt, more, isLeft) => {
        const before = expiries.map((at, n) => leasedAt(10 * (n + 1), at))
        const was = laneTimes(before, { head, openAt: head?.availableAt ?? null })
        const added = Array.from({ length: more }, (_, n) => leasedAt(100 + n, expiresAt))
        const next = isLeft ? { eventId: 200, availableAt: NOW } : null
        const opens = [...(head ? [head.availableAt] : []), ...(next ? [NOW] : [])]
        const facts = { head: head ?? next, openAt: opens.length > 0 ? Math.min(...opens) : null }
        assert.deepEqual(joinedTimes(was, added, isLeft ? NOW : null), laneTimes([...before, ...added], facts))
      },
    ),
  )
})

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

/** What a plan asks for and writes, with these entries in the index and these lanes. */
function noticeOf(found: readonly IndexedEvent[], lanes: readonly LaneState[], order = ORDER) {
  const plan = planNotice(10, order)
  const asked = new Map<string, unknown>()
  let step = plan.next()
  while (!step.done) {
    const { name, ask } = step.value as Question
    asked.set(name, ask)
    step = plan.next(name === 'indexed' ? found : name === 'lanes' ? lanes : undefined)
  }
  const ids = (name: 'leased' | 'waiting') =>
    ((asked.get('notice') as Record<string, readonly Delivery[]> | undefined)?.[name] ?? []).map(
      ({ eventId }) => eventId,
    )
  return { result: step.value, asked, leased: ids('leased'), waiting: ids('waiting') }
}

const idle = (lane: number): LaneState => ({ lane, head: null, readyAt: null, openAt: null, held: 0 })

test('what is new in a lane that is new or idle is handed out at once, heads first, as far as there is room', () => {
  const { result, asked, leased, waiting } = noticeOf(
    [event(1, 1), event(2, 1), event(3, 3), event(4), event(5, 3)],
    [idle(3)],
  )
  assert.deepEqual(leased, [1, 3, 4])
  assert.deepEqual(waiting, [2, 5])
  assert.deepEqual([result.rows, result.bytes, result.isFull], [5, 30, true])
  assert.deepEqual(asked.get('lanes'), { lanes: [1, 3, 4] })
  assert.deepEqual(asked.get('moveFrontier'), { frontier: 5 })
  const held = { readyAt: 2000, openAt: null, held: 1, done: 0, dead: 0 }
  assert.deepEqual(asked.get('saveLanes'), {
    lanes: [
      { lane: 1, head: 1, ...held },
      { lane: 3, head: 3, ...held },
      { lane: 4, head: 4, ...held },
    ],
  })
})

test('in a lane that has something it waits behind it', () => {
  const busy: LaneState = { lane: 1, head: 1, readyAt: 1500, openAt: null, held: 1 }
  const ready: LaneState = { lane: 2, head: 2, readyAt: 900, openAt: null, held: 0 }
  const { asked, leased, waiting } = noticeOf([event(11, 1), event(12, 2), event(13, 1)], [busy, ready])
  assert.deepEqual([leased, waiting], [[], [11, 13, 12]])
  assert.deepEqual((asked.get('notice') as { behind: unknown }).behind, [
    { lane: 1, head: 11 },
    { lane: 2, head: 12 },
  ])
  assert.equal(asked.has('saveLanes'), false)
})

test('without order it may pass leases that have none, and no others', () => {
  const order = { ...ORDER, lease: lease(2000, false) }
  const free: LaneState = { lane: 1, head: 1, readyAt: 1500, openAt: null, held: 2 }
  const kept: LaneState = { lane: 2, head: 2, readyAt: 1500, openAt: null, held: 1 }
  const { asked, leased, waiting } = noticeOf([event(11, 1), event(12, 2)], [free, kept], order)
  assert.deepEqual([leased, waiting], [[11], [12]])
  assert.deepEqual(asked.get('saveLanes'), {
    lanes: [{ lane: 1, head: 1, readyAt: 2000, openAt: 1500, held: 2, done: 0, dead: 0 }],
  })
  assert.deepEqual(noticeOf([event(11, 1)], [free]).leased, [], 'with order it may not')
})

test('with a lane named, only from that; and within the bytes, but at least one', () => {
  assert.deepEqual(noticeOf([event(1, 1), event(2, 2)], [], { ...ORDER, lane: 2 }).leased, [2])
  const large = [event(1, 1, 5000), event(2, 2)]
  const { leased, waiting, result } = noticeOf(large, [])
  assert.deepEqual([leased, waiting, result.isFull], [[1], [2], true])
  assert.deepEqual(noticeOf(large, [], { ...ORDER, atLeastOne: false }).leased, [])
})

test('where a conversation has several of the next, many are looked at: the heads of others come first', () => {
  const index = [event(1, 1), event(2, 1), event(3, 1), event(4, 4), event(5, 5)]
  const asked: number[] = []
  const plan = planNotice(3, ORDER)
  let step = plan.next()
  let leased: readonly number[] = []
  while (!step.done) {
    const { name, ask } = step.value as Question
    if (name === 'indexed') asked.push(ask.limit)
    if (name === 'notice') leased = ask.leased.map(({ eventId }) => eventId)
    step = plan.next(name === 'indexed' ? index.slice(0, ask.limit) : name === 'lanes' ? [] : undefined)
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
  const { result, asked } = noticeOf([{ ...event(7), isEvent: false }], [])
  assert.deepEqual([result.rows, result.handedOut.length], [1, 0])
  assert.deepEqual(Array.from(asked.keys()), ['indexed', 'moveFrontier'])
  assert.deepEqual(Array.from(noticeOf([], []).asked.keys()), ['indexed'])
})

test('a claim takes notice of as much as it has room for, of more if that brought nothing, and twice at most', () => {
  const course = new ClaimCourse(ORDER)
  const handedOut = (count: number) => ({
    handedOut: Array.from({ length: count }, (_, n) => leasedAt(n + 1, 2000)),
    bytes: 10 * count,
    isFull: false,
    foundNoLane: false,
  })
  course.take(handedOut(1))
  assert.deepEqual([course.noticeRows, course.order.limit, course.order.maxBytes], [2, 2, 990])
  assert.equal(course.order.atLeastOne, false)
  course.takeNoticed({ ...handedOut(1), rows: 2 })
  assert.equal(course.noticeRows, 1)
  course.takeNoticed({ ...handedOut(0), rows: 1 })
  assert.deepEqual([course.noticeRows, course.grants.length], [0, 2])
  const other = new ClaimCourse(ORDER)
  other.takeNoticed({ ...handedOut(0), rows: 3 })
  assert.equal(other.noticeRows, 1000)
  other.takeNoticed({ ...handedOut(0), rows: 0 })
  assert.equal(other.noticeRows, 0)
  const full = new ClaimCourse(ORDER)
  full.take({ ...handedOut(3), isFull: true })
  assert.equal(full.noticeRows, 0)
})
