// Retention: what is too old goes as a whole, what stays still deduplicates, counts and is handed out, and no reader fails.

import assert from 'node:assert/strict'
import { createPromote } from '../../src/intake/promote.ts'
import type { Tenant } from '../../src/model/principal.ts'
import type { PurgePosition, PurgeRequest } from '../../src/model/retention-plan.ts'
import { NO_RETENTION } from '../../src/model/retention.ts'
import { newUuid } from '../../src/runtime/id.ts'
import type { Store } from '../../src/store/contract/store.ts'
import { backDoorOf } from './back-door.ts'
import { type ItemFields, idOf, item, NOON, refusal, TENANT } from './rows.ts'
import { append, everyDriver, everyStore, indexAll, payloadText } from './suite.ts'

const QUEUE = { tenant: TENANT, subscription: 'default' } as const
const DAY = 86_400_000
const OLD = NOON - 10 * DAY
/** What is older than a day goes. */
const BEFORE = NOON - DAY

/** One walk over all that is too old. */
async function purge(store: Store, fields: Partial<PurgeRequest> = {}) {
  const sum = { messages: 0, rows: 0, held: 0 }
  let after: PurgePosition | null = null
  for (let steps = 0; steps < 1000; steps++) {
    const request = {
      tenant: TENANT,
      before: BEFORE,
      now: NOON,
      purgesUnprocessed: false,
      dryRun: false,
      ...fields,
      after,
    }
    const step = await store.retention.purgeStep(request)
    sum.messages += step.messages
    sum.rows += step.rows
    sum.held += step.held
    if (step.next === null) {
      await follow(store)
      return sum
    }
    after = step.next
  }
  throw new Error('the walk does not end')
}

async function follow(store: Store): Promise<void> {
  for (let steps = 0; steps < 1000; steps++) if (!(await store.retention.followPurges())) return
  throw new Error('the index does not follow')
}

const message = (ref: string | null, fields: ItemFields & { text?: string } = {}) => {
  const { text = 'hello', ...rest } = fields
  const body = { source_ref: ref, contact: { name: 'Ada', email: 'ada@example.org' }, message: { text } }
  return { sourceRef: ref, receivedAt: OLD, body, ...rest }
}

async function send(store: Store, fields: ItemFields) {
  return (await store.journal.append([item(fields)]))[0]!
}

async function claim(store: Store, fields: { limit?: number; now?: number } = {}) {
  const { limit = 100, now = NOON } = fields
  const lease = { leaseId: newUuid(), leaseExpiresAt: now + 30_000, keyId: 'PPPPPPPPPP' }
  return (await store.processing.claim({
    ...{ ...QUEUE, ...lease, now, limit, maxBytes: 1 << 24, ordered: true, channelRef: null, maxAttempts: 3 },
  }))!
}

async function process(store: Store): Promise<number[]> {
  const done: number[] = []
  for (let rounds = 0; rounds < 100; rounds++) {
    const claimed = await claim(store)
    if (claimed.length === 0) return done
    const items = claimed.map(({ event, leaseId }) => ({ id: event.id, leaseId }))
    await store.processing.ack({ ...QUEUE, items, now: NOON })
    done.push(...items.map(({ id }) => id))
  }
  throw new Error('the queue does not end')
}

const listed = async (store: Store, filter = {}, tenant: Tenant = TENANT) =>
  (await store.inbox.events(tenant, filter, null, 100)).events.map(({ event }) => event.id)

everyStore(
  'an old message goes with its revisions, re-sends and words; a newer one stays',
  async (store, { url, driver }) => {
    const old = await append(store, message('r:1', { text: 'ancient', channelRef: 'c' }))
    await send(store, message('r:1', { text: 'revised', channelRef: 'c' }))
    await send(store, message('r:1', { text: 'ancient', channelRef: 'c' }))
    const young = await append(store, message('r:2', { receivedAt: NOON, text: 'recent' }))
    await indexAll(store)
    assert.deepEqual(await purge(store, { dryRun: true }), { messages: 1, rows: 2, held: 0 })
    assert.ok(await store.events.find(old), 'a dry run changes nothing')
    assert.deepEqual(await purge(store), { messages: 1, rows: 2, held: 0 })
    assert.equal(await store.events.find(old), null)
    assert.equal(await store.events.payload(old), null)
    assert.deepEqual(await listed(store), [young])
    assert.deepEqual(await listed(store, { words: ['ancient'] }), [])
    assert.deepEqual(await listed(store, { words: ['recent'] }), [young])
    assert.deepEqual(await store.inbox.conversations(TENANT, Number.MAX_SAFE_INTEGER, 10), [])
    assert.deepEqual(await backDoorOf(driver).countJournal(url), { events: 1, resends: 0, dedupe: 2 })
    assert.deepEqual(await purge(store), { messages: 0, rows: 0, held: 0 }, 'nothing is left to do')
    assert.equal((await store.follow.after(TENANT, 0, 10)).events.length, 1)
  },
)

