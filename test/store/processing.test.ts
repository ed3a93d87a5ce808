// Conformance: processing. Every promise of src/store/contract/processing.ts that the model does not already hold it to.

import assert from 'node:assert/strict'
import { LOST_EVENT } from '../../src/model/processing.ts'
import { LOOK_FOR_AVAILABLE } from '../../src/model/processing-plan.ts'
import { newUuid } from '../../src/runtime/id.ts'
import type { ClaimedEvent, ClaimRequest } from '../../src/store/contract/processing.ts'
import type { Store } from '../../src/store/contract/store.ts'
import { backDoorOf } from './back-door.ts'
import { eraseEvent } from './erase-event.ts'
import { type ItemFields, idOf, item, NOON, TENANT } from './rows.ts'
import { append, everyDriver, everyStore, failure, indexAll } from './suite.ts'

const QUEUE = { tenant: TENANT, subscription: 'default' } as const
const ALL_DEAD = { ids: null, channelRef: null, deadAfter: null, deadBefore: null } as const

function request(fields: Partial<ClaimRequest> = {}): ClaimRequest {
  const now = fields.now ?? NOON
  return {
    ...QUEUE,
    limit: 10,
    maxBytes: 1 << 20,
    ordered: true,
    channelRef: null,
    leaseId: newUuid(),
    leaseExpiresAt: now + 30_000,
    keyId: 'PPPPPPPPPP',
    maxAttempts: 3,
    now,
    ...fields,
  }
}

async function claim(store: Store, fields: Partial<ClaimRequest> = {}): Promise<readonly ClaimedEvent[]> {
  const claimed = await store.processing.claim(request(fields))
  assert.ok(claimed, 'the subscription is there')
  return claimed
}

const idsOf = (claimed: readonly ClaimedEvent[]): number[] => claimed.map(({ event }) => event.id)
const leasesOf = (claimed: readonly ClaimedEvent[]) => claimed.map(({ event, leaseId }) => ({ id: event.id, leaseId }))

async function ack(store: Store, claimed: readonly ClaimedEvent[], now = NOON): Promise<boolean[]> {
  const settled = await store.processing.ack({ ...QUEUE, items: leasesOf(claimed), now })
  return settled!.map(({ ok }) => ok)
}

async function release(store: Store, claimed: readonly ClaimedEvent[], now: number, delayMs: number | null = 0) {
  const items = leasesOf(claimed).map((one) => ({ ...one, delayMs, error: 'no' }))
  return store.processing.release({ ...QUEUE, items, now, maxAttempts: 3, keyId: 'PPPPPPPPPP', jitter: 0 })
}

async function appendAll(store: Store, rows: readonly ItemFields[]): Promise<number[]> {
  const ids = (await store.journal.append(rows.map(item))).map(idOf)
  await indexAll(store)
  return ids
}

everyStore('an event is handed out once it is indexed, with its bytes and what is known of it', async (store) => {
  const id = await append(store, { channelRef: 'page', sourceRef: 's', body: '{"a":1}' })
  assert.deepEqual(await claim(store), [])
  await indexAll(store)
  const [claimed] = await claim(store)
  assert.deepEqual(claimed?.event, await store.events.find(id))
  assert.equal(Buffer.from(claimed!.payload!).toString(), '{"a":1}')
  assert.deepEqual([claimed?.conversationId, claimed?.attempts], [id, 1])
})

everyStore(
  'an event whose row is gone is parked with the reason, and the others are handed out',
  async (store, database) => {
    const rows = [{ channelRef: 'page' }, { channelRef: 'page' }, { channelRef: 'page' }, {}]
    const [first, second, third, alone] = await appendAll(store, rows)
    // In the queue: an event that is gone before it gets there is passed over.
    const before = await claim(store)
    assert.equal(before.length, rows.length)
    const items = leasesOf(before).map((lease) => ({ ...lease, delayMs: 0, error: null }))
    await store.processing.release({ ...QUEUE, items, now: NOON, maxAttempts: 3, keyId: 'PPPPPPPPPP', jitter: 0 })
    await backDoorOf(database.driver).deleteEvent(database.url, second!)
    assert.deepEqual(idsOf(await claim(store)), [first, alone], 'the one behind it was given back')
    const [lost] = await store.processing.history(TENANT, second!)
    assert.equal(lost?.state, 'dead')
    assert.equal(lost?.history.at(-1)?.error, LOST_EVENT)
    const later = await claim(store, { now: NOON + 60_000 })
    assert.ok(idsOf(later).includes(first!))
    assert.ok((await ack(store, later, NOON + 60_000)).every(Boolean))
    assert.deepEqual(idsOf(await claim(store, { now: NOON + 120_000 })), [third])
  },
)

