// Conformance: the index. Every promise of src/store/contract/indexing.ts.

import assert from 'node:assert/strict'
import { newUuid } from '../../src/runtime/id.ts'
import type { IndexStepResult } from '../../src/store/contract/indexing.ts'
import type { Store } from '../../src/store/contract/store.ts'
import { backDoorOf } from './back-door.ts'
import { eraseEvent } from './erase-event.ts'
import { startChild } from './child.ts'
import { badItem, type ItemFields, idOf, item, NOON, TENANT } from './rows.ts'
import { append, everyDriver, everyStore, indexAll, stepOnce, stepWords, WIDE } from './suite.ts'

everyStore('on an empty database there is nothing to do', async (store) => {
  const progress = { cursor: 0, lag: 0, searchable: 0, searchLag: 0, clearing: false }
  const nothing = { ...progress, indexed: 0, unindexed: 0, unreadable: 0, more: false }
  assert.deepEqual(await store.index.progress(), progress)
  assert.deepEqual(await store.index.step(WIDE), nothing)
  assert.deepEqual(await stepWords(store), nothing)
})

everyStore('the lag counts journal rows and resends, and goes to 0', async (store) => {
  const id = await append(store, { sourceRef: 'a', body: '{}' })
  await store.journal.append(['{}', '{}', '{ }', '{ }'].map((body) => item({ sourceRef: 'a', body })))
  const [revision] = await store.events.revisions(id, 0, 1)
  const at = (cursor: number, lag: number, searchable: number, searchLag: number) => {
    return { cursor, lag, searchable, searchLag, clearing: false }
  }
  const last = revision!.id
  assert.deepEqual(await store.index.progress(), at(0, 5, 0, 2))
  const done = { indexed: 2, unindexed: 0, unreadable: 0, more: false }
  assert.deepEqual(await stepOnce(store), { ...at(last, 0, 0, 2), ...done })
  assert.deepEqual(await store.index.progress(), at(last, 0, 0, 2))
  assert.deepEqual(await stepWords(store), { ...at(last, 0, last, 0), ...done })
  assert.deepEqual(await store.index.progress(), at(last, 0, last, 0))
})

everyStore('an item that could not be stored is nothing the index waits for', async (store) => {
  for (const items of [
    [item(), badItem()],
    [badItem(), badItem()],
    [item({ sourceRef: 'a' }), item({ sourceRef: 'a' }), badItem()],
  ]) {
    await store.journal.append(items)
    assert.equal((await indexAll(store)).lag, 0)
    assert.equal((await store.index.progress()).lag, 0)
  }
})

everyStore('a step takes the next rows in id order, no more than it was told to', async (store) => {
  const ids = (await store.journal.append(Array.from({ length: 10 }, () => item()))).map(idOf)
  const steps: IndexStepResult[] = []
  await indexAll(store, { maxRows: 4, maxBytes: 1 << 20 }, (result) => steps.push(result))
  assert.deepEqual(
    steps.map(({ indexed, cursor, lag, more }) => ({ indexed, cursor, lag, more })),
    [
      { indexed: 4, cursor: ids[3], lag: 6, more: true },
      { indexed: 4, cursor: ids[7], lag: 2, more: true },
      { indexed: 2, cursor: ids[9], lag: 0, more: false },
    ],
  )
})

everyStore('a step stops at its bound of bytes, and takes a larger row alone', async (store) => {
  const kilobyte = JSON.stringify({ message: { text: 'x'.repeat(1000) } })
  const large = JSON.stringify({ message: { text: 'x'.repeat(50_000) } })
  const bodies = [large, kilobyte, kilobyte, kilobyte, kilobyte, kilobyte, large, large]
  await store.journal.append(bodies.map((body) => item({ body })))
  const taken: number[] = []
  await indexAll(store, { maxRows: 100, maxBytes: 2500 }, ({ indexed }) => taken.push(indexed))
  assert.ok(Math.max(...taken) <= 4, `a step of 2,500 bytes took ${Math.max(...taken)} rows of 1,000`)
  assert.ok(taken.every((count) => count >= 1))
  assert.equal(
    taken.reduce((sum, count) => sum + count),
    bodies.length,
  )
})

