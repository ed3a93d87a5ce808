// Lists by the state of processing: both stores find the same events, whatever leads to them, and never beyond a tenant.

import assert from 'node:assert/strict'
import { SCAN_ROWS } from '../../src/model/event-list.ts'
import { type DeliveryState, STATES } from '../../src/model/processing.ts'
import { newUuid } from '../../src/runtime/id.ts'
import type { EventFilter, EventPosition } from '../../src/store/contract/inbox.ts'
import type { ClaimRequest } from '../../src/store/contract/processing.ts'
import type { Store } from '../../src/store/contract/store.ts'
import { until } from '../support/until.ts'
import { type ItemFields, idOf, item, NOON, TENANT } from './rows.ts'
import { everyDriver, indexAll } from './suite.ts'

const OTHERS = [
  { accountId: 8, companyId: 42 },
  { accountId: 7, companyId: 43 },
  { accountId: 42, companyId: 7 },
] as const
const LEASE_MS = 30_000

interface Asked {
  readonly filter?: EventFilter
  readonly subscription?: string
  readonly now?: number
  readonly limit?: number
  readonly tenant?: { readonly accountId: number; readonly companyId: number }
}

/** All pages from the first to the last, and how many of them were partial. */
async function pagesOf(
  store: Store,
  is: DeliveryState,
  asked: Asked = {},
): Promise<{ ids: number[]; partials: number }> {
  const { subscription = 'default', now = NOON, limit = 200, tenant = TENANT } = asked
  const filter: EventFilter = { ...asked.filter, state: { is, subscription, now } }
  const ids: number[] = []
  let partials = 0
  let after: EventPosition | null = null
  for (let pages = 0; pages < 1000; pages++) {
    const page = await store.inbox.events(tenant, filter, after, limit)
    ids.push(...page.events.map(({ event }) => event.id))
    if (page.partial) partials += 1
    else if (page.next !== null) assert.equal(page.events.length, limit, 'a page that is not partial is full')
    if (page.next === null) return { ids, partials }
    after = page.next
  }
  throw new Error('there is no end to the pages')
}

const inState = async (store: Store, is: DeliveryState, asked: Asked = {}) => (await pagesOf(store, is, asked)).ids

async function allStates(store: Store, asked: Asked = {}): Promise<Record<DeliveryState, number[]>> {
  const found = await Promise.all(STATES.map(async (is) => [is, await inState(store, is, asked)] as const))
  return Object.fromEntries(found) as Record<DeliveryState, number[]>
}

async function appendAll(store: Store, rows: readonly ItemFields[]): Promise<number[]> {
  const ids: number[] = []
  for (let n = 0; n < rows.length; n += 1000) {
    ids.push(...(await store.journal.append(rows.slice(n, n + 1000).map(item))).map(idOf))
  }
  await indexAll(store, { maxRows: 2000, maxBytes: 1 << 30 })
  return ids
}

const queueOf = (subscription = 'default') => ({ tenant: TENANT, subscription })

async function claim(store: Store, fields: Partial<ClaimRequest> = {}) {
  const now = fields.now ?? NOON
  const claimed = await store.processing.claim({
    ...queueOf(),
    limit: 200,
    maxBytes: 1 << 20,
    ordered: false,
    channelRef: null,
    leaseId: newUuid(),
    leaseExpiresAt: now + LEASE_MS,
    keyId: 'PPPPPPPPPP',
    maxAttempts: 3,
    now,
    ...fields,
  })
  return claimed!.map(({ event, leaseId }) => ({ id: event.id, leaseId }))
}

type Items = Awaited<ReturnType<typeof claim>>
const ack = (store: Store, items: Items, now = NOON, subscription = 'default') =>
  store.processing.ack({ ...queueOf(subscription), items, now })
const release = (store: Store, items: Items, maxAttempts: number, now = NOON) =>
  store.processing.release({
    ...queueOf(),
    items: items.map((one) => ({ ...one, delayMs: 0, error: 'no' })),
    maxAttempts,
    keyId: 'PPPPPPPPPP',
    jitter: 0,
    now,
  })

