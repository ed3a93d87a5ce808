// Reading the inbox: both stores list, filter, search and page alike, and never beyond a tenant.

import assert from 'node:assert/strict'
import { SCAN_ROWS } from '../../src/model/event-list.ts'
import { cutWords } from '../../src/model/text-search.ts'
import type { EventFilter, EventPosition } from '../../src/store/contract/inbox.ts'
import type { Store } from '../../src/store/contract/store.ts'
import { eraseEvent } from './erase-event.ts'
import { type ItemFields, idOf, item, NOON, TENANT } from './rows.ts'
import { append, everyDriver, indexAll } from './suite.ts'

const OTHERS = [
  { accountId: 8, companyId: 42 },
  { accountId: 7, companyId: 43 },
  { accountId: 42, companyId: 7 },
  { accountId: 7, companyId: 4 },
  { accountId: 77, companyId: 42 },
] as const

const message = (text: string, name = 'Ada', email = 'ada@example.org') => ({
  contact: { name, email },
  message: { type: 'text', text },
})

/** All pages from the first to the last, and how many of them were partial. */
async function allPages(
  store: Store,
  filter: EventFilter,
  limit: number,
  tenant: { accountId: number; companyId: number } = TENANT,
): Promise<{ ids: number[]; partials: number; sizes: number[] }> {
  const ids: number[] = []
  const sizes: number[] = []
  let partials = 0
  let after: EventPosition | null = null
  for (let pages = 0; pages < 1000; pages++) {
    const page = await store.inbox.events(tenant, filter, after, limit)
    ids.push(...page.events.map(({ event }) => event.id))
    sizes.push(page.events.length)
    if (page.partial) partials += 1
    else if (page.next !== null) assert.equal(page.events.length, limit, 'a page that is not partial is full')
    if (page.next === null) {
      assert.equal(page.partial, false)
      return { ids, partials, sizes }
    }
    after = page.next
  }
  throw new Error('there is no end to the pages')
}

const listed = async (store: Store, filter: EventFilter, limit = 200) => (await allPages(store, filter, limit)).ids
const found = (store: Store, q: string) => listed(store, { words: cutWords(q) })

async function appendAll(store: Store, items: readonly ItemFields[]): Promise<number[]> {
  const ids: number[] = []
  for (let n = 0; n < items.length; n += 1000) {
    ids.push(...(await store.journal.append(items.slice(n, n + 1000).map(item))).map(idOf))
  }
  return ids
}

everyDriver('events are listed newest first, in pages without gap or repeat while more arrive', async (database) => {
  const store = await database.open()
  const ids = await appendAll(
    store,
    Array.from({ length: 25 }, () => ({})),
  )
  await indexAll(store)
  const seen: number[] = []
  let after: EventPosition | null = null
  do {
    const page = await store.inbox.events(TENANT, {}, after, 4)
    seen.push(...page.events.map(({ event }) => event.id))
    after = page.next
    await append(store)
    await indexAll(store)
  } while (after)
  assert.deepEqual(seen, ids.toReversed())
  const page = await store.inbox.events(TENANT, {}, null, 25 + seen.length)
  assert.equal(page.next, null)
  assert.equal(page.partial, false)
})

everyDriver('a listed event has its metadata and what the index found', async (database) => {
  const store = await database.open()
  const id = await append(store, { channelRef: 'page', sourceRef: 'r', body: message('Hello'), traceparent: '00-a' })
  await indexAll(store)
  const { events } = await store.inbox.events(TENANT, {}, null, 10)
  assert.deepEqual(events, [
    {
      event: await store.events.find(id),
      entry: {
        conversationId: id,
        contactName: 'Ada',
        contactEmail: 'ada@example.org',
        messageType: 'text',
        snippet: 'Hello',
        warnings: [],
        unindexed: null,
      },
    },
  ])
})