everyStore(
  'a step says that there is more while re-sends are left, and while a rebuild empties the index',
  async (store) => {
    const given = Array.from({ length: 5 }, (_, n) => item({ sourceRef: `ref:${n}` }))
    await store.journal.append(given)
    await indexAll(store)
    await store.journal.append(given.map((one) => ({ ...one, mintedKey: newUuid() })))
    const more: boolean[] = []
    await indexAll(store, { maxRows: 2, maxBytes: 1 << 20 }, (result) => more.push(result.more))
    assert.deepEqual(more, [true, true, false])
    await store.index.requestRebuild()
    const clearing = await store.index.step({ maxRows: 2, maxBytes: 1 << 20 })
    assert.deepEqual([clearing.clearing, clearing.more], [true, true])
  },
)

everyStore(
  'a row whose entry the database refuses is marked alone, and the rows behind it are indexed',
  async (store, database) => {
    const backDoor = backDoorOf(database.driver)
    const items = Array.from({ length: 9 }, (_, n) =>
      item({ channelRef: 'page', body: { contact: { name: `n${n}` } } }),
    )
    const ids = (await store.journal.append(items)).map(idOf)
    await backDoor.refuseEntry(database.url, 'n4')
    const result = await stepOnce(store)
    assert.deepEqual([result.indexed, result.unindexed, result.lag], [9, 1, 0])
    for (const [n, id] of ids.entries()) {
      const entry = await store.events.indexEntry((await store.events.find(id))!)
      assert.equal(entry?.unindexed !== null, n === 4)
      assert.equal(entry?.contactName, n === 4 ? null : `n${n}`)
      assert.equal(entry?.conversationId, ids[0])
    }
    assert.equal((await store.events.conversation(TENANT, 'page'))?.eventCount, 9)
    await indexAll(store)
    const before = await backDoor.dumpIndex(database.url)
    await store.index.requestRebuild()
    await indexAll(store)
    assert.deepEqual(await backDoor.dumpIndex(database.url), before)
  },
)

everyStore('an event is found by what it says of itself', async (store) => {
  const id = await append(store, {
    channelRef: 'page',
    body: {
      contact: { name: 'Ada', email: 'ada@example.org' },
      message: { type: 'lead', text: '  Hello,\n\n  world \t' },
      meta: { form_id: 12, page_url: 'https://example.org' },
    },
  })
  await indexAll(store)
  assert.deepEqual(await entryOf(store, id), {
    conversationId: id,
    contactName: 'Ada',
    contactEmail: 'ada@example.org',
    messageType: 'lead',
    snippet: 'Hello, world',
    warnings: [],
    unindexed: null,
  })
})

everyStore('a field of an unexpected type is a warning, never a reason to leave the event out', async (store) => {
  const id = await append(store, {
    body: { contact: [], message: { type: 5, text: {} }, meta: { form_id: '12', page_url: null } },
  })
  await indexAll(store)
  const entry = await entryOf(store, id)
  assert.equal(entry?.unindexed, null)
  assert.deepEqual(
    entry?.warnings.toSorted((a, b) => a.path.localeCompare(b.path)),
    [
      { path: '/contact', expected: 'object', got: 'array' },
      { path: '/message/text', expected: 'string', got: 'object' },
      { path: '/message/type', expected: 'string', got: 'number' },
      { path: '/meta/form_id', expected: 'integer', got: 'string' },
    ],
  )
})

everyStore('a conversation is the events of a channel_ref, its id the id of the first', async (store) => {
  const says = (name: string, text: string) => ({ contact: { name, email: `${name}@example.org` }, message: { text } })
  const first = await append(store, { channelRef: 'page', receivedAt: NOON, body: says('Ada', 'one') })
  await append(store, { channelRef: 'other', receivedAt: NOON + 1, body: says('Eve', 'elsewhere') })
  await append(store, { channelRef: 'page', receivedAt: NOON + 2, body: {} })
  const last = await append(store, { channelRef: 'page', receivedAt: NOON + 3, body: says('Bob', 'three') })
  const alone = await append(store, { channelRef: null })
  await indexAll(store, { maxRows: 2, maxBytes: 1 << 20 })
  assert.deepEqual(await store.events.conversation(TENANT, 'page'), {
    id: first,
    ...TENANT,
    channelRef: 'page',
    eventCount: 3,
    firstReceivedAt: NOON,
    lastEventId: last,
    lastReceivedAt: NOON + 3,
    firstContact: { name: 'Ada', email: 'Ada@example.org' },
    lastContact: { name: 'Bob', email: 'Bob@example.org' },
    lastSnippet: 'three',
  })
  assert.equal((await store.events.conversation(TENANT, 'other'))?.eventCount, 1)
  assert.equal((await entryOf(store, last))?.conversationId, first)
  assert.equal((await entryOf(store, alone))?.conversationId, null)
})

