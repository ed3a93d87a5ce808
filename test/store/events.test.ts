// Conformance: reading the journal. Every promise of src/store/contract/events.ts.

import assert from 'node:assert/strict'
import type { Store } from '../../src/store/contract/store.ts'
import { backDoorOf } from './back-door.ts'
import { eraseEvent } from './erase-event.ts'
import { badItem, idOf, item, NOON, TENANT } from './rows.ts'
import { append, everyDriver, everyStore, failure, indexAll, payloadText } from './suite.ts'

const FOREIGN = [
  { accountId: 7, companyId: 43 },
  { accountId: 8, companyId: 42 },
  { accountId: 42, companyId: 7 },
] as const

everyStore('the watermark is 0 at first, only grows, and comes to cover every row of the journal', async (store) => {
  assert.equal(await store.events.watermark(), 0)
  const id = await append(store, { sourceRef: 'a', body: 'A' })
  await indexAll(store)
  const covered = await store.events.watermark()
  assert.ok(covered >= id)
  await store.journal.append([item({ sourceRef: 'a', body: 'B' }), badItem()])
  const [revision] = await store.events.revisions(id, 0, 1)
  assert.ok((await store.events.watermark()) >= covered)
  await indexAll(store)
  assert.ok((await store.events.watermark()) >= revision!.id)
})

everyDriver('what is at or below the watermark is committed, and stays as it is', async (database) => {
  const writer = await database.open('server')
  const reader = await database.open('tool')
  const appended: Promise<unknown>[] = []
  const seen = new Map<number, string | null>()
  let looked = 0
  const look = async (store: Store) => {
    const watermark = await store.events.watermark()
    for (let id = looked + 1; id <= watermark; id++) seen.set(id, await payloadText(store, id))
    looked = Math.max(looked, watermark)
  }
  for (let n = 0; n < 200; n++) {
    appended.push(writer.journal.append([item({ body: `${n}` }), item({ body: `${n}'` })]))
    // Looking while the writer is at it: now by one store, now by the other.
    await look(n % 2 === 0 ? writer : reader)
  }
  await Promise.all(appended)
  await indexAll(writer)
  await look(reader)
  for (const [id, text] of seen) assert.equal(await payloadText(writer, id), text, `event ${id} is what it was`)
  assert.equal(Array.from(seen.values()).filter((text) => text !== null).length, 400)
})

everyStore('a store sees its own append as soon as it is answered', async (store) => {
  for (let n = 0; n < 30; n++) {
    const id = await append(store, { body: `${n}` })
    assert.equal((await store.events.find(id))?.id, id)
    assert.equal(await payloadText(store, id), `${n}`)
  }
})

everyDriver('one store sees what the other was answered for', async (database) => {
  const server = await database.open('server')
  const tool = await database.open('tool')
  for (let n = 0; n < 10; n++) {
    assert.equal(await payloadText(tool, await append(server, { body: `server ${n}` })), `server ${n}`)
    assert.equal(await payloadText(server, await append(tool, { body: `tool ${n}` })), `tool ${n}`)
  }
})

everyStore('an id that was never given out is null', async (store) => {
  const id = await append(store)
  for (const unknown of [0, -1, id + 1, 1.5, Number.MAX_SAFE_INTEGER]) {
    assert.equal(await store.events.find(unknown), null)
    assert.equal(await store.events.payload(unknown), null)
    assert.equal(await store.events.find(unknown, TENANT), null)
  }
})

everyStore('to another tenant an event is not there, nor are its bytes', async (store) => {
  const id = await append(store, { sourceRef: 'a', body: 'A' })
  await store.journal.append([item({ sourceRef: 'a', body: 'B' })])
  const [revision] = await store.events.revisions(id, 0, 1)
  for (const own of [id, revision!.id]) {
    assert.equal((await store.events.find(own, TENANT))?.id, own)
    assert.ok(await store.events.payload(own, TENANT))
    assert.equal((await store.events.find(own))?.id, own)
    for (const tenant of FOREIGN) {
      assert.equal(await store.events.find(own, tenant), null)
      assert.equal(await store.events.payload(own, tenant), null)
    }
  }
})