everyStore(
  'the bytes of a purged message are a duplicate; other bytes are handed out as a message of their own',
  async (store, { url, driver }) => {
    const id = await append(store, message('r:1', { text: 'first', channelRef: 'c' }))
    await indexAll(store)
    await process(store)
    await purge(store)
    const again = message('r:1', { receivedAt: NOON, text: 'first', channelRef: 'c' })
    assert.deepEqual(await send(store, again), { outcome: 'duplicate', id })
    assert.deepEqual(await backDoorOf(driver).countJournal(url), { events: 0, resends: 0, dedupe: 1 })
    const other = message('r:1', { receivedAt: NOON, text: 'second', channelRef: 'c' })
    assert.deepEqual(await send(store, other), { outcome: 'conflict', id })
    assert.deepEqual(await send(store, other), { outcome: 'conflict', id })
    await indexAll(store)
    const [own] = await listed(store)
    assert.match((await payloadText(store, own!))!, /second/)
    const found = (await store.events.find(own!))!
    assert.deepEqual([found.kind, found.revises], ['event', id])
    assert.deepEqual((await backDoorOf(driver).countJournal(url)).events, 1)
    assert.deepEqual(await process(store), [own])
    const conversation = (await store.events.conversation(TENANT, 'c'))!
    assert.deepEqual([conversation.id, conversation.eventCount, conversation.lastEventId], [id, 1, own])
    assert.deepEqual(await store.inbox.conversation(TENANT, id), conversation, 'found by the id that it always had')
    await purge(store, { before: NOON + 1 })
    assert.deepEqual(await backDoorOf(driver).countJournal(url), { events: 0, resends: 0, dedupe: 1 })
    assert.deepEqual(await send(store, again), { outcome: 'duplicate', id }, 'the first bytes are remembered')
  },
)

everyStore('a message with a recent revision stays as a whole', async (store) => {
  const id = await append(store, message('r:1'))
  await send(store, message('r:1', { text: 'later', receivedAt: NOON }))
  await indexAll(store)
  assert.deepEqual(await purge(store), { messages: 0, rows: 0, held: 0 })
  assert.ok(await store.events.find(id))
  assert.deepEqual(await purge(store, { before: NOON + 1 }), { messages: 1, rows: 2, held: 0 })
})

everyStore('what was promoted from a revision goes with its message, once it is old as well', async (store) => {
  const id = await append(store, message('r:1'))
  await send(store, message('r:1', { text: 'second' }))
  const [revision] = await store.events.revisions(id, 0, 10)
  const submit = async (one: Parameters<Store['journal']['append']>[0][number]) => {
    return { outcome: 'stored' as const, id: idOf((await store.journal.append([one]))[0]) }
  }
  const promote = createPromote({ ...store, clock: { now: () => NOON }, submit })
  const principal = { ...TENANT, keyId: 'AAAAAAAAAA', scope: 'cf' }
  const made = await promote({ principal, revisionId: revision!.id, requestId: newUuid() })
  assert.ok('id' in made)
  await indexAll(store)
  assert.deepEqual(await purge(store), { messages: 0, rows: 0, held: 0 })
  assert.deepEqual(await purge(store, { before: NOON + 1 }), { messages: 1, rows: 3, held: 0 })
  assert.equal(await store.events.find(made.id), null)
})

everyStore(
  'conversations keep their ids, counts and ends, and a rebuild finds the same',
  async (store, { url, driver }) => {
    const at = [OLD, NOON, OLD + 1, NOON, OLD + 2]
    const ids: number[] = []
    for (const [n, receivedAt] of at.entries()) {
      const channelRef = n === 2 ? 'd' : 'c'
      const body = { contact: { name: `Ada ${n}`, email: `a${n}@example.org` }, message: { text: `word${n}` } }
      ids.push(await append(store, { receivedAt, channelRef, body, sourceRef: `r:${n}` }))
    }
    await indexAll(store)
    assert.deepEqual(await purge(store), { messages: 3, rows: 3, held: 0 })
    const found = (await store.events.conversation(TENANT, 'c'))!
    assert.deepEqual(
      [
        found.id,
        found.eventCount,
        found.lastEventId,
        found.lastSnippet,
        found.firstReceivedAt,
        found.firstContact.name,
      ],
      [ids[0], 2, ids[3], 'word3', NOON, 'Ada 1'],
    )
    assert.equal(await store.events.conversation(TENANT, 'd'), null)
    assert.equal(await store.inbox.conversation(TENANT, ids[2]!), null)
    assert.deepEqual(await listed(store, { channelRef: 'c' }), [ids[3], ids[1]])
    const dump = async () => {
      const { traffic: _, cursors: __, ...rest } = await backDoorOf(driver).dumpIndex(url)
      return rest
    }
    const before = await dump()
    await store.index.requestRebuild()
    await indexAll(store)
    assert.deepEqual(await dump(), before)
    const late = await append(store, { channelRef: 'd', receivedAt: NOON })
    await indexAll(store)
    assert.deepEqual((await store.inbox.conversation(TENANT, ids[2]!))?.lastEventId, late, 'the same id comes back')
  },
)