everyStore('a revision is not handed out', async (store) => {
  const [id] = await appendAll(store, [
    { sourceRef: 's', body: '{}' },
    { sourceRef: 's', body: '{ }' },
  ])
  assert.deepEqual(idsOf(await claim(store)), [id])
})

everyDriver(
  'an event that could not be indexed, one without content, and a damaged one are handed out all the same',
  async (database) => {
    const store = await database.open('tool')
    const backDoor = backDoorOf(database.driver)
    const ids = (await store.journal.append([item(), item(), item()])).map(idOf)
    await backDoor.smugglePayload(database.url, ids[0]!, Buffer.from('not json'))
    await eraseEvent(database.url, ids[1]!, NOON)
    await backDoor.replacePayload(database.url, ids[2]!, Buffer.from('{"other":1}'))
    await indexAll(store)
    const claimed = await claim(store)
    assert.deepEqual(idsOf(claimed), ids)
    assert.deepEqual(
      claimed.map(({ payload }) => payload && Buffer.from(payload).toString()),
      ['not json', null, null],
    )
  },
)

everyStore('heads of many conversations come first, then what follows them, in turns', async (store) => {
  const [a1, a2, a3, b1, b2] = await appendAll(
    store,
    ['a', 'a', 'a', 'b', 'b'].map((channelRef) => ({ channelRef })),
  )
  assert.deepEqual(idsOf(await claim(store, { limit: 4 })), [a1, b1, a2, b2])
  assert.deepEqual(await claim(store), [], 'the rest of a is behind its lease')
  assert.deepEqual(idsOf(await claim(store, { now: NOON + 30_000, limit: 10 })), [a1, b1], 'what failed goes alone')
  assert.ok(a3)
})

everyStore('of a run that expired, only the first answers for it', async (store) => {
  const ids = await appendAll(store, [{ channelRef: 'a' }, { channelRef: 'a' }])
  for (let attempt = 1; attempt <= 3; attempt++) {
    const claimed = await claim(store, { now: NOON + attempt * 60_000 })
    assert.deepEqual([claimed[0]!.event.id, claimed[0]!.attempts], [ids[0], attempt])
  }
  const [next] = await claim(store, { now: NOON + 300_000 })
  assert.deepEqual([next!.event.id, next!.attempts], [ids[1], 1], 'the first is dead; the second has tried nothing yet')
  const [record] = await store.processing.history(TENANT, ids[0]!)
  assert.deepEqual([record?.state, record?.attempts], ['dead', 3])
})

everyStore('a claim holds no more bytes than it may, and at least one event', async (store) => {
  const body = JSON.stringify({ text: 'x'.repeat(1000) })
  const ids = await appendAll(store, [{ body }, { body }, { body }])
  assert.deepEqual(idsOf(await claim(store, { maxBytes: 2500 })), ids.slice(0, 2))
  assert.deepEqual(idsOf(await claim(store, { maxBytes: 10 })), ids.slice(2))
})

everyStore('releasing an event of a run gives back what is behind it, without an attempt', async (store) => {
  const ids = await appendAll(
    store,
    Array.from({ length: 3 }, () => ({ channelRef: 'a' })),
  )
  const run = await claim(store)
  const settled = await release(store, run.slice(1, 2), NOON, 1000)
  assert.deepEqual(settled?.[0]?.ok && settled[0].state, 'pending')
  assert.deepEqual(await ack(store, run), [true, false, false])
  assert.deepEqual(await claim(store, { now: NOON + 999 }), [])
  const again = await claim(store, { now: NOON + 1000 })
  assert.deepEqual([idsOf(again), again[0]!.attempts], [[ids[1]], 2])
  await ack(store, again, NOON + 1000)
  const [last] = await claim(store, { now: NOON + 1000 })
  assert.deepEqual([last!.event.id, last!.attempts], [ids[2], 1])
})

