// The erasure log, carried out on an older state of the database: erased stays erased.

import assert from 'node:assert/strict'
import { copyFileSync } from 'node:fs'
import { applyErasures, erasureLog } from '../../src/erasure/apply-log.ts'
import { Erasures } from '../../src/erasure/erasures.ts'
import { openStore } from '../../src/store/open.ts'
import { createDatabase, serverUrl } from '../support/postgres/databases.ts'
import { sqlitePath } from './back-door-sqlite.ts'
import { idOf, item, NOON, refusal, TENANT } from './rows.ts'
import { append, everyDriver, indexAll, payloadText, type TestDatabase } from './suite.ts'

const clock = { now: () => NOON + 7 }

everyDriver('a restored backup loses what was erased since, and nothing else', async (database, t) => {
  const store = await database.open('tool')
  const fields = (n: number) => ({ sourceRef: `r:${n}`, channelRef: 'c', body: { source_ref: `r:${n}`, n } })
  const ids: number[] = []
  for (let n = 0; n < 3; n++) ids.push(await append(store, fields(n)))
  const body = Buffer.from('{"source_ref":"r:0" broken')
  await store.refusals.add([refusal({ body })], { maxCount: 9, maxAgeMs: 1e15 }, NOON)
  await indexAll(store)
  await store.close()
  const backup = await cloneOf(database)

  const live = await database.open('tool')
  const late = await append(live, fields(9))
  const erasures = new Erasures({ store: live, clock })
  for (const event of [ids[0]!, ids[1]!, late]) {
    const page = await erasures.page(TENANT, { selector: { event }, dryRun: false, after: null })
    assert.deepEqual([page.messages, page.next], [1, null])
  }
  // Other bytes under an erased reference: they are new, and not in the log.
  await live.journal.append([item({ ...fields(1), body: 'new' })])

  const restored = await openStore(backup, { role: 'tool' })
  t.after(() => restored.close())
  assert.match((await payloadText(restored, ids[0]!))!, /r:0/, 'the control: the backup holds it')
  assert.equal(
    await applyErasures(erasureLog(live.erasures), restored, clock),
    2,
    'the late message is not in the backup',
  )
  for (const id of ids.slice(0, 2)) assert.equal(await restored.events.payload(id), null)
  assert.match((await payloadText(restored, ids[2]!))!, /r:2/)
  assert.deepEqual(await restored.refusals.list(TENANT, 1e9, 9), [])
  assert.equal(await applyErasures(erasureLog(live.erasures), restored, clock), 0, 'once')
  const [again] = await restored.journal.append([item(fields(0))])
  assert.deepEqual(again, { outcome: 'duplicate', id: ids[0] })
  const [other] = await restored.journal.append([item({ ...fields(2), body: 'other' })])
  assert.equal(idOf(other), ids[2])
})

/** The database as it is now, in another place. Nothing is open on it. */
async function cloneOf({ url, driver }: TestDatabase): Promise<string> {
  if (driver.name === 'postgres') {
    return createDatabase(await serverUrl(), `TEMPLATE ${new URL(url).pathname.slice(1)} STRATEGY file_copy`)
  }
  const clone = sqlitePath(url).replace(/\.db$/, '-backup.db')
  copyFileSync(sqlitePath(url), clone)
  return `sqlite:${clone}`
}