everyStore(
  'what a subscription has not processed stays, unless the rule lets it go',
  async (store, { url, driver }) => {
    const ids: number[] = []
    for (const channelRef of ['a', 'a', 'b', 'b', null]) ids.push(await append(store, message(null, { channelRef })))
    await indexAll(store)
    const [first, ...others] = await claim(store, { limit: 3 })
    await store.processing.ack({ ...QUEUE, items: [{ id: first!.event.id, leaseId: first!.leaseId }], now: NOON })
    assert.deepEqual(await purge(store), { messages: 1, rows: 1, held: 4 }, 'the rest is leased or waits')
    assert.equal(await store.events.find(first!.event.id), null)
    // Under a lease nothing goes; what waits does.
    assert.deepEqual(await purge(store, { purgesUnprocessed: true }), { messages: 2, rows: 2, held: 2 })
    const items = others.map(({ event, leaseId }) => ({ id: event.id, leaseId }))
    const settled = await store.processing.ack({ ...QUEUE, items, now: NOON })
    assert.deepEqual(
      settled!.map(({ ok }) => ok),
      others.map(() => true),
    )
    assert.deepEqual(await claim(store), [], 'claims pass over what has gone')
    assert.deepEqual(await purge(store), { messages: 2, rows: 2, held: 0 })
    const { lanes, deliveries } = await backDoorOf(driver).dumpLanes(url)
    assert.deepEqual([lanes, deliveries], [[], []])
    assert.equal((await backDoorOf(driver).countJournal(url)).events, 0)
    assert.ok(ids.length > 0)
  },
)

everyStore('a lane goes on behind an event that was purged while it waited', async (store) => {
  const [a, b] = [
    await append(store, message(null, { channelRef: 'a' })),
    await append(store, { channelRef: 'a', receivedAt: NOON }),
  ]
  await indexAll(store)
  const [held] = await claim(store, { limit: 1 })
  assert.equal(held!.event.id, a)
  const later = NOON + 60_000
  assert.deepEqual(await purge(store, { purgesUnprocessed: true, now: later }), { messages: 1, rows: 1, held: 0 })
  assert.deepEqual(await store.processing.ack({ ...QUEUE, items: [{ id: a, leaseId: held!.leaseId }], now: later }), [
    { id: a, ok: false },
  ])
  assert.deepEqual(
    (await claim(store, { now: later })).map(({ event }) => event.id),
    [b],
  )
})

everyStore('a claim passes over an event that was purged before it was enqueued', async (store) => {
  const ids = [await append(store, message(null)), await append(store, { receivedAt: NOON })]
  await indexAll(store)
  // The default subscription was never used: it holds nothing back. The index does not follow yet.
  const step = await store.retention.purgeStep({
    ...{ tenant: TENANT, before: BEFORE, now: NOON, purgesUnprocessed: false, after: null, dryRun: false },
  })
  assert.equal(step.rows, 1)
  assert.deepEqual(
    (await claim(store)).map(({ event }) => event.id),
    [ids[1]],
  )
  assert.deepEqual(await listed(store), [ids[1]])
  await follow(store)
  assert.deepEqual(await listed(store), [ids[1]])
})

everyStore(
  'an erased message is purged as any other, whether the index knows of the erasure or not',
  async (store, { url, driver }) => {
    const ids = []
    for (let n = 0; n < 4; n++) ids.push(await append(store, message(`r:${n}`, { channelRef: 'c', text: `t${n}` })))
    const young = await append(store, { channelRef: 'c', receivedAt: NOON })
    await indexAll(store)
    await store.erasures.erase(TENANT, [ids[0]!, ids[1]!], NOON)
    for (let steps = 0; steps < 1000 && (await store.erasures.purge()).more; steps++);
    await store.erasures.erase(TENANT, [ids[2]!], NOON)
    await purge(store)
    for (let steps = 0; steps < 1000 && (await store.erasures.purge()).more; steps++);
    const [row] = (await backDoorOf(driver).dumpIndex(url)).conversations as Record<string, unknown>[]
    assert.deepEqual([Number(row!.event_count), Number(row!.erased_count), row!.channel_ref], [1, 0, 'c'])
    assert.equal(Number(row!.id), ids[0])
    assert.deepEqual(await send(store, message('r:0', { channelRef: 'c', text: 't0' })), {
      outcome: 'duplicate',
      id: ids[0],
    })
    assert.deepEqual(await listed(store), [young])
  },
)