everyStore('re-sends and revisions are counted with their event and belong to no conversation', async (store) => {
  const id = await append(store, { sourceRef: 'a', channelRef: 'page', receivedAt: NOON, body: 'A' })
  const send = (body: string, receivedAt: number) =>
    store.journal.append([item({ sourceRef: 'a', channelRef: 'other', receivedAt, body })])
  await send('A', NOON + 9)
  await indexAll(store)
  await send('B', NOON + 3)
  await send('A', NOON + 4)
  await indexAll(store)
  await send('C', NOON + 5)
  await send('B', NOON + 6)
  await indexAll(store)
  const event = await store.events.find(id)
  assert.deepEqual(await store.events.repeats(event!), { resends: 3, revisions: 2, lastSeenAt: NOON + 9 })
  assert.equal((await store.events.conversation(TENANT, 'page'))?.eventCount, 1)
  assert.equal(await store.events.conversation(TENANT, 'other'), null)
  for (const row of await store.events.revisions(id, 0, 10)) {
    assert.equal((await store.events.indexEntry(row))?.conversationId, null)
  }
})

const JUNK: Record<string, Uint8Array> = {
  'no JSON at all': Buffer.from('name=Ada&text=hello'),
  'half a JSON object': Buffer.from('{"contact":{"name":"Ada"'),
  'not UTF-8': Uint8Array.from([0xff, 0xfe, 0x00, 0x80]),
  nothing: new Uint8Array(0),
  'a U+0000 outside of a string': Buffer.from('{"a":\0}'),
  'the JSON value null': Buffer.from('null'),
}
for (const [name, junk] of Object.entries(JUNK)) {
  everyStore(`a row that cannot be derived is marked and passed over: ${name}`, async (store, { url, driver }) => {
    const ids = (await store.journal.append(Array.from({ length: 5 }, () => item({ channelRef: 'page' })))).map(idOf)
    await backDoorOf(driver).smugglePayload(url, ids[2]!, junk)
    const result = await stepOnce(store)
    assert.deepEqual([result.indexed, result.unindexed, result.lag], [5, 1, 0])
    const marked = await entryOf(store, ids[2]!)
    assert.ok(marked?.unindexed, 'the reason is kept')
    assert.equal(marked.conversationId, ids[0])
    for (const id of [ids[0], ids[1], ids[3], ids[4]]) assert.equal((await entryOf(store, id!))?.unindexed, null)
    const conversation = await store.events.conversation(TENANT, 'page')
    assert.deepEqual([conversation?.eventCount, conversation?.lastEventId], [5, ids[4]])
    await append(store, { channelRef: 'page' })
    assert.equal((await stepOnce(store)).unindexed, 0)
    assert.equal((await store.events.conversation(TENANT, 'page'))?.eventCount, 6)
  })
}

everyStore('the reason why a row was passed over is text that every database can hold', async (store, database) => {
  const ids = (await store.journal.append(Object.keys(JUNK).map(() => item()))).map(idOf)
  for (const [n, junk] of Object.values(JUNK).entries()) {
    await backDoorOf(database.driver).smugglePayload(database.url, ids[n]!, junk)
  }
  assert.equal((await indexAll(store)).cursor, ids.at(-1))
  for (const [n, name] of Object.keys(JUNK).entries()) {
    const reason = (await entryOf(store, ids[n]!))?.unindexed
    assert.ok(reason?.isWellFormed() && !reason.includes('\0'), `${name}: ${JSON.stringify(reason)}`)
  }
})