everyDriver(
  'an event is pending until it is claimed, then what became of it; a revision is nothing',
  async (database) => {
    const store = await database.open()
    const [a, b, c, d] = (await appendAll(store, [
      { sourceRef: 's' },
      { channelRef: 'x' },
      { channelRef: 'x' },
      {},
      { sourceRef: 's', body: { revised: true } },
    ])) as [number, number, number, number]
    const none = { leased: [], done: [], dead: [] }
    assert.deepEqual(await allStates(store), { ...none, pending: [d, c, b, a] }, 'nobody claimed yet')

    const claimed = await claim(store)
    assert.deepEqual(await allStates(store), { ...none, pending: [], leased: [d, c, b, a] })
    const [e] = (await appendAll(store, [{}])) as [number]
    assert.deepEqual(await inState(store, 'pending'), [e], 'not enqueued yet')

    const of = (id: number) => claimed.filter((one) => one.id === id)
    await ack(store, of(a))
    await release(store, of(b), 1)
    await release(store, of(d), 3)
    assert.deepEqual(await allStates(store), { pending: [e, d], leased: [c], done: [a], dead: [b] })
    const expired = { pending: [e, d, c], leased: [], done: [a], dead: [b] }
    assert.deepEqual(await allStates(store, { now: NOON + LEASE_MS - 1 }), { ...expired, pending: [e, d], leased: [c] })
    assert.deepEqual(await allStates(store, { now: NOON + LEASE_MS }), expired, 'the lease has expired')
    const states = await store.processing.states(queueOf(), [a, b, c, d, e], NOON + LEASE_MS)
    assert.deepEqual(Array.from(states).toSorted(), [
      [a, 'done'],
      [b, 'dead'],
      [c, 'pending'],
      [d, 'pending'],
    ])
    assert.deepEqual(await inState(store, 'pending', { filter: { kind: 'revision' } }), [])
    assert.deepEqual(await inState(store, 'pending', { filter: { sourceRef: 's' } }), [])
    assert.deepEqual(await inState(store, 'done', { filter: { sourceRef: 's' } }), [a])

    const filter = { ids: [b], channelRef: null, deadAfter: null, deadBefore: null }
    await store.processing.requeue({ ...queueOf(), filter, limit: 1, keyId: 'k', now: NOON })
    assert.deepEqual(await allStates(store), { pending: [e, d, b], leased: [c], done: [a], dead: [] })
    await store.index.requestRebuild()
    await indexAll(store)
    assert.deepEqual(await allStates(store), { pending: [e, d, b], leased: [c], done: [a], dead: [] }, 'reindexed')
  },
)

everyDriver('each subscription has its own states; what came before one has none', async (database) => {
  const store = await database.open()
  const before = await appendAll(store, [{}, {}])
  await store.processing.createSubscription(queueOf('late'), 'now', NOON)
  await store.processing.createSubscription(queueOf('all'), 'beginning', NOON)
  const [c] = (await appendAll(store, [{}])) as [number]
  const all = [c, ...before.toReversed()]
  await ack(store, await claim(store, { limit: 1 }))
  assert.deepEqual(await inState(store, 'done'), [before[0]])
  assert.deepEqual(await inState(store, 'pending'), [c, before[1]])
  assert.deepEqual(await inState(store, 'pending', { subscription: 'late' }), [c])
  assert.deepEqual(await inState(store, 'pending', { subscription: 'all' }), all)
  await ack(store, await claim(store, { subscription: 'late' }), NOON, 'late')
  const none = { pending: [], leased: [], done: [], dead: [] }
  assert.deepEqual(await allStates(store, { subscription: 'late' }), { ...none, done: [c] })
  assert.deepEqual(await allStates(store, { subscription: 'all' }), { ...none, pending: all })
  assert.deepEqual(await allStates(store, { subscription: 'nobody' }), none)
  await store.processing.deleteSubscription(queueOf('late'), NOON)
  assert.deepEqual(await allStates(store, { subscription: 'late' }), none)
})

/** Events in every state, and not enqueued yet, in turn over channels, addresses, words and times. */
async function mixedInbox(store: Store): Promise<Map<number, DeliveryState>> {
  const row = (n: number): ItemFields => ({
    sourceRef: `s${n}`,
    channelRef: n % 3 === 0 ? 'x' : null,
    receivedAt: NOON + ((n * 7) % 40),
    scope: n % 4 === 0 ? 'bot' : 'cf',
    body: { contact: { email: `u${n % 2}@example.org` }, message: { type: 'text', text: `word${n % 5}` } },
  })
  const ids = await appendAll(
    store,
    Array.from({ length: 40 }, (_, n) => row(n)),
  )
  const known = new Map<number, DeliveryState>(ids.map((id) => [id, 'pending']))
  const mark = (items: Items, state: DeliveryState) => {
    for (const { id } of items) known.set(id, state)
  }
  // Leases that expire before anybody asks, and ones that do not.
  const early = await claim(store, { now: NOON - LEASE_MS, limit: 4 })
  const claimed = await claim(store, { now: NOON - 1, limit: 30 })
  assert.ok(early.length === 4 && claimed.length > 20)
  const third = (n: number) => claimed.filter((_, at) => at % 3 === n)
  await ack(store, third(0), NOON - 1)
  await release(store, third(1), 1, NOON - 1)
  mark(third(0), 'done')
  mark(third(1), 'dead')
  mark(third(2), 'leased')
  const more = await appendAll(
    store,
    Array.from({ length: 10 }, (_, n) => row(40 + n)),
  )
  await store.journal.append([item({ ...row(41), body: { revised: 'word1' } })])
  await indexAll(store)
  for (const id of more) known.set(id, 'pending')
  return known
}