everyStore('releasing a whole run in one call is answered for each, and counts for the first', async (store) => {
  await appendAll(
    store,
    Array.from({ length: 3 }, () => ({ channelRef: 'a' })),
  )
  const run = await claim(store)
  const settled = await release(store, run, NOON)
  assert.deepEqual(
    settled?.map((one) => one.ok && one.state),
    ['pending', 'pending', 'pending'],
  )
  const records = await Promise.all(idsOf(run).map((id) => store.processing.history(TENANT, id)))
  assert.deepEqual(
    records.map(([record]) => record?.attempts),
    [1, 0, 0],
  )
})

everyStore('extending one event of a run extends the run; of an unordered claim, that event alone', async (store) => {
  await appendAll(store, [{ channelRef: 'a' }, { channelRef: 'a' }])
  const extend = async (claimed: readonly ClaimedEvent[], now: number) =>
    store.processing.extend({ ...QUEUE, items: leasesOf(claimed), leaseExpiresAt: now + 60_000, now })
  const run = await claim(store)
  await extend(run.slice(0, 1), NOON)
  assert.deepEqual(await ack(store, run.slice(1), NOON + 50_000), [true])
  await release(store, run.slice(0, 1), NOON + 50_000)
  await appendAll(store, [{ channelRef: 'a' }])
  const both = await claim(store, { ordered: false, now: NOON + 60_000 })
  assert.equal(both.length, 2)
  await extend(both.slice(0, 1), NOON + 60_000)
  assert.deepEqual(await ack(store, both, NOON + 100_000), [true, false])
})

everyStore('unordered claims share a conversation, and an ordered one waits for them', async (store) => {
  const ids = await appendAll(
    store,
    Array.from({ length: 4 }, () => ({ channelRef: 'a' })),
  )
  const first = await claim(store, { ordered: false, limit: 2 })
  const second = await claim(store, { ordered: false, limit: 1 })
  assert.deepEqual([...idsOf(first), ...idsOf(second)], ids.slice(0, 3))
  assert.deepEqual(await claim(store), [])
  await ack(store, [...first, ...second])
  assert.deepEqual(idsOf(await claim(store)), ids.slice(3))
  assert.deepEqual(await claim(store, { ordered: false }), [])
})

everyDriver(
  'without order events come as they were stored, and no more are enqueued than are handed out',
  async (database) => {
    const store = await database.open()
    const ids = await appendAll(store, [
      ...Array.from({ length: 12 }, () => ({ channelRef: 'a' })),
      { channelRef: 'b' },
      { channelRef: 'a' },
    ])
    const claimed: ClaimedEvent[] = []
    for (const limit of [5, 5, 3]) claimed.push(...(await claim(store, { ordered: false, limit })))
    assert.deepEqual(idsOf(claimed), ids.slice(0, 13))
    const { deliveries } = await backDoorOf(database.driver).dumpLanes(database.url)
    assert.deepEqual(
      deliveries.map(({ event_id: id, state }) => [id, state]).toSorted(([a], [b]) => Number(a) - Number(b)),
      ids.slice(0, 13).map((id) => [id, 'leased']),
    )
    assert.deepEqual(await claim(store, { channelRef: 'a' }), [], 'an ordered claim waits for all of them')
    assert.deepEqual(idsOf(await claim(store, { ordered: false })), ids.slice(13))
  },
)