everyStore('bytes that no longer match their digest are not indexed: no list shows them', async (store, database) => {
  const body = { message: { text: 'as it was sent' } }
  const ids = (await store.journal.append([1, 2].map(() => item({ channelRef: 'page', body })))).map(idOf)
  await indexAll(store)
  const other = Buffer.from(JSON.stringify({ message: { text: 'as it was spoilt' } }))
  await backDoorOf(database.driver).replacePayload(database.url, ids[1]!, other)
  await store.index.requestRebuild()
  await indexAll(store)
  const entry = await entryOf(store, ids[1]!)
  assert.deepEqual([entry?.snippet, entry?.conversationId], [null, ids[0]])
  assert.match(entry?.unindexed ?? '', /digest/)
  assert.equal((await entryOf(store, ids[0]!))?.snippet, 'as it was sent')
  assert.equal((await store.events.conversation(TENANT, 'page'))?.lastSnippet, null)
  assert.equal(await store.diagnosis.unindexed(), 1)
})

everyStore('an erased event keeps its place in the conversation, and nothing else', async (store, { url }) => {
  const body = { contact: { name: 'Ada', email: 'ada@example.org' }, message: { text: 'secret' } }
  const ids = (await store.journal.append([1, 2, 3].map(() => item({ channelRef: 'page', body })))).map(idOf)
  await indexAll(store)
  await eraseEvent(url, ids[2]!, NOON)
  await store.index.requestRebuild()
  await indexAll(store)
  const entry = await entryOf(store, ids[2]!)
  assert.deepEqual(
    [entry?.unindexed, entry?.contactName, entry?.snippet, entry?.conversationId],
    [null, null, null, ids[0]],
  )
  const conversation = await store.events.conversation(TENANT, 'page')
  assert.equal(conversation?.eventCount, 3)
  assert.deepEqual(conversation.lastContact, { name: null, email: null })
  assert.equal(conversation.lastSnippet, null)
})

everyStore('a rebuild arrives, row for row, at what was there before', async (store, { url, driver }) => {
  await fill(store)
  await indexAll(store, { maxRows: 7, maxBytes: 1 << 20 })
  const before = await backDoorOf(driver).dumpIndex(url)
  for (const maxRows of [1000, 3, 1]) {
    await store.index.requestRebuild()
    await indexAll(store, { maxRows, maxBytes: 1 << 20 })
    assert.deepEqual(await backDoorOf(driver).dumpIndex(url), before)
  }
})

everyStore('a rebuild starts by emptying in bounded steps, and touches no primary data', async (store, database) => {
  const backDoor = backDoorOf(database.driver)
  await fill(store)
  await indexAll(store)
  const journal = await backDoor.countJournal(database.url)
  // Words may go all at once: what holds them can be dropped whole.
  const rows = async () => {
    const { cursors: _c, event_words: _w, ...tables } = await backDoor.dumpIndex(database.url)
    return Object.values(tables).reduce((sum, table) => sum + table.length, 0)
  }
  await store.index.requestRebuild()
  let left = await rows()
  assert.ok(left > 30)
  let steps = 0
  for (;;) {
    const { clearing } = await store.index.progress()
    if (!clearing) break
    const result = await store.index.step({ maxRows: 10, maxBytes: 1 << 20 })
    assert.deepEqual([result.cursor, result.indexed], [0, 0])
    const now = await rows()
    assert.ok(left - now <= 10, `one step deleted ${left - now} rows`)
    left = now
    steps += 1
  }
  assert.equal(left, 0)
  assert.ok(steps > 3)
  assert.deepEqual((await backDoor.dumpIndex(database.url)).event_words, [])
  assert.deepEqual(await backDoor.countJournal(database.url), journal)
})

everyStore('asking for a rebuild again, at any point, starts it again', async (store, { url, driver }) => {
  await fill(store)
  await indexAll(store)
  const before = await backDoorOf(driver).dumpIndex(url)
  await store.index.requestRebuild()
  for (let n = 0; n < 30; n++) {
    await store.index.step({ maxRows: 5, maxBytes: 1 << 20 })
    if (n % 10 === 3) await store.index.requestRebuild()
  }
  await indexAll(store)
  assert.deepEqual(await backDoorOf(driver).dumpIndex(url), before)
})

