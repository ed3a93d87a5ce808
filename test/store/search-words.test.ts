// Conformance: the second cursor of the index, that of the search words. An event is listed and claimed before a search finds it.

import assert from 'node:assert/strict'
import { newUuid } from '../../src/runtime/id.ts'
import type { Store } from '../../src/store/contract/store.ts'
import { eraseEvent } from './erase-event.ts'
import { idOf, item, NOON, TENANT } from './rows.ts'
import { append, everyStore, indexAll, stepOnce, stepWords } from './suite.ts'

const saying = (text: string) => ({ message: { text } })

async function found(store: Store, ...words: readonly string[]): Promise<number[]> {
  const { events } = await store.inbox.events(TENANT, { words }, null, 100)
  return events.map(({ event }) => event.id)
}

async function listed(store: Store): Promise<number[]> {
  return (await store.inbox.events(TENANT, {}, null, 100)).events.map(({ event }) => event.id)
}

async function claimed(store: Store): Promise<number[]> {
  const claims = await store.processing.claim({
    tenant: TENANT,
    subscription: 'default',
    limit: 100,
    maxBytes: 1 << 20,
    ordered: true,
    channelRef: null,
    leaseId: newUuid(),
    leaseExpiresAt: NOON + 30_000,
    keyId: 'PPPPPPPPPP',
    maxAttempts: 3,
    now: NOON,
  })
  return claims!.map(({ event }) => event.id)
}

everyStore('an event is listed and claimed while the words of all events before it are missing', async (store) => {
  const items = Array.from({ length: 30 }, (_, n) => item({ body: saying(`common word${n}`) }))
  const ids = (await store.journal.append(items)).map(idOf)
  await stepOnce(store)
  assert.deepEqual(await listed(store), ids.toReversed())
  assert.deepEqual(await claimed(store), ids)
  assert.deepEqual(await found(store, 'common'), [])
  const { covered, newest } = await store.inbox.coverage()
  assert.deepEqual([covered.events, covered.words], [newest.events, 0])
  await stepWords(store, { maxRows: 10, maxBytes: 1 << 20 })
  assert.deepEqual(await found(store, 'common'), ids.slice(0, 10).toReversed())
  await indexAll(store)
  assert.deepEqual(await found(store, 'common'), ids.toReversed())
  assert.equal((await store.inbox.coverage()).covered.words, newest.events)
})

everyStore('words never pass the entries, and stop at their bounds of rows and bytes', async (store) => {
  const items = Array.from({ length: 12 }, () => item({ body: saying('x'.repeat(1000)) }))
  const ids = (await store.journal.append(items)).map(idOf)
  assert.equal((await stepWords(store)).indexed, 0)
  await stepOnce(store, { maxRows: 8, maxBytes: 1 << 20 })
  const byRows = await stepWords(store, { maxRows: 5, maxBytes: 1 << 20 })
  assert.deepEqual([byRows.indexed, byRows.searchable, byRows.searchLag, byRows.more], [5, ids[4], 7, true])
  const byBytes = await stepWords(store, { maxRows: 100, maxBytes: 1500 })
  assert.deepEqual([byBytes.indexed, byBytes.searchable, byBytes.more], [2, ids[6], true])
  const rest = await stepWords(store)
  assert.deepEqual([rest.indexed, rest.searchable, rest.more], [1, ids[7], false])
  assert.deepEqual([rest.cursor, rest.lag, rest.searchLag], [ids[7], 4, 4])
})

everyStore('an event has at most as many words as the setting says, name and e-mail first', async (store) => {
  const text = Array.from({ length: 50 }, (_, n) => `word${n}x`).join(' ')
  const body = { contact: { name: 'Ada', email: 'ada@example.org' }, message: { text } }
  const id = await append(store, { body })
  const bounds = { maxRows: 10, maxBytes: 1 << 20 }
  const indexWith = async (maxWords: number) => {
    await store.index.requestRebuild()
    while ((await stepOnce(store)).lag > 0);
    await stepWords(store, bounds, maxWords)
  }
  await indexWith(10)
  // Three words of the contact, seven of the text.
  for (const word of ['ada', 'example', 'org', 'word0x', 'word6x']) assert.deepEqual(await found(store, word), [id])
  assert.deepEqual(await found(store, 'word7x'), [])
  await indexWith(50)
  assert.deepEqual(await found(store, 'word46x'), [id])
  assert.deepEqual(await found(store, 'word47x'), [])
  await indexWith(0)
  assert.deepEqual(await found(store, 'ada'), [])
})

everyStore('an event that is erased before its words are made has none', async (store, { url }) => {
  const ids = (await store.journal.append([1, 2].map(() => item({ body: saying('secret') })))).map(idOf)
  await stepOnce(store)
  await eraseEvent(url, ids[0]!, NOON)
  assert.equal((await stepWords(store)).searchLag, 0)
  assert.deepEqual(await found(store, 'secret'), [ids[1]])
})