everyStore('a message with more revisions than one step takes goes in several', async (store, { url, driver }) => {
  const id = await append(store, message('r:1'))
  for (let n = 0; n < 25; n++) {
    await store.journal.append(Array.from({ length: 10 }, (_, m) => item(message('r:1', { text: `${n} ${m}` }))))
  }
  await indexAll(store)
  assert.deepEqual(await purge(store), { messages: 1, rows: 251, held: 0 })
  assert.equal(await store.events.find(id), null)
  assert.deepEqual(await backDoorOf(driver).countJournal(url), { events: 0, resends: 0, dedupe: 1 })
  assert.deepEqual(((await backDoorOf(driver).dumpIndex(url)).event_index as unknown[]).length, 0)
})

everyStore('one tenant is purged, and others are not looked at', async (store) => {
  const other = { accountId: 7, companyId: 43 }
  await append(store, message('r:1'))
  const theirs = await append(store, { ...message('r:1'), ...other })
  await indexAll(store)
  assert.deepEqual(await purge(store), { messages: 1, rows: 1, held: 0 })
  assert.deepEqual(await listed(store, {}, other), [theirs])
  assert.deepEqual(await store.retention.tenants('events', null, 10), [other])
  assert.deepEqual(await store.retention.tenants('events', other, 10), [])
})

everyStore('refusals and processing histories go by their own age, the oldest first', async (store) => {
  const bounds = { maxCount: 100 }
  for (const receivedAt of [OLD, OLD + 1, NOON]) await store.refusals.add([refusal({ receivedAt })], bounds)
  assert.deepEqual(await store.retention.tenants('refusals', null, 10), [{ ...TENANT }])
  assert.deepEqual(await store.retention.countOld('refusals', TENANT, BEFORE, 10), { count: 2, oldest: OLD })
  assert.equal(await store.retention.deleteOld('refusals', TENANT, BEFORE, 1), 1)
  assert.deepEqual(await store.retention.countOld('refusals', TENANT, BEFORE, 10), { count: 1, oldest: OLD + 1 })
  assert.equal(await store.retention.deleteOld('refusals', TENANT, BEFORE, 10), 1)
  assert.equal((await store.refusals.list(TENANT, Number.MAX_SAFE_INTEGER, 10)).length, 1)

  const id = await append(store)
  await indexAll(store)
  assert.deepEqual(await store.retention.tenants('history', null, 10), [])
  for (const now of [OLD, NOON]) {
    const [one] = await claim(store, { now })
    const items = [{ id, leaseId: one!.leaseId, delayMs: 0, error: `at ${now}` }]
    await store.processing.release({ ...QUEUE, items, maxAttempts: 9, keyId: 'P', jitter: 0, now })
  }
  assert.deepEqual(await store.retention.tenants('history', null, 10), [{ ...TENANT }])
  assert.deepEqual(await store.retention.countOld('history', TENANT, BEFORE, 10), { count: 1, oldest: OLD })
  assert.equal(await store.retention.deleteOld('history', TENANT, BEFORE, 10), 1)
  const [record] = await store.processing.history(TENANT, id)
  assert.deepEqual(
    record!.history.map(({ error }) => error),
    [`at ${NOON}`],
  )
  const [again] = await claim(store, { now: NOON + 1 })
  const items = [{ id, leaseId: again!.leaseId, delayMs: 0, error: 'last' }]
  await store.processing.release({ ...QUEUE, items, maxAttempts: 9, keyId: 'P', jitter: 0, now: NOON + 2 })
  assert.equal((await store.processing.history(TENANT, id))[0]!.history.length, 2, 'its numbers go on')
})

everyDriver('rules are kept for each tenant, and one for all others', async ({ open }) => {
  const store = await open('tool')
  assert.deepEqual(await store.retention.rules(), [])
  const own = { ...NO_RETENTION, tenant: TENANT, events: 30, refusals: 'never' } as const
  await store.retention.setRule(own)
  await store.retention.setRule({ ...NO_RETENTION, tenant: null, history: 7, unprocessed: 'purge' })
  await store.retention.setRule({ ...own, events: 31 })
  assert.deepEqual(await store.retention.rules(), [
    { ...NO_RETENTION, tenant: null, history: 7, unprocessed: 'purge' },
    { ...own, events: 31, tenant: { ...TENANT } },
  ])
})