everyStore('who claimed an event, and how often it was handed out, is written for each of a claim', async (store) => {
  const [first] = await appendAll(store, [{ channelRef: 'a' }])
  await release(store, await claim(store, { keyId: 'FIRST' }), NOON)
  const [second] = await appendAll(store, [{ channelRef: 'a' }])
  const both = await claim(store, { ordered: false, keyId: 'SECOND', now: NOON + 1 })
  assert.deepEqual(
    both.map(({ event, attempts }) => [event.id, attempts]),
    [
      [first, 2],
      [second, 1],
    ],
  )
  const recordOf = async (id: number | undefined) => (await store.processing.history(TENANT, id!))[0]!
  const told = async (id: number | undefined) => {
    const { state, attempts, keyId, leaseExpiresAt, settledAt, history } = await recordOf(id)
    return [state, attempts, keyId, leaseExpiresAt, settledAt, history.length]
  }
  const expiresAt = NOON + 30_001
  assert.deepEqual(await told(first), ['leased', 2, 'SECOND', expiresAt, null, 1])
  assert.deepEqual(await told(second), ['leased', 1, 'SECOND', expiresAt, null, 0])
  assert.deepEqual(await ack(store, both.slice(1), NOON + 2), [true])
  assert.deepEqual(await told(second), ['done', 1, 'SECOND', null, NOON + 2, 0])
  const items = leasesOf(both.slice(1))
  const again = await store.processing.ack({ ...QUEUE, items, now: NOON + 3 })
  assert.deepEqual(again, [{ id: second, ok: true, state: 'done', leaseExpiresAt: null, availableAt: NOON + 1 }])
  // Nobody kept the lease of the other: it is taken by another, and its history says so.
  const [late] = await claim(store, { keyId: 'THIRD', now: expiresAt })
  assert.deepEqual([late?.event.id, late?.attempts], [first, 3])
  assert.deepEqual(await told(first), ['leased', 3, 'THIRD', expiresAt + 30_000, null, 2])
  assert.deepEqual(
    (await recordOf(first)).history.map(({ what, keyId }) => [what, keyId]),
    [
      ['released', 'PPPPPPPPPP'],
      ['expired', 'SECOND'],
    ],
  )
})

everyStore('of what is handed out together, each has attempts of its own', async (store) => {
  const ids = await appendAll(
    store,
    Array.from({ length: 3 }, () => ({ channelRef: 'a' })),
  )
  await release(store, (await claim(store, { limit: 2 })).slice(0, 1), NOON)
  assert.deepEqual(idsOf(await claim(store, { ordered: false, now: NOON + 1 })), ids)
  const records = await Promise.all(ids.map((id) => store.processing.history(TENANT, id)))
  assert.deepEqual(
    records.map(([one]) => one?.attempts),
    [2, 1, 1],
  )
})

everyStore('a run that waited is written under the key of who claimed it', async (store) => {
  const ids = await appendAll(
    store,
    Array.from({ length: 4 }, () => ({ channelRef: 'a' })),
  )
  await ack(store, await claim(store, { limit: 1, keyId: 'FIRST' }))
  const rest = await claim(store, { keyId: 'SECOND', now: NOON + 1 })
  assert.deepEqual(idsOf(rest), ids.slice(1))
  await store.processing.extend({ ...QUEUE, items: leasesOf(rest), leaseExpiresAt: NOON + 90_000, now: NOON + 2 })
  const records = await Promise.all(ids.map((id) => store.processing.history(TENANT, id)))
  assert.deepEqual(
    records.map(([one]) => [one?.keyId, one?.attempts, one?.leaseExpiresAt]),
    [['FIRST', 1, null], ...ids.slice(1).map(() => ['SECOND', 1, NOON + 90_000])],
  )
})

everyStore(
  'an event that backs off holds up its conversation in order, and nothing else without order',
  async (store) => {
    const [first, second] = await appendAll(store, [{ channelRef: 'a' }, { channelRef: 'a' }])
    await release(store, await claim(store, { limit: 1 }), NOON, 60_000)
    assert.deepEqual(await claim(store), [])
    assert.deepEqual(idsOf(await claim(store, { ordered: false })), [second])
    assert.deepEqual(await store.processing.ready([{ ...QUEUE, ordered: true }], NOON), [
      { ready: false, at: NOON + 60_000 },
    ])
    assert.ok(first)
  },
)

everyStore('readiness is told without a claim: new events, times to come, and nothing', async (store) => {
  const ready = async (now: number) => (await store.processing.ready([{ ...QUEUE, ordered: true }], now))[0]
  assert.deepEqual(await ready(NOON), { ready: false, at: null })
  await appendAll(store, [{}])
  assert.equal((await ready(NOON))?.ready, true)
  const claimed = await claim(store)
  assert.deepEqual(await ready(NOON), { ready: false, at: NOON + 30_000 })
  assert.equal((await ready(NOON + 30_000))?.ready, true)
  await ack(store, claimed)
  assert.deepEqual(await ready(NOON + 30_000), { ready: false, at: null })
  const gone = { ...QUEUE, subscription: 'gone', ordered: true }
  assert.equal((await store.processing.ready([gone], NOON))[0]?.ready, true, 'a claim finds out')
})