everyDriver('a state goes with every other filter, by pages of any size', async (database) => {
  const store = await database.open()
  const known = await mixedInbox(store)
  const filters: EventFilter[] = [
    {},
    { kind: 'event' },
    { channelRef: 'x' },
    { channelRef: 'nowhere' },
    { contactEmail: 'u1@example.org' },
    { sourceRef: 's9' },
    { sourceRef: 's41' },
    { words: ['word3'] },
    { words: ['word'], contactEmail: 'u0@example.org' },
    { receivedAfter: NOON + 10 },
    { receivedAfter: NOON + 10, receivedBefore: NOON + 30 },
    { receivedBefore: NOON + 20, channelRef: 'x' },
    { scope: 'bot' },
    { messageType: 'text', scope: 'cf', receivedAfter: NOON + 5 },
  ]
  const matches: Record<DeliveryState, number> = { pending: 0, leased: 0, done: 0, dead: 0 }
  for (const filter of filters) {
    const { events } = await store.inbox.events(TENANT, filter, null, 200)
    const all = events.map(({ event }) => event.id)
    for (const is of STATES) {
      const expected = all.filter((id) => known.get(id) === is)
      matches[is] += expected.length
      for (const limit of [1, 3, 200]) {
        const asked = `${is} ${JSON.stringify(filter)} by ${limit}`
        // A page also ends after SEARCH_MS: where the machine stood still for that long, it is read again.
        await until(`no page is partial: ${asked}`, async () => {
          const { ids, partials } = await pagesOf(store, is, { filter, limit })
          // Only a list that a time leads to is in its order; a state may lead in its place.
          const order = (list: readonly number[]) => list.toSorted((x, y) => y - x)
          assert.deepEqual(order(ids), order(expected), asked)
          if (is !== 'done') assert.deepEqual(ids, order(ids), `${asked} goes by id`)
          return partials === 0
        })
      }
    }
  }
  for (const is of STATES) assert.ok(matches[is] > 10, `${is} was hardly found`)
})

everyDriver('paging skips and repeats nothing while the subscription enqueues more', async (database) => {
  const store = await database.open()
  const ids = await appendAll(
    store,
    Array.from({ length: 12 }, () => ({})),
  )
  const seen: number[] = []
  let after: EventPosition | null = null
  do {
    const filter: EventFilter = { state: { is: 'pending', subscription: 'default', now: NOON } }
    const page = await store.inbox.events(TENANT, filter, after, 4)
    seen.push(...page.events.map(({ event }) => event.id))
    after = page.next
    // Enqueues all events, and gives back those it claimed.
    await release(store, await claim(store, { limit: 3, now: NOON }), 100, NOON)
    await appendAll(store, [{}])
  } while (after)
  assert.deepEqual(seen, ids.toReversed())
})

everyDriver('a tenant sees no state of another', async (database) => {
  const store = await database.open()
  await mixedInbox(store)
  const none = { pending: [], leased: [], done: [], dead: [] }
  for (const tenant of OTHERS) assert.deepEqual(await allStates(store, { tenant }), none)
  const [other] = OTHERS
  const own = (await store.journal.append([item({ ...other, channelRef: 'x' })])).map(idOf)
  await indexAll(store)
  assert.deepEqual(await allStates(store, { tenant: other }), { ...none, pending: own })
  assert.deepEqual(await inState(store, 'pending', { tenant: other, filter: { channelRef: 'x' } }), own)
})

everyDriver('beside another filter a state is looked for within the bound of a scan', async (database) => {
  const store = await database.open('tool')
  const total = SCAN_ROWS + 1500
  const rare = new Set([3, 700, total - 1])
  const ids = await appendAll(
    store,
    Array.from({ length: total }, (_, n) => ({ scope: rare.has(n) ? 'bot' : 'cf', channelRef: 'page' })),
  )
  const expected = [ids[total - 1]!, ids[700]!, ids[3]!]
  const scanned = await pagesOf(store, 'pending', { filter: { scope: 'bot' }, limit: 10 })
  assert.deepEqual(scanned.ids, expected)
  // It also stops after SEARCH_MS, so a slow machine may cut it into more pages.
  assert.ok(scanned.partials >= 1)
  assert.deepEqual(await pagesOf(store, 'done', { filter: { channelRef: 'page' }, limit: 10 }), {
    ids: [],
    partials: 1,
  })
  // What the state alone leads to is found at once.
  await ack(store, await claim(store, { limit: 2, ordered: true }))
  const done = await until('no page is partial', async () => {
    const pages = await pagesOf(store, 'done', { limit: 10 })
    return pages.partials === 0 && pages.ids
  })
  assert.deepEqual(done, [ids[1], ids[0]])
  assert.deepEqual(await pagesOf(store, 'dead', { limit: 10 }), { ids: [], partials: 0 })
  const pages = await pagesOf(store, 'pending', { limit: 200 })
  assert.deepEqual(pages, { ids: ids.slice(2).toReversed(), partials: 0 })
})
