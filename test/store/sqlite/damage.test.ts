// Damaged pages of the journal and of the index on SQLite: the indexer passes over what it cannot read, everything else is served,
// and a damaged index is filled again while the store is open.

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { openStore } from '../../../src/store/open.ts'
import { indexPath } from '../../../src/store/sqlite/index/index-file.ts'
import { tempFolder } from '../../support/temp.ts'
import { until } from '../../support/until.ts'
import { item, NOON, TENANT } from '../rows.ts'
import { failure, indexAll, outcomesOf } from '../suite.ts'
import { overwritePage, pagesOf, unreadableIds } from './damaged-pages.ts'

const EVENTS = 300
const CLAIM = {
  tenant: TENANT,
  subscription: 'default',
  limit: 50,
  maxBytes: 1 << 20,
  ordered: true,
  channelRef: null,
  keyId: 'PPPPPPPPPP',
  maxAttempts: 3,
}

/** Messages in ten conversations, some of them larger than a page. */
async function newDatabase(isIndexed: boolean): Promise<string> {
  const path = join(tempFolder('damage'), 'intray.db')
  const store = await openStore(`sqlite:${path}`, { role: 'server' })
  const items = Array.from({ length: EVENTS }, (_, at) =>
    item({
      sourceRef: `ref-${at}`,
      channelRef: `page-${at % 10}`,
      body: { text: `number ${at}`, rest: 'x'.repeat(at % 50 === 0 ? 9000 : 200) },
    }),
  )
  await store.journal.append(items)
  if (isIndexed) await indexAll(store)
  await store.close()
  return path
}

async function open(t: TestContext, path: string) {
  const store = await openStore(`sqlite:${path}`, { role: 'server' })
  t.after(() => store.close())
  const fatal: Error[] = []
  const findings: string[] = []
  store.onFatal((error) => fatal.push(error))
  store.onDamage((finding) => findings.push(finding))
  return { store, fatal, findings }
}

test('the indexer passes over a damaged page of events and marks its ids; control: without damage it marks none', async (t) => {
  for (const isDamaged of [false, true]) {
    const path = await newDatabase(false)
    if (isDamaged) overwritePage(path, pagesOf(path, { table: 'events', type: 'leaf' })[20]!)
    const lost = unreadableIds(path, 'events', EVENTS)
    assert.equal(lost.length > 0, isDamaged, 'what was injected')
    const { store, fatal } = await open(t, path)
    let unreadable = 0
    const { lag } = await indexAll(store, undefined, (step) => (unreadable += step.unreadable))
    assert.deepEqual([lag, unreadable, fatal], [0, lost.length, []])
    const { events } = await store.inbox.events(TENANT, {}, null, EVENTS)
    assert.equal(events.length, EVENTS - lost.length)
    assert.deepEqual((await store.diagnosis.unreadable()).ids, lost.length)
    for (const id of lost) await assert.rejects(store.events.find(id), failure('damaged'))
    const next = await store.journal.append([item({ sourceRef: 'after' })])
    assert.deepEqual(outcomesOf(next), ['stored'])
  }
})

test('an event of which only the payload is damaged is listed, with the reason', async (t) => {
  const path = await newDatabase(false)
  overwritePage(path, pagesOf(path, { table: 'events', type: 'overflow' })[6]!)
  const lost = unreadableIds(path, 'events', EVENTS)
  assert.equal(lost.length, 1)
  const { store } = await open(t, path)
  await indexAll(store)
  const event = await store.events.find(lost[0]!)
  assert.equal(event?.id, lost[0])
  assert.match((await store.events.indexEntry(event!))?.unindexed ?? '', /the payload cannot be read/)
  assert.deepEqual(await store.diagnosis.unreadable(), { ids: 0, ranges: [] })
  assert.equal(await store.diagnosis.unindexed(), 1)
})

test('a damaged page of the index fails a read, and the index is filled again while the store is open', async (t) => {
  const path = await newDatabase(true)
  for (const page of pagesOf(indexPath(path), { table: 'event_index', type: 'leaf' }))
    overwritePage(indexPath(path), page)
  const { store, fatal, findings } = await open(t, path)
  await assert.rejects(store.inbox.events(TENANT, {}, null, EVENTS), failure('damaged'))
  await until('the index is looked into', async () => findings.length > 0)
  assert.match(findings[0]!, /^the index is damaged; it was emptied/)
  await indexAll(store)
  const { events } = await store.inbox.events(TENANT, {}, null, EVENTS + 1)
  assert.equal(events.length, EVENTS)
  assert.deepEqual([fatal, await store.diagnosis.structure()], [[], []])
})

test('damaged dedupe keys fail the messages that need them, and no others of their batch', async (t) => {
  const path = await newDatabase(true)
  overwritePage(path, pagesOf(path, { table: 'dedupe', type: 'leaf' })[1]!)
  const { store, fatal, findings } = await open(t, path)
  const again = Array.from({ length: EVENTS }, (_, at) =>
    item({ sourceRef: `ref-${at}`, channelRef: `page-${at % 10}`, body: { other: at } }),
  )
  const outcomes = await store.journal.append(again)
  const failed = outcomes.filter((one) => one.outcome === 'failed')
  assert.ok(failed.length > 0 && failed.length < 100, String(failed.length))
  assert.ok(failed.every((one) => one.isDamaged))
  assert.equal(outcomes.filter(({ outcome }) => outcome === 'conflict').length, EVENTS - failed.length)
  assert.deepEqual(fatal, [])
  await until('the index is looked into', () => findings.length > 0)
  assert.equal(findings.length, 1)
  assert.match(findings[0]!, /^the journal is damaged/)
})

test('a claim hands out every event that can be read, says of which the payload is damaged, and parks the others', async (t) => {
  const path = await newDatabase(true)
  overwritePage(path, pagesOf(path, { table: 'events', type: 'leaf' })[20]!)
  overwritePage(path, pagesOf(path, { table: 'events', type: 'overflow' })[6]!)
  const hidden = unreadableIds(path, 'events', EVENTS)
  const { store, fatal } = await open(t, path)
  const claimed = []
  for (let tries = 0; tries < EVENTS; tries++) {
    const now = NOON + tries
    const events = await store.processing.claim({
      ...CLAIM,
      leaseId: `lease-${tries}`,
      leaseExpiresAt: now + 60_000,
      now,
    })
    if (!events || events.length === 0) break
    claimed.push(...events)
    const items = events.map(({ event, leaseId }) => ({ id: event.id, leaseId }))
    await store.processing.ack({ tenant: TENANT, subscription: 'default', items, now })
  }
  const damaged = claimed.filter(({ payload }) => payload === null).map(({ event }) => event.id)
  const lost = hidden.filter((id) => !damaged.includes(id))
  assert.ok(damaged.length === 1 && lost.length > 0, `injected: ${hidden}`)
  const ids = claimed.map(({ event }) => event.id).toSorted((a, b) => a - b)
  assert.deepEqual(
    ids,
    Array.from({ length: EVENTS }, (_, at) => at + 1).filter((id) => !lost.includes(id)),
  )
  const queue = { tenant: TENANT, subscription: 'default' }
  const all = { ids: null, channelRef: null, deadAfter: null, deadBefore: null }
  assert.equal(await store.processing.countDead(queue, all), lost.length)
  assert.deepEqual(fatal, [])
})