everyStore(
  'a backlog far beyond one look is drained in bounded claims, in order and without starving anybody',
  async (store) => {
    const rows = Array.from({ length: 2600 }, (_, n) => ({ channelRef: n < 2300 ? 'hot' : `c${n}` }))
    const ids = await appendAll(store, rows)
    const seen: number[] = []
    for (let rounds = 0; seen.length < ids.length; rounds++) {
      assert.ok(rounds < 60, 'it comes to an end')
      const claimed = await claim(store, { limit: 200 })
      seen.push(...idsOf(claimed))
      await ack(store, claimed)
    }
    const hot = ids.slice(0, 2300)
    assert.deepEqual(
      seen.filter((id) => hot.includes(id)),
      hot,
    )
    assert.deepEqual(
      seen.toSorted((a, b) => a - b),
      ids,
    )
    assert.ok(
      seen.indexOf(ids.at(-1)!) < seen.indexOf(hot.at(-1)!),
      'heads do not wait for the end of a long conversation',
    )
  },
)

everyStore('what has no subscription, no conversation or no lease is answered, not invented', async (store) => {
  const queue = { ...QUEUE, subscription: 'nobody' }
  assert.equal(await store.processing.claim(request(queue)), null)
  assert.equal(await store.processing.ack({ ...queue, items: [{ id: 1, leaseId: 'x' }], now: NOON }), null)
  assert.equal(await store.processing.countDead(queue, ALL_DEAD), null)
  assert.deepEqual(await claim(store, { channelRef: 'nowhere' }), [])
  assert.deepEqual(await store.processing.ack({ ...QUEUE, items: [{ id: 1, leaseId: 'x' }], now: NOON }), [
    { id: 1, ok: false },
  ])
  await assert.rejects(store.processing.deleteSubscription(QUEUE, NOON), failure('rejected'))
})

everyStore('a rebuild of the index changes no state, attempt or lease, and nothing done comes back', async (store) => {
  const rows = Array.from({ length: 12 }, (_, n) => ({ channelRef: n % 3 === 0 ? null : `c${n % 3}` }))
  const ids = await appendAll(store, rows)
  const done = await claim(store, { limit: 5 })
  await ack(store, done)
  const [dying] = await claim(store, { limit: 1, maxAttempts: 1 })
  const items = [{ id: dying!.event.id, leaseId: dying!.leaseId, delayMs: 0, error: 'poison' }]
  await store.processing.release({ ...QUEUE, items, now: NOON, maxAttempts: 1, keyId: 'P', jitter: 0 })
  const held = await claim(store, { limit: 2 })
  const look = async () => Promise.all(ids.map((id) => store.processing.history(TENANT, id)))
  const before = await look()
  assert.deepEqual(new Set(before.map(([record]) => record?.state)), new Set(['done', 'dead', 'leased', 'pending']))

  await store.index.requestRebuild()
  await store.index.step({ maxRows: 5, maxBytes: 1 << 20 })
  assert.deepEqual(await look(), before, 'in the middle of it')
  assert.deepEqual(await ack(store, held.slice(0, 1)), [true], 'leases go on')
  await indexAll(store, { maxRows: 5, maxBytes: 1 << 20 })
  const after = await look()
  const expected = before.map((records, n) => (ids[n] === held[0]!.event.id ? after[n] : records))
  assert.deepEqual(after, expected)

  const rest = new Set<number>()
  for (let now = NOON; now < NOON + 200_000; now += 31_000) {
    const claimed = await claim(store, { now, limit: 50, maxAttempts: 100 })
    for (const { event } of claimed) rest.add(event.id)
    await ack(store, claimed, now)
  }
  const finished = [...idsOf(done), dying!.event.id, held[0]!.event.id]
  assert.deepEqual(
    Array.from(rest).toSorted((a, b) => a - b),
    ids.filter((id) => !finished.includes(id)),
  )
})