everyDriver('a rebuild asked for in the middle of intake loses and doubles nothing', async (database) => {
  const server = await database.open('server')
  const tool = await database.open('tool')
  let sending = true
  const intake = async (): Promise<void> => {
    for (let n = 0; n < 60; n++) await fill(server, `${n}-`, 4)
    sending = false
  }
  const index = async (): Promise<void> => {
    for (let n = 0; sending; n++) {
      await server.index.step({ maxRows: 9, maxBytes: 1 << 20 })
      if (n % 25 === 10) await tool.index.requestRebuild()
    }
  }
  await Promise.all([intake(), index()])
  await indexAll(server)
  const arrived = await backDoorOf(database.driver).dumpIndex(database.url)
  await server.index.requestRebuild()
  await indexAll(server)
  assert.deepEqual(arrived, await backDoorOf(database.driver).dumpIndex(database.url))
})

everyDriver('several runners at once index no row twice', async (database) => {
  const runners = [await database.open('server'), await database.open('tool'), await database.open('tool')]
  await fill(runners[0]!, '', 300)
  let indexed = 0
  const run = (store: Store) =>
    indexAll(store, { maxRows: 3, maxBytes: 1 << 20 }, (result) => {
      indexed += result.indexed
    })
  await Promise.all(runners.map(run))
  const { events } = await backDoorOf(database.driver).countJournal(database.url)
  assert.equal(indexed, events)
  const together = await backDoorOf(database.driver).dumpIndex(database.url)
  await runners[0]!.index.requestRebuild()
  await indexAll(runners[0]!)
  assert.deepEqual(await backDoorOf(database.driver).dumpIndex(database.url), together)
})

everyDriver('two processes that index at once index no row twice', async (database, t) => {
  const store = await database.open('tool')
  await fill(store, '', 900)
  const children = [
    startChild(t, 'index', database.url, 'tool', '3'),
    startChild(t, 'index', database.url, 'server', '3'),
  ]
  for (const child of children) {
    await child.line('done')
    assert.equal((await child.exited).code, 0)
  }
  const together = await backDoorOf(database.driver).dumpIndex(database.url)
  await store.index.requestRebuild()
  await indexAll(store)
  assert.deepEqual(await backDoorOf(database.driver).dumpIndex(database.url), together)
})

everyDriver('several runners at once carry out one rebuild', async (database) => {
  const runners = [await database.open('server'), await database.open('tool')]
  await fill(runners[0]!, '', 100)
  await indexAll(runners[0]!)
  const before = await backDoorOf(database.driver).dumpIndex(database.url)
  await runners[1]!.index.requestRebuild()
  await Promise.all(runners.map((store) => indexAll(store, { maxRows: 3, maxBytes: 1 << 20 })))
  assert.deepEqual(await backDoorOf(database.driver).dumpIndex(database.url), before)
})

everyDriver('the place of the index outlives the store', async (database) => {
  const first = await database.open('server')
  await fill(first)
  const { cursor } = await stepOnce(first, { maxRows: 10, maxBytes: 1 << 20 })
  await first.close()
  const second = await database.open('tool')
  assert.equal((await second.index.progress()).cursor, cursor)
  assert.ok((await stepOnce(second, { maxRows: 10, maxBytes: 1 << 20 })).cursor > cursor)
})

/** Rows of every sort: two tenants, conversations, lone events, duplicates, revisions, re-sent revisions, warnings. */
async function fill(store: Store, prefix = '', count = 40): Promise<void> {
  const items: ItemFields[] = []
  for (let n = 0; n < count; n++) {
    const common = {
      accountId: 7 + (n % 2),
      channelRef: n % 5 === 0 ? null : `page ${n % 3}`,
      sourceRef: n % 4 === 0 ? null : `${prefix}${n - (n % 3)}`,
      receivedAt: NOON + n,
    }
    const text = `text ${n % 6 === 5 ? n - 1 : n}`
    items.push({ ...common, body: { contact: n % 7 === 0 ? [] : { name: `Ada ${n}` }, message: { text } } })
    if (n % 3 === 0) items.push(items.at(-1)!)
  }
  await store.journal.append(items.map((fields) => item(fields)))
}

async function entryOf(store: Store, id: number) {
  const event = await store.events.find(id)
  assert.ok(event)
  return store.events.indexEntry(event)
}