everyDriver('every filter finds its events, alone and with others', async (database) => {
  const store = await database.open()
  const [a, b, c, d] = (await appendAll(store, [
    { channelRef: 'x', sourceRef: 's1', receivedAt: NOON, body: message('one', 'Ada', 'Ada@Example.org') },
    { channelRef: 'y', receivedAt: NOON + 10, keyId: 'BBBBBBBBBB', body: message('two', 'Bob', 'bob@example.org') },
    { channelRef: 'x', receivedAt: NOON + 5, scope: 'bot', body: { message: { type: 'image' } } },
    { receivedAt: NOON + 5, body: message('four', 'Ada', 'ADA@EXAMPLE.ORG') },
  ])) as [number, number, number, number]
  await store.journal.append([item({ sourceRef: 's1', channelRef: 'x', receivedAt: NOON + 20, body: message('rev') })])
  await indexAll(store)
  const [revision] = await store.inbox.revisions(TENANT, a, 0, 10)
  const r = revision!.event.id
  const cases: [EventFilter, number[]][] = [
    [{}, [r, d, c, b, a]],
    [{ channelRef: 'x' }, [c, a]],
    [{ channelRef: 'nowhere' }, []],
    [{ contactEmail: 'ada@EXAMPLE.org' }, [r, d, a]],
    [{ contactEmail: 'nobody@example.org' }, []],
    [{ sourceRef: 's1' }, [r, a]],
    [{ sourceRef: 's1', kind: 'event' }, [a]],
    [{ sourceRef: 's1', kind: 'revision' }, [r]],
    [{ sourceRef: 'S1' }, []],
    [{ kind: 'revision' }, [r]],
    [{ kind: 'event' }, [d, c, b, a]],
    [{ receivedAfter: NOON + 5 }, [r, b, d, c]],
    [{ receivedBefore: NOON + 5 }, [a]],
    [{ receivedAfter: NOON + 5, receivedBefore: NOON + 20 }, [b, d, c]],
    [{ receivedAfter: NOON + 5, channelRef: 'x' }, [c]],
    [{ receivedBefore: NOON + 5, contactEmail: 'ada@example.org' }, [a]],
    [{ scope: 'bot' }, [c]],
    [{ keyId: 'BBBBBBBBBB' }, [b]],
    [{ messageType: 'image' }, [c]],
    [{ messageType: 'text', channelRef: 'x' }, [a]],
    [{ messageType: 'text', receivedAfter: NOON + 6 }, [r, b]],
    [{ words: ['ada'], channelRef: 'x' }, [a]],
    [{ words: ['ada'], scope: 'bot' }, []],
    [{ words: ['ada'], contactEmail: 'ada@example.org', kind: 'event' }, [d, a]],
    [{ sourceRef: 's1', words: ['rev'] }, [r]],
    [{ sourceRef: 's1', words: ['ada'], kind: 'event' }, [a]],
    [{ sourceRef: 's1', words: ['two'] }, []],
  ]
  for (const [filter, expected] of cases) {
    for (const limit of [1, 2, 200]) {
      assert.deepEqual(await listed(store, filter, limit), expected, `${JSON.stringify(filter)} by ${limit}`)
    }
  }
})

everyDriver('a tenant sees nothing of another, whatever it asks for', async (database) => {
  const store = await database.open()
  const fields = { channelRef: 'page', sourceRef: 'ref', receivedAt: NOON, body: message('secret words') }
  const first = await append(store, fields)
  await store.journal.append([item({ ...fields, body: message('secret revision') })])
  await indexAll(store)
  const filters: EventFilter[] = [
    {},
    { channelRef: 'page' },
    { contactEmail: 'ada@example.org' },
    { sourceRef: 'ref' },
    { kind: 'revision' },
    { receivedAfter: 0 },
    { scope: 'cf' },
    { words: ['secret'] },
    { words: ['ada'], kind: 'event' },
  ]
  for (const filter of filters) {
    assert.notDeepEqual(await listed(store, filter), [], JSON.stringify(filter))
    for (const tenant of OTHERS) assert.deepEqual((await allPages(store, filter, 10, tenant)).ids, [])
  }
  for (const tenant of OTHERS) {
    assert.deepEqual(await store.inbox.revisions(tenant, first, 0, 10), [])
    assert.deepEqual(await store.inbox.conversations(tenant, Number.MAX_SAFE_INTEGER, 10), [])
    assert.equal(await store.inbox.conversation(tenant, first), null)
    assert.deepEqual(await store.inbox.conversationEvents(tenant, first, 0, 10), [])
  }
})

