// Conformance: following the journal. Every promise of src/store/contract/follow.ts.

import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import type { Store } from '../../src/store/contract/store.ts'
import { badItem, idOf, item, NOON, TENANT } from './rows.ts'
import { append, everyDriver, everyStore, indexAll } from './suite.ts'

const OTHER = { accountId: 8, companyId: 42 } as const

/** Every id from a cursor on, page by page. */
async function follow(store: Store, from: number, limit: number): Promise<{ ids: number[]; through: number }> {
  const ids: number[] = []
  for (let through = from; ; ) {
    const page = await store.follow.after(TENANT, through, limit)
    ids.push(...page.events.map(({ id }) => id))
    if (page.through === through) return { ids, through }
    through = page.through
  }
}

everyStore('an empty journal has nothing to follow', async (store) => {
  assert.deepEqual(await store.follow.head(), { newest: 0, indexed: 0 })
  assert.deepEqual(await store.follow.after(TENANT, 0, 10), { events: [], through: 0 })
  assert.deepEqual(await store.follow.tenantsBetween(0, 100), [])
})

everyStore('a followed event tells what is known of it, a revision what it revises', async (store) => {
  const body = '{"contact":{"name":"Ada","email":"a@b.example"},"message":{"type":"text","text":"Hello  there"}}'
  const first = item({ sourceRef: 'a:1', channelRef: 'page', body })
  const second = item({ sourceRef: 'a:1', channelRef: 'page', body: '{}' })
  const id = idOf((await store.journal.append([first]))[0])
  await store.journal.append([second])
  await indexAll(store)
  const { events } = await store.follow.after(TENANT, 0, 10)
  const digest = (text: string) => hash('sha256', text, 'hex')
  const shown = events.map(({ sha256, ...rest }) => ({ ...rest, sha256: Buffer.from(sha256).toString('hex') }))
  const common = { receivedAt: NOON, sourceRef: 'a:1', channelRef: 'page', scope: 'cf', keyId: 'AAAAAAAAAA' }
  assert.deepEqual(shown, [
    {
      ...common,
      id,
      kind: 'event',
      revises: null,
      conversationId: id,
      contactName: 'Ada',
      contactEmail: 'a@b.example',
      messageType: 'text',
      snippet: 'Hello there',
      size: Buffer.byteLength(body),
      sha256: digest(body),
      erasedAt: null,
      requestId: first.requestId,
    },
    {
      ...common,
      id: events[1]!.id,
      kind: 'revision',
      revises: id,
      conversationId: null,
      contactName: null,
      contactEmail: null,
      messageType: null,
      snippet: null,
      size: 2,
      sha256: digest('{}'),
      erasedAt: null,
      requestId: second.requestId,
    },
  ])
})

everyStore('pages of any size hold every row of the tenant once, in order, and none of another', async (store) => {
  const mine: number[] = []
  for (let n = 0; n < 25; n++) {
    const id = await append(store, { body: `${n}`, ...(n % 3 === 0 ? OTHER : {}) })
    if (n % 3 !== 0) mine.push(id)
  }
  await store.journal.append([badItem(), item(OTHER)])
  await indexAll(store)
  const { newest, indexed } = await store.follow.head()
  assert.equal(indexed, newest)
  for (const limit of [1, 2, 7, 100]) assert.deepEqual(await follow(store, 0, limit), { ids: mine, through: newest })
  assert.deepEqual(await follow(store, mine[4]!, 3), { ids: mine.slice(5), through: newest })
  assert.deepEqual((await store.follow.after({ accountId: 42, companyId: 7 }, 0, 10)).events, [])
})

everyStore('a cursor beyond the newest row stays where it is', async (store) => {
  await append(store)
  await indexAll(store)
  assert.deepEqual(await store.follow.after(TENANT, 1_000_000, 10), { events: [], through: 1_000_000 })
})

everyStore('what is stored after asking for the newest has a higher id', async (store) => {
  await append(store)
  await indexAll(store)
  const { newest } = await store.follow.head()
  assert.ok((await append(store)) > newest)
})

everyStore('nothing is told before it is indexed, and the cursor does not move past it', async (store) => {
  const known = await append(store)
  await indexAll(store)
  const before = await store.follow.after(TENANT, 0, 10)
  assert.deepEqual(
    before.events.map(({ id }) => id),
    [known],
  )
  const next = await append(store)
  const page = await store.follow.after(TENANT, before.through, 10)
  assert.deepEqual(page, { events: [], through: before.through })
  await indexAll(store)
  assert.deepEqual((await follow(store, before.through, 10)).ids, [next])
})

everyStore('a rebuild neither repeats nor skips for a cursor that stands still meanwhile', async (store) => {
  const ids: number[] = []
  for (let n = 0; n < 12; n++) ids.push(await append(store, { body: `${n}` }))
  await indexAll(store)
  const half = ids[5]!
  await store.index.requestRebuild()
  const seen: number[] = []
  let cursor = half
  await indexAll(store, { maxRows: 2, maxBytes: 1 << 20 }, () => {})
  // Once more, looking after every single step of it.
  await store.index.requestRebuild()
  for (let lag = 1; lag > 0; ) {
    const page = await store.follow.after(TENANT, cursor, 3)
    seen.push(...page.events.map(({ id }) => id))
    assert.ok(page.through >= cursor)
    cursor = page.through
    const step = await store.index.step({ maxRows: 2, maxBytes: 1 << 20 })
    lag = step.clearing ? 1 : step.lag
  }
  seen.push(...(await follow(store, cursor, 3)).ids)
  assert.deepEqual(seen, ids.slice(6))
})

everyStore('the tenants between two ids are those that have rows there', async (store) => {
  const first = await append(store)
  const second = await append(store, OTHER)
  const third = await append(store)
  await indexAll(store)
  const between = async (after: number, through: number) =>
    (await store.follow.tenantsBetween(after, through)).map(({ accountId }) => accountId).toSorted()
  assert.deepEqual(await between(0, third), [7, 8])
  assert.deepEqual(await between(first, second), [8])
  assert.deepEqual(await between(second, third), [7])
  assert.deepEqual(await between(third, third + 100), [])
})

everyDriver('a follower beside the one that writes and indexes sees every row once, in order', async (database) => {
  const writer = await database.open('server')
  const reader = await database.open('tool')
  const seen: number[] = []
  let cursor = 0
  const look = async () => {
    const page = await reader.follow.after(TENANT, cursor, 5)
    seen.push(...page.events.map(({ id }) => id))
    cursor = page.through
  }
  const ids: number[] = []
  for (let n = 0; n < 100; n++) {
    const outcomes = await writer.journal.append([item({ body: `${n}` }), item(OTHER), item({ body: `${n}'` })])
    ids.push(idOf(outcomes[0]), idOf(outcomes[2]))
    await Promise.all([writer.index.step({ maxRows: 2, maxBytes: 1 << 20 }), look()])
  }
  await indexAll(writer)
  seen.push(...(await follow(reader, cursor, 50)).ids)
  assert.deepEqual(
    seen,
    ids.toSorted((a, b) => a - b),
  )
})