everyStore('a deleted subscription leaves nothing behind, and others alone', async (store) => {
  const ids = await appendAll(store, [{}, { channelRef: 'a' }])
  const queue = { tenant: TENANT, subscription: 'crm' }
  await store.processing.createSubscription(queue, 'beginning', NOON)
  assert.deepEqual(idsOf(await claim(store, queue)), ids)
  assert.deepEqual(idsOf(await claim(store)), ids)
  assert.equal(await store.processing.deleteSubscription(queue, NOON), true)
  assert.equal(await store.processing.deleteSubscription(queue, NOON), false)
  await store.processing.createSubscription(queue, 'now', NOON)
  assert.deepEqual(await claim(store, queue), [])
  assert.deepEqual((await store.processing.states(QUEUE, ids, NOON)).get(ids[0]!), 'leased')
})

everyDriver(
  'several that claim at once, over two stores where there may be two, share the events',
  async (database) => {
    const store = await database.open()
    const other = store.traits.concurrentWriters ? await database.open() : store
    const rows = Array.from({ length: 600 }, (_, n) => ({ channelRef: n % 2 === 0 ? null : `c${n % 40}` }))
    const ids = await appendAll(store, rows)
    const seen = new Map<number, number>()
    const lastOf = new Map<string, number>()
    const work = async (mine: Store): Promise<void> => {
      for (let idle = 0; idle < 20; ) {
        const claimed = await claim(mine, { limit: 7 })
        idle = claimed.length === 0 ? idle + 1 : 0
        for (const { event } of claimed) {
          seen.set(event.id, (seen.get(event.id) ?? 0) + 1)
          if (event.channelRef === null) continue
          assert.ok(event.id > (lastOf.get(event.channelRef) ?? 0), 'in order')
          lastOf.set(event.channelRef, event.id)
        }
        assert.ok((await ack(mine, claimed)).every((ok) => ok))
      }
    }
    await Promise.all([work(store), work(other), work(store), work(other), work(other), work(store)])
    assert.equal(seen.size, ids.length)
    assert.ok(
      Array.from(seen.values()).every((times) => times === 1),
      'each to one holder, once',
    )
  },
)

everyStore('claims in the middle of a rebuild pass over nothing, whatever is empty just then', async (store) => {
  const ids = await appendAll(
    store,
    Array.from({ length: 600 }, (_, n) => ({ channelRef: `page ${n % 50}` })),
  )
  await store.index.requestRebuild()
  const seen: number[] = []
  for (let left = true; left; ) {
    const claimed = await claim(store, { limit: 20 })
    seen.push(...idsOf(claimed))
    if (claimed.length > 0) assert.ok((await ack(store, claimed)).every(Boolean))
    const { lag, clearing } = await store.index.step({ maxRows: 70, maxBytes: 1 << 30 })
    left = clearing || lag > 0 || claimed.length > 0
  }
  assert.deepEqual(
    seen.toSorted((a, b) => a - b),
    ids,
  )
})

everyStore('two subscriptions deleted at once: neither leaves anything to the next one', async (store) => {
  const ids = await appendAll(
    store,
    Array.from({ length: 30 }, () => ({})),
  )
  const named = (subscription: string) => ({ tenant: TENANT, subscription })
  for (const name of ['a', 'b']) {
    await store.processing.createSubscription(named(name), 'beginning', NOON)
    assert.equal((await claim(store, { subscription: name, limit: 100 })).length, 30)
  }
  const deleted = ['a', 'b'].map((name) => store.processing.deleteSubscription(named(name), NOON))
  assert.deepEqual(await Promise.all(deleted), [true, true])
  for (const name of ['c', 'd', 'a']) {
    await store.processing.createSubscription(named(name), 'beginning', NOON)
    const claimed = await claim(store, { subscription: name, limit: 100 })
    assert.deepEqual(
      idsOf(claimed).toSorted((x, y) => x - y),
      ids,
    )
  }
})

