// Words that SQLite refuses: the event is marked, and those behind it are found.

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { openStore } from '../../../src/store/open.ts'
import { indexPath } from '../../../src/store/sqlite/index/index-file.ts'
import { prepareIndexing } from '../../../src/store/sqlite/index/indexing.ts'
import { tempFolder } from '../../support/temp.ts'
import { idOf, item, TENANT } from '../rows.ts'

const LIMITS = { maxRows: 10, maxBytes: 1 << 20, maxWords: 100 }

test('words that the database refuses mark their event, and those behind it are found', async (t) => {
  const path = join(tempFolder('refused-words'), 'intray.db')
  const store = await openStore(`sqlite:${path}`, { role: 'tool' })
  t.after(() => store.close())
  const body = { message: { text: 'common' } }
  const ids = (await store.journal.append(Array.from({ length: 5 }, () => item({ body })))).map(idOf)
  // `defensive` would keep the tables of FTS5 from having a trigger.
  const db = new DatabaseSync(indexPath(path), { defensive: false, timeout: 5000 })
  t.after(() => db.close())
  db.exec(`ATTACH '${path}' AS journal`)
  db.exec(`CREATE TEMP TRIGGER refuse BEFORE INSERT ON main.event_words_docsize WHEN NEW.id = ${ids[2]}
    BEGIN SELECT RAISE(ABORT, 'refused by the test'); END`)
  const indexing = prepareIndexing(db)
  indexing.step(LIMITS)
  const { indexed, unindexed, searchLag } = indexing.stepWords(LIMITS)
  assert.deepEqual([indexed, unindexed, searchLag], [5, 1, 0])
  const { events } = await store.inbox.events(TENANT, { words: ['common'] }, null, 10)
  assert.deepEqual(events.map(({ event }) => event.id).toReversed(), [ids[0], ids[1], ids[3], ids[4]])
  for (const id of ids) {
    const entry = await store.events.indexEntry((await store.events.find(id))!)
    assert.equal(entry?.unindexed !== null, id === ids[2])
  }
})