const ODD_TEXTS = [
  'Grüße aus Köln, Straße 5',
  'İstanbul ve ısparta',
  'Καλημέρα κόσμε, ΟΔΟΣ',
  'Привет, мир',
  '東京都に行きました',
  'ｆｕｌｌ ｗｉｄｔｈ',
  'done 😀👍🏽 yes',
  "Robert'); DROP TABLE events;--",
  'quotes " and \' and \\ and * and : and |',
  'NEAR AND OR NOT',
  `${'a'.repeat(100)} ${'b'.repeat(39)}`,
  'rock\u00adn\u00adroll e\u0301clair',
  'x\u0000y \ud800 z',
  '42.7.0.hello',
  '한국어 문장',
  'שלום مرحبا',
]

everyDriver('a search folds case and accents, and every word must begin a word of the event', async (database) => {
  const store = await database.open()
  const ids = await appendAll(
    store,
    ODD_TEXTS.map((text) => ({ body: message(text, 'N', 'n@n.test') })),
  )
  await indexAll(store)
  const at = (n: number) => [ids[n]!]
  const cases: [string, number[]][] = [
    ['gruss', at(0)],
    ['russ', []],
    ['GRUSSE koln', at(0)],
    ['strasse', at(0)],
    ['STRAẞE 5', at(0)],
    ['istanbul ISPARTA', at(1)],
    ['ıstan', at(1)],
    ['καλημερα', at(2)],
    ['οδος', at(2)],
    ['ПРИВЕТ ми', at(3)],
    ['привет м', []],
    ['東京', at(4)],
    ['京都', at(4)],
    ['都', at(4)],
    ['行きました', at(4)],
    ['京東', []],
    ['full wid', at(5)],
    ['😀', at(6)],
    ['👍 done', at(6)],
    ["Robert'); DROP TABLE", at(7)],
    ['drop table nothing', []],
    ['quotes colon', []],
    ['quotes and', at(8)],
    ['near not or', at(9)],
    ['a'.repeat(100), at(10)],
    ['a'.repeat(60), at(10)],
    ['b'.repeat(40), []],
    ['eclair', at(11)],
    ['42.7.0.hello', at(13)],
    ['한국', at(14)],
    ['שלום مرحبا', at(15)],
    ['test n', ids.toReversed()],
  ]
  for (const [q, expected] of cases) assert.deepEqual(await found(store, q), expected, q)
  for (const [n, text] of ODD_TEXTS.entries()) assert.ok((await found(store, text)).includes(ids[n]!), text)
})

everyDriver('a word of name, e-mail or text is found; an erased or rebuilt event as it is then', async (database) => {
  const store = await database.open()
  const id = await append(store, { body: message('Do you ship to Malta?', 'Grace Hopper', 'grace.h@navy.test') })
  await append(store, { body: { message: { text: 'another' }, meta: { note: 'Malta' } } })
  await indexAll(store)
  for (const q of ['grace', 'hop', 'navy', 'grace.h@navy.test', 'malta', 'gra mal nav']) {
    assert.deepEqual(await found(store, q), [id], q)
  }
  for (const q of ['opper', 'alta', 'grace another']) assert.deepEqual(await found(store, q), [], q)
  await store.index.requestRebuild()
  await indexAll(store)
  assert.deepEqual(await found(store, 'malta'), [id])
  // An erased one keeps its place in the list, and none of its words.
  await eraseEvent(database.url, id, NOON)
  await store.index.requestRebuild()
  await indexAll(store)
  assert.deepEqual(await found(store, 'malta'), [])
  assert.ok((await listed(store, {})).includes(id))
})