everyStore('bytes that no longer match their digest are never handed out', async (store, { url, driver }) => {
  const id = await append(store, { body: '{"amount":100}' })
  const neighbour = await append(store, { body: '{"amount":200}' })
  await backDoorOf(driver).replacePayload(url, id, Buffer.from('{"amount":900}'))
  await assert.rejects(store.events.payload(id), failure('rejected'))
  await assert.rejects(store.events.payload(id, TENANT), failure('rejected'))
  // Somebody else learns nothing, not even that it is damaged.
  assert.equal(await store.events.payload(id, FOREIGN[0]), null)
  assert.equal((await store.events.find(id))?.id, id)
  assert.equal(await payloadText(store, neighbour), '{"amount":200}')
})

everyStore('an erased event is still found, without its bytes', async (store, { url }) => {
  const id = await append(store, { sourceRef: 'a', body: 'A' })
  await eraseEvent(url, id, NOON + 9)
  assert.equal((await store.events.find(id))?.erasedAt, NOON + 9)
  assert.equal((await store.events.find(id))?.size, 1)
  assert.equal(await store.events.payload(id), null)
  assert.deepEqual(await store.journal.append([item({ sourceRef: 'a', body: 'A' })]), [{ outcome: 'duplicate', id }])
})

everyStore('revisions come oldest first, in pages, of this event alone', async (store) => {
  const id = await append(store, { sourceRef: 'a', body: 'a0' })
  const other = await append(store, { sourceRef: 'b', body: 'b0' })
  for (let n = 1; n <= 7; n++) {
    await store.journal.append([
      item({ sourceRef: 'a', body: `a${n}` }),
      item({ sourceRef: 'b', body: `b${n}` }),
      item({ sourceRef: 'a', body: `a${n}` }),
    ])
  }
  const texts: (string | null)[] = []
  const sizes: number[] = []
  let after = 0
  for (;;) {
    const page = await store.events.revisions(id, after, 3)
    if (page.length === 0) break
    sizes.push(page.length)
    for (const row of page) {
      assert.equal(row.revises, id)
      assert.equal(row.kind, 'revision')
      assert.ok(row.id > after)
      after = row.id
      texts.push(await payloadText(store, row.id))
    }
  }
  assert.deepEqual(texts, ['a1', 'a2', 'a3', 'a4', 'a5', 'a6', 'a7'])
  assert.deepEqual(sizes, [3, 3, 1])
  assert.equal((await store.events.revisions(other, 0, 100)).length, 7)
})

everyStore('an event that was never changed has no revisions, nor has a revision', async (store) => {
  const id = await append(store, { sourceRef: 'a', body: 'A' })
  assert.deepEqual(await store.events.revisions(id, 0, 10), [])
  await store.journal.append([item({ sourceRef: 'a', body: 'B' })])
  const [revision] = await store.events.revisions(id, 0, 10)
  assert.deepEqual(await store.events.revisions(revision!.id, 0, 10), [])
  assert.deepEqual(await store.events.revisions(999, 0, 10), [])
})

everyStore('a conversation belongs to its tenant', async (store) => {
  const id = await append(store, { channelRef: 'page' })
  const foreign = await append(store, { ...FOREIGN[1], channelRef: 'page' })
  await indexAll(store)
  assert.equal((await store.events.conversation(TENANT, 'page'))?.id, id)
  assert.equal((await store.events.conversation(FOREIGN[1], 'page'))?.id, foreign)
  assert.equal(await store.events.conversation(FOREIGN[0], 'page'), null)
  assert.equal(await store.events.conversation(TENANT, 'Page'), null)
})

everyStore('reads that fail say so in the words of the contract', async (store) => {
  const [outcome] = await store.journal.append([item()])
  await store.close()
  for (const read of [
    () => store.events.watermark(),
    () => store.events.find(idOf(outcome)),
    () => store.events.payload(idOf(outcome)),
    () => store.index.progress(),
    () => store.tokens.list(),
  ]) {
    await assert.rejects(read(), { name: 'StoreFailure' })
  }
})
