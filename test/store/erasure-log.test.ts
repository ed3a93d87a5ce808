// The erasure log, carried out on an older state of the database: erased stays erased.

import assert from 'node:assert/strict'
import { appendFileSync, copyFileSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { applyErasures, erasureLog } from '../../src/erasure/apply-log.ts'
import { Erasures } from '../../src/erasure/erasures.ts'
import { appendErasures, readErasures, readErasuresIn } from '../../src/erasure/log-file.ts'
import type { ErasureRecord } from '../../src/model/erasure.ts'
import { openStore } from '../../src/store/open.ts'
import { createDatabase, serverUrl } from '../support/postgres/databases.ts'
import { tempFolder } from '../support/temp.ts'
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
  await store.refusals.add([refusal({ body })], { maxCount: 9 })
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

everyDriver(
  'the log beside the backups goes on after an interruption, and each state of a database has its own',
  async (database, t) => {
    const folder = tempFolder('log')
    const store = await database.open('tool')
    const erase = async (opened: typeof store) => {
      await opened.erasures.erase(TENANT, [await append(opened, { sourceRef: 'x' })], NOON)
      return appendErasures(folder, opened.erasures)
    }
    const { key } = await store.erasures.logId()
    const read = () => Array.fromAsync(readErasuresIn(folder, key))
    assert.equal(await appendErasures(folder, store.erasures), 0)
    assert.deepEqual(await read(), [])

    await store.erasures.erase(TENANT, [await append(store), await append(store)], NOON)
    assert.equal(await appendErasures(folder, store.erasures), 2)
    assert.equal(await appendErasures(folder, store.erasures), 2, 'nothing new')
    const path = join(folder, readdirSync(folder)[0]!)
    const whole = readFileSync(path, 'utf8')
    appendFileSync(path, '{"id":3,"comp')
    assert.equal((await read()).length, 2, 'a line that was not written to its end')
    assert.equal(await erase(store), 3)
    assert.ok(readFileSync(path, 'utf8').startsWith(`${whole}{"id":3,"company_id"`))
    assert.deepEqual((await read()).map(inHex), (await Array.fromAsync(erasureLog(store.erasures))).map(inHex))

    await store.recovery.beginEpoch(NOON)
    await store.close()
    const next = await database.open('tool')
    t.after(() => next.close())
    assert.equal(await appendErasures(folder, next.erasures), 3)
    assert.equal(readdirSync(folder).length, 2)
    assert.equal((await read()).length, 6, 'both')
  },
)

everyDriver('a damaged log, one of another database and a file of another kind are refused', async (database, t) => {
  const folder = tempFolder('log')
  const store = await database.open('tool')
  t.after(() => store.close())
  await store.erasures.erase(TENANT, [await append(store), await append(store)], NOON)
  await appendErasures(folder, store.erasures)
  const { key } = await store.erasures.logId()
  const path = join(folder, readdirSync(folder)[0]!)
  const lines = readFileSync(path, 'utf8').trimEnd().split('\n')
  const read = (text: string, of = key) => {
    writeFileSync(path, text)
    return Array.fromAsync(readErasures(path, of))
  }
  assert.equal((await read(`${lines.join('\n')}\n`)).length, 2, 'control')
  await assert.rejects(read(`${lines[0]}\n${lines[1]!.slice(0, -9)}\n${lines[2]}\n`), /Line 2 of .* is damaged\./)
  await assert.rejects(read(`${lines.join('\n')}\n`, 'f'.repeat(16)), /is not of the database/)
  await assert.rejects(read('{"format":"other"}\n'), /is no erasure log\./)
  await assert.rejects(read(''), /is empty/)
  await assert.rejects(readErasuresIn(folder, 'f'.repeat(16)).next(), /has no erasure log/)
  await assert.rejects(async () => {
    writeFileSync(path, `${lines[0]}\nnot a record\n`)
    await appendErasures(folder, store.erasures)
  }, /The last line of .* is damaged\./)
})

const inHex = ({ digest, bytes, ...record }: ErasureRecord) => ({
  ...record,
  digest: digest && Buffer.from(digest).toString('hex'),
  bytes: Buffer.from(bytes).toString('hex'),
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