everyDriver('a scan stops after its bound, says so, and goes on from there', async (database) => {
  const store = await database.open('tool')
  const total = SCAN_ROWS + 1500
  const rare = new Set([3, 700, total - 1])
  const ids = await appendAll(
    store,
    Array.from({ length: total }, (_, n) => ({
      scope: rare.has(n) ? 'bot' : 'cf',
      channelRef: 'page',
      receivedAt: NOON + n,
      body: message(`word${n}`),
    })),
  )
  await indexAll(store, { maxRows: 2000, maxBytes: 1 << 30 })
  const expected = [ids[total - 1]!, ids[700]!, ids[3]!]
  const filters: EventFilter[] = [{}, { channelRef: 'page' }, { receivedAfter: 0 }, { words: ['wor'] }]
  for (const filter of filters) {
    const { ids: seen, partials, sizes } = await allPages(store, { ...filter, scope: 'bot' }, 10)
    assert.deepEqual(seen, expected, JSON.stringify(filter))
    // A search for words also stops after SEARCH_MS, so a slow machine may cut it into more pages.
    if (filter.words) assert.ok(partials >= 1)
    else assert.deepEqual([partials, sizes], [1, [1, 2]])
  }
  const { ids: none, partials } = await allPages(store, { messageType: 'image' }, 10)
  assert.deepEqual([none, partials], [[], 1])
  const word7 = ids.filter((_, n) => `word${n}`.startsWith('word7')).toReversed()
  assert.deepEqual(await listed(store, { words: ['word7'], channelRef: 'page' }), word7)
  // What an index leads to is never partial, however many there are.
  assert.deepEqual(await allPages(store, { channelRef: 'page' }, 1000), {
    ids: ids.toReversed(),
    partials: 0,
    sizes: Array.from({ length: Math.ceil(total / 1000) }, (_, page) => Math.min(1000, total - page * 1000)),
  })
})

everyDriver('conversations come by latest activity, with their counts and contacts', async (database) => {
  const store = await database.open()
  const [a1, b1, a2] = (await appendAll(store, [
    { channelRef: 'a', receivedAt: NOON, body: message('first', 'Ada', 'ada@a.test') },
    { channelRef: 'b', receivedAt: NOON + 1, body: message('middle') },
    { channelRef: 'a', receivedAt: NOON + 2, body: message('last', 'Bob', 'bob@a.test') },
    { body: message('alone') },
  ])) as [number, number, number]
  await indexAll(store)
  const list = await store.inbox.conversations(TENANT, Number.MAX_SAFE_INTEGER, 10)
  assert.deepEqual(
    list.map(({ id, channelRef, eventCount, lastEventId, firstContact, lastContact, lastSnippet }) => [
      id,
      channelRef,
      eventCount,
      lastEventId,
      firstContact.name,
      lastContact.email,
      lastSnippet,
    ]),
    [
      [a1, 'a', 2, a2, 'Ada', 'bob@a.test', 'last'],
      [b1, 'b', 1, b1, 'Ada', 'ada@example.org', 'middle'],
    ],
  )
  assert.deepEqual(await store.inbox.conversations(TENANT, a2, 10), [list[1]])
  assert.deepEqual(await store.inbox.conversation(TENANT, a1), list[0])
  // The id of an event that is not its first is not the id of a conversation.
  assert.equal(await store.inbox.conversation(TENANT, a2), null)
  const events = async (after: number, limit: number) =>
    (await store.inbox.conversationEvents(TENANT, a1, after, limit)).map(({ event }) => event.id)
  assert.deepEqual(await events(0, 10), [a1, a2])
  assert.deepEqual(await events(0, 1), [a1])
  assert.deepEqual(await events(a1, 10), [a2])
})

everyDriver('revisions come oldest first, by pages', async (database) => {
  const store = await database.open()
  const first = await append(store, { sourceRef: 'r', body: { n: 0 } })
  for (let n = 1; n <= 5; n++) await store.journal.append([item({ sourceRef: 'r', body: { n } })])
  await indexAll(store)
  const all = await store.inbox.revisions(TENANT, first, 0, 10)
  const ids = all.map(({ event }) => event.id)
  assert.equal(ids.length, 5)
  assert.deepEqual(
    ids,
    ids.toSorted((x, y) => x - y),
  )
  assert.deepEqual(await store.inbox.revisions(TENANT, first, ids[1]!, 2), all.slice(2, 4))
})

everyDriver('coverage tells how far the index is behind what was given out', async (database) => {
  const store = await database.open()
  const id = await append(store, { sourceRef: 'r' })
  await store.journal.append([item({ sourceRef: 'r' })])
  const before = await store.inbox.coverage()
  assert.ok(before.newest.events >= id)
  assert.equal(before.newest.resends, 1)
  assert.deepEqual(before.covered, { events: 0, resends: 0, words: 0 })
  await indexAll(store)
  const after = await store.inbox.coverage()
  assert.ok(after.covered.events >= before.newest.events && after.covered.resends >= before.newest.resends)
  assert.ok(after.covered.words >= before.newest.events)
})
