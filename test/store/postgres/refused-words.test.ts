// Words that PostgreSQL refuses: the event is marked, and those behind it are found.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openStore } from '../../../src/store/open.ts'
import { newPostgresDatabase, withClient } from '../../support/postgres/databases.ts'
import { idOf, item, TENANT } from '../rows.ts'
import { stepOnce, stepWords } from '../suite.ts'

test('words that the database refuses mark their event, and those behind it are found', async (t) => {
  const url = await newPostgresDatabase()
  const store = await openStore(url, { role: 'tool' })
  t.after(() => store.close())
  const body = { message: { text: 'common' } }
  const ids = (await store.journal.append(Array.from({ length: 5 }, () => item({ body })))).map(idOf)
  await withClient(url, (client) =>
    client.query(`ALTER TABLE intray.event_words ADD CONSTRAINT refuse CHECK (event_id <> ${ids[2]})`),
  )
  await stepOnce(store)
  const { indexed, unindexed, searchLag } = await stepWords(store)
  assert.deepEqual([indexed, unindexed, searchLag], [5, 1, 0])
  const { events } = await store.inbox.events(TENANT, { words: ['common'] }, null, 10)
  assert.deepEqual(events.map(({ event }) => event.id).toReversed(), [ids[0], ids[1], ids[3], ids[4]])
  for (const id of ids) {
    const entry = await store.events.indexEntry((await store.events.find(id))!)
    assert.equal(entry?.unindexed !== null, id === ids[2])
  }
})
