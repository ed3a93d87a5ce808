// A step of the indexer sends most of its writes without waiting. Whichever of them fails, the step fails, writes nothing and moves
// no cursor; the next one does its work.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openStore } from '../../../src/store/open.ts'
import { newPostgresDatabase, withClient } from '../../support/postgres/databases.ts'
import { item, TENANT } from '../rows.ts'
import { stepOnce } from '../suite.ts'

const SENT = ['event_index', 'repeats', 'traffic', 'index_cursors'] as const

test('a step whose statement fails, whichever it is, is not taken for done', async (t) => {
  const url = await newPostgresDatabase()
  const store = await openStore(url, { role: 'tool' })
  t.after(() => store.close())
  const run = (sql: string) => withClient(url, (client) => client.query(sql))
  // A failure of the server, not of a row: no row can be marked for it.
  await run(`CREATE FUNCTION intray.fail() RETURNS trigger LANGUAGE plpgsql
    AS $$ BEGIN RAISE EXCEPTION 'no room' USING ERRCODE = '53100'; END $$`)
  for (const table of SENT) {
    const again = () => item({ sourceRef: table, channelRef: table, body: { source_ref: table, channel_ref: table } })
    await store.journal.append([again()])
    await store.journal.append([again()])
    const before = await store.index.progress()
    assert.ok(before.lag > 0)
    await run(
      `CREATE TRIGGER fail BEFORE INSERT OR UPDATE ON intray.${table} FOR EACH ROW EXECUTE FUNCTION intray.fail()`,
    )
    await assert.rejects(stepOnce(store), /no room/, table)
    assert.deepEqual(await store.index.progress(), before)
    const listed = await store.inbox.conversations(TENANT, Number.MAX_SAFE_INTEGER, 10)
    assert.ok(!JSON.stringify(listed).includes(table), 'nothing of the step is there')
    await run(`DROP TRIGGER fail ON intray.${table}`)
    const { lag, cursor } = await stepOnce(store)
    assert.deepEqual([lag, cursor > before.cursor], [0, true])
    assert.ok(
      JSON.stringify(await store.inbox.conversations(TENANT, Number.MAX_SAFE_INTEGER, 10)).includes(table),
      'control',
    )
  }
})