everyStore('what an expired run gives back does not overtake what lies between', async (store) => {
  const one = { maxAttempts: 1, limit: 1, channelRef: 'page' } as const
  const lane = await appendAll(
    store,
    Array.from({ length: 23 }, () => ({ channelRef: 'page' })),
  )
  await appendAll(
    store,
    Array.from({ length: 4 }, (_, n) => ({ channelRef: `other ${n}` })),
  )
  for (let n = 0; n < 20; n += 1) {
    const [claimed] = await claim(store, one)
    const items = [{ id: claimed!.event.id, leaseId: claimed!.leaseId, delayMs: 0, error: 'no' }]
    await store.processing.release({ ...QUEUE, items, now: NOON, maxAttempts: 1, keyId: 'PPPPPPPPPP', jitter: 0 })
  }
  assert.deepEqual(idsOf(await claim(store, { ...one, limit: 3, leaseExpiresAt: NOON + 10 })), lane.slice(20))
  assert.equal(
    await store.processing.requeue({ ...QUEUE, filter: ALL_DEAD, limit: 100, keyId: 'PPPPPPPPPP', now: NOON }),
    20,
  )
  const later = NOON + 1000
  const claimed = await claim(store, { maxAttempts: 1, limit: 10, now: later, leaseExpiresAt: later + 1000 })
  const ofLane = idsOf(claimed).filter((id) => lane.includes(id))
  assert.deepEqual(ofLane, lane.slice(0, ofLane.length))
  assert.ok(ofLane.length > 0)
})

everyStore(
  'processors that want no order share one conversation, and none goes away empty while there is enough',
  async (store) => {
    const ids = await appendAll(
      store,
      Array.from({ length: 1500 }, () => ({ channelRef: 'page' })),
    )
    const seen: number[] = []
    const emptyWith: number[] = []
    const work = async (): Promise<void> => {
      for (;;) {
        const claimed = await claim(store, { ordered: false, limit: 50 })
        seen.push(...idsOf(claimed))
        if (claimed.length === 0) emptyWith.push(ids.length - seen.length)
        if (seen.length === ids.length) return
        assert.ok((await ack(store, claimed)).every(Boolean))
      }
    }
    await Promise.all([work(), work(), work(), work()])
    assert.deepEqual(
      seen.toSorted((a, b) => a - b),
      ids,
    )
    assert.ok(
      emptyWith.every((left) => left <= 3 * 50),
      `empty with so many left: ${emptyWith.join(', ')}`,
    )
  },
)

everyStore(
  'without order, what is new is handed out past something that backs off, in the same claim',
  async (store) => {
    await appendAll(store, [{ channelRef: 'page' }])
    await release(store, await claim(store), NOON, 60_000)
    const [id] = await appendAll(store, [{ channelRef: 'page' }])
    assert.deepEqual(idsOf(await claim(store)), [], 'with order it waits')
    const [other] = await appendAll(store, [{ channelRef: 'page' }])
    assert.deepEqual(idsOf(await claim(store, { ordered: false })), [id, other])
  },
)

everyDriver(
  'behind more events in back-off than a claim passes, available ones are still handed out',
  async (database) => {
    const store = await database.open()
    const waiting = LOOK_FOR_AVAILABLE + 50
    const items = Array.from({ length: waiting + 30 }, () => item({ channelRef: 'page' }))
    const ids = (await store.journal.append(items)).map(idOf)
    await indexAll(store)
    const far = { ordered: false, maxBytes: 1 << 30 }
    const first = await claim(store, { ...far, limit: waiting })
    assert.deepEqual(idsOf(first), ids.slice(0, waiting))
    const released = leasesOf(first).map((lease) => ({ ...lease, delayMs: 3_600_000, error: 'no' }))
    const rules = { maxAttempts: 9, keyId: 'PPPPPPPPPP', jitter: 0, now: NOON }
    await store.processing.release({ ...QUEUE, ...rules, items: released })
    assert.deepEqual(idsOf(await claim(store, { ...far, limit: 10 })), ids.slice(waiting, waiting + 10))
    assert.deepEqual(idsOf(await claim(store, { ...far, limit: 100 })), ids.slice(waiting + 10))
    assert.deepEqual(idsOf(await claim(store, { ...far, limit: 100 })), [])
    assert.deepEqual(idsOf(await claim(store, { ...far, limit: 10, now: NOON + 7_200_000 })), ids.slice(0, 10))
  },
)
