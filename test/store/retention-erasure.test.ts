// Erasures, exports and restores of a database that retention has made gaps in.

import assert from 'node:assert/strict'
import { copyFileSync } from 'node:fs'
import { Erasures } from '../../src/erasure/erasures.ts'
import type { Store } from '../../src/store/contract/store.ts'
import { openStore } from '../../src/store/open.ts'
import { drivers } from '../support/drivers.ts'
import { backDoorOf } from './back-door.ts'
import { type ItemFields, item, NOON, TENANT } from './rows.ts'
import { append, everyStore, indexAll, newDatabase, payloadText } from './suite.ts'
import { test } from 'node:test'

const OLD = NOON - 10 * 86_400_000
const clock = { now: () => NOON }

async function purge(store: Store): Promise<number> {
  const request = { tenant: TENANT, before: NOON - 1, now: NOON, purgesUnprocessed: true, dryRun: false, after: null }
  const { rows, next } = await store.retention.purgeStep(request)
  assert.equal(next, null)
  for (let steps = 0; steps < 100 && (await store.retention.followPurges()); steps++);
  return rows
}

const message = (text: string, fields: ItemFields = {}) => ({
  ...{ sourceRef: 'r', channelRef: 'c', receivedAt: OLD, body: { source_ref: 'r', text } },
  ...fields,
})

everyStore('an erasure of a purged reference takes what came under it since', async (store, { url, driver }) => {
  const id = await append(store, message('first'))
  await indexAll(store)
  await purge(store)
  const erasures = new Erasures({ store, clock })
  const erase = () => erasures.page(TENANT, { selector: { sourceRef: 'r' }, dryRun: false, after: null })
  assert.equal((await erase()).messages, 0, 'nothing is left to erase')
  for (const text of ['second', 'third']) await store.journal.append([item(message(text, { receivedAt: NOON }))])
  await indexAll(store)
  const { events } = await store.inbox.events(TENANT, { sourceRef: 'r' }, null, 10)
  const ids = events.map(({ event }) => event.id)
  assert.equal(ids.length, 2)
  assert.match((await payloadText(store, ids[0]!))!, /third/, 'the control: it is there')
  assert.ok((await erase()).events > 0)
  for (const one of ids) assert.equal(await store.events.payload(one), null)
  // Each of the three is known by its HMAC.
  for (const text of ['first', 'second', 'third']) {
    const [outcome] = await store.journal.append([item(message(text, { receivedAt: NOON }))])
    assert.ok(outcome && 'id' in outcome && outcome.id === id, text)
  }
  assert.equal((await backDoorOf(driver).countJournal(url)).events, 2)
})

test('sqlite: a backup from before a purge has the messages again, and loses them with the next run', async (t) => {
  const driver = drivers.find(({ name }) => name === 'sqlite')!
  const { url, open } = await newDatabase(t, driver)
  const store = await open('tool')
  await append(store, message('first'))
  await append(store, message('young', { sourceRef: 's', receivedAt: NOON }))
  await indexAll(store)
  await store.close()
  const restored = `${url}.restored.db`
  copyFileSync(url.slice('sqlite:'.length), restored.slice('sqlite:'.length))
  const [live, back] = [await openStore(url, { role: 'tool' }), await openStore(restored, { role: 'tool' })]
  t.after(() => Promise.all([live.close(), back.close()]))
  assert.equal(await purge(live), 1)
  await indexAll(back)
  assert.equal((await back.inbox.events(TENANT, {}, null, 10)).events.length, 2)
  assert.equal(await purge(back), 1)
  assert.equal((await back.inbox.events(TENANT, {}, null, 10)).events.length, 1)
})
