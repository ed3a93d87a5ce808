// Pages of lists as JSON: they show what the inbox has, have bounded bytes and are made in bounded steps.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eventView } from '../../src/model/event-view.ts'
import type { StoredRefusal } from '../../src/model/refusal.ts'
import type { EventFilter, EventPosition } from '../../src/store/contract/inbox.ts'
import type { JsonPage } from '../../src/store/contract/lists.ts'
import { createJsonPages, MAX_PAGE_BYTES, STEP_BYTES } from '../../src/store/json-pages.ts'
import { NOON, refusal, TENANT } from './rows.ts'
import { append, everyDriver, indexAll } from './suite.ts'

const NEWEST = Number.MAX_SAFE_INTEGER
const EVENTS = 120
/** Control characters: each takes six bytes of JSON. */
const WIDE_REF = '\u0001'.repeat(500)

const entriesOf = (page: JsonPage) => JSON.parse(Buffer.from(page.entries).toString()) as { readonly id: number }[]

/** The ids of all pages, none of which may exceed the limits. */
async function idsOfAllPages(limit: number, read: (after: EventPosition | null) => Promise<JsonPage>) {
  const ids: number[] = []
  let pages = 0
  for (let after: EventPosition | null = null; pages === 0 || after !== null; pages++) {
    const page = await read(after)
    const entries = entriesOf(page)
    assert.ok(entries.length <= limit)
    assert.ok(page.entries.length <= MAX_PAGE_BYTES + EVENTS + 2, `${page.entries.length} bytes`)
    ids.push(...entries.map(({ id }) => id))
    after = page.next
  }
  return { ids, pages }
}

everyDriver('pages end at their limit of bytes, and the next one goes on where they ended', async (database) => {
  const store = await database.open()
  const ids: number[] = []
  for (let n = 0; n < EVENTS; n++) ids.push(await append(store, { channelRef: WIDE_REF, receivedAt: NOON + n }))
  await indexAll(store)
  const filters: readonly EventFilter[] = [
    {},
    { receivedAfter: NOON },
    { state: { is: 'pending', subscription: 'default', now: NOON } },
  ]
  for (const filter of filters) {
    const all = await idsOfAllPages(200, (after) => store.lists.events(TENANT, filter, after, 200, NOON))
    assert.deepEqual(all.ids, ids.toReversed(), JSON.stringify(filter))
    assert.ok(all.pages > 1, 'the events do not fit into one page')
  }
  const conversation = await idsOfAllPages(200, (after) =>
    store.lists.conversationEvents(TENANT, ids[0]!, after?.id ?? 0, 200, NOON),
  )
  assert.deepEqual(conversation.ids, ids)
  assert.ok(conversation.pages > 1)
  const few = await idsOfAllPages(50, (after) => store.lists.events(TENANT, {}, after, 50, NOON))
  assert.deepEqual(
    [few.ids, few.pages],
    [ids.toReversed(), 3],
    'control: fewer events than fit end at the limit of rows',
  )
})

everyDriver('a page shows each event as the inbox has it, and an empty list is one', async (database) => {
  const store = await database.open()
  for (let n = 0; n < 3; n++) await append(store, { channelRef: `c${n}` })
  await indexAll(store)
  const { events } = await store.inbox.events(TENANT, {}, null, 3)
  const page = await store.lists.events(TENANT, {}, null, 3, NOON)
  assert.deepEqual(entriesOf(page), JSON.parse(JSON.stringify(events.map((row) => eventView(row, 'pending')))))
  assert.equal(page.next, null)
  assert.deepEqual(entriesOf(await store.lists.events(TENANT, { keyId: 'nobody' }, null, 3, NOON)), [])
  assert.equal(entriesOf(await store.lists.conversations(TENANT, NEWEST, 2)).length, 2)
  assert.deepEqual(entriesOf(await store.lists.conversations({ ...TENANT, companyId: 1 }, NEWEST, 2)), [])
})

test('a page is made in steps, and refusals are read a few at a time', async () => {
  const reads: number[] = []
  const pagesOf = (bodyBytes: number) => {
    const counted = { turns: 0 }
    const all = Array.from({ length: 40 }, (_, n): StoredRefusal => {
      return { ...refusal({ body: Buffer.alloc(bodyBytes, 'x') }), id: n + 1, acceptedAs: null }
    }).toReversed()
    const unused = () => assert.fail('not a list of refusals')
    const pages = createJsonPages({
      inbox: { events: unused, revisions: unused, conversations: unused, conversationEvents: unused },
      states: unused,
      lastErrors: unused,
      counts: unused,
      refusals: (_, beforeId, limit) => {
        reads.push(limit)
        return all.filter(({ id }) => id < beforeId).slice(0, limit)
      },
      turn: async () => void counted.turns++,
    })
    return { counted, pages }
  }
  const large = pagesOf(STEP_BYTES)
  const page = await large.pages.refusals(TENANT, NEWEST, 40)
  const shown = entriesOf(page).length
  assert.ok(shown * STEP_BYTES <= MAX_PAGE_BYTES && shown > 1, `${shown} refusals`)
  assert.ok(large.counted.turns >= shown - 1, `${large.counted.turns} turns`)
  assert.ok(Math.max(...reads) <= 17)
  const rest = await idsOfAllPages(40, (after) => large.pages.refusals(TENANT, after?.id ?? NEWEST, 40))
  assert.equal(new Set(rest.ids).size, 40)
  const small = pagesOf(10)
  assert.equal(entriesOf(await small.pages.refusals(TENANT, NEWEST, 40)).length, 40)
  assert.equal(small.counted.turns, 0, 'control: small entries need no turn')
})
