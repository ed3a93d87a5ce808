// `./intray doctor`: what is well, what is not, what to do, and an exit code for scripts.

import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, test } from 'node:test'
import { openStore } from '../../src/store/open.ts'
import { backDoorOf } from '../store/back-door.ts'
import { idOf, item } from '../store/rows.ts'
import { append, indexAll } from '../store/suite.ts'
import { runToEnd } from '../support/command.ts'
import { type Driver, drivers } from '../support/drivers.ts'
import { withStore } from '../support/journal.ts'
import { connect, newPostgresDatabase, withClient } from '../support/postgres/databases.ts'
import { LAUNCHER } from '../support/process.ts'
import { tempFolder } from '../support/temp.ts'
import { until } from '../support/until.ts'

interface Check {
  readonly name: string
  readonly verdict: 'ok' | 'warning' | 'wrong'
  readonly summary: string
  readonly advice?: string
  readonly events?: readonly { readonly id: number; readonly problem: string }[]
}

async function examine(databaseUrl: string, ...flags: readonly string[]) {
  const env = { INTRAY_DATABASE_URL: databaseUrl }
  const { code, stdout, stderr } = await runToEnd([LAUNCHER, 'doctor', '--json', ...flags], env)
  assert.equal(stderr, '')
  const { ok, checks } = JSON.parse(stdout.toString()) as { ok: boolean; checks: readonly Check[] }
  assert.equal(code, ok ? 0 : 1)
  return { code, of: (name: string) => checks.find((check) => check.name === name)!, checks }
}

/** What the database server of the tests is set to, and rightly complained about. */
const wrongIn = (checks: readonly Check[]) =>
  checks.filter(({ name, verdict }) => verdict !== 'ok' && name !== 'syncs').map(({ name }) => name)

/** Events with a reference, with a key, with neither, a re-send and a revision, all of them indexed. */
async function newDatabase(driver: Driver): Promise<{ url: string; ids: readonly number[] }> {
  const url = await driver.newDatabase()
  const ids = await withStore(url, async (store) => {
    const first = { sourceRef: 'ref:1', channelRef: 'page', body: '{"source_ref":"ref:1","channel_ref":"page"}' }
    const stored = [
      await append(store, first),
      await append(store, { idempotencyKey: 'key-1', body: '{"n":1}' }),
      await append(store, { body: '{"n":2}' }),
    ]
    const other = { ...first, body: '{"source_ref":"ref:1","channel_ref":"page","n":3}' }
    await store.journal.append([item(first), item(other)])
    await indexAll(store)
    return stored
  })
  return { url, ids }
}

for (const driver of drivers) {
  describe(`doctor on ${driver.name}`, () => {
    test('a database that is well is told to be, whole and by a sample', async () => {
      const { url } = await newDatabase(driver)
      const { checks, of } = await examine(url)
      assert.deepEqual(wrongIn(checks), [])
      assert.match(of('payloads').summary, /^All payloads match their digests: 4 events and revisions, /)
      assert.match(of('keys').summary, /Every event is found by its dedupe key/)
      const sampled = await examine(url, '--sample', '2')
      assert.deepEqual(wrongIn(sampled.checks), [])
      assert.match(sampled.of('payloads').summary, /[23] events and revisions \(a sample\)/)
    })

    test('damaged bytes, and columns that say something else than the bytes, are named event by event', async () => {
      const { url, ids } = await newDatabase(driver)
      const backDoor = backDoorOf(driver)
      await backDoor.replacePayload(url, ids[2]!, Buffer.from('{"n":9}'))
      // The digest is right, so only the references can tell; and the key was made for other bytes.
      await backDoor.smugglePayload(url, ids[0]!, Buffer.from('{"source_ref":"ref:2","channel_ref":"page"}'))
      const { of, code } = await examine(url)
      assert.equal(code, 1)
      assert.deepEqual(of('payloads').events, [{ id: ids[2], problem: 'its bytes do not match their digest' }])
      assert.deepEqual(of('references').events, [{ id: ids[0], problem: 'source_ref is not that of its bytes' }])
      assert.deepEqual(
        of('keys').events?.map(({ id }) => id),
        [ids[0]],
      )
      for (const name of ['payloads', 'references', 'keys']) assert.ok(of(name).advice, name)
    })

    test('an erased event is nothing wrong', async () => {
      const { url, ids } = await newDatabase(driver)
      await backDoorOf(driver).erase(url, ids[2]!, Date.now())
      const { checks, of } = await examine(url)
      assert.deepEqual(wrongIn(checks), [])
      assert.match(of('payloads').summary, /, 1 erased\.$/)
    })

    test('without a server, what is not indexed yet is told with what to do', async () => {
      const { url } = await newDatabase(driver)
      await withStore(url, (store) => append(store, { body: '{"n":4}' }))
      const { of, checks } = await examine(url)
      assert.deepEqual(wrongIn(checks), ['index'])
      assert.match(of('index').summary, /^The index is 1 rows behind, the oldest of them \d+ s old\./)
      assert.match(of('index').advice ?? '', /No server is running/)
    })
  })
}

test('what has arrived and is not filed yet is looked at too, and named where it is damaged (postgres)', async () => {
  const url = await newPostgresDatabase()
  const store = await openStore(url, { role: 'server' })
  for (let batch = 0; batch < 2; batch++) {
    await store.journal.append(Array.from({ length: 9 }, (_, n) => item({ body: `{"n":${n}}` })))
  }
  // It has the first nine filed, and tells how far the journal is complete.
  await until('a step', async () => (await store.index.step({ maxRows: 3, maxBytes: 1000 })).indexed > 0)
  // Behind what has arrived, and in its place at once.
  const [behind] = await store.journal.append([item({ body: '{"n":9}' })])
  await until('it is known to be complete', async () => {
    await store.index.step({ maxRows: 1, maxBytes: 1 })
    return (await store.events.watermark()) === idOf(behind)
  })
  await store.close()
  const change = (set: string) => withClient(url, (client) => client.query(`UPDATE intray.arrivals SET ${set}`))

  const well = await examine(url)
  assert.deepEqual(wrongIn(well.checks), ['index'])
  assert.match(well.of('payloads').summary, /: 19 events and revisions, 133 bytes, 0 erased\.$/)

  await change("payloads[3] = '\\x7b7d'")
  await withClient(url, (client) => client.query("UPDATE intray.events SET payload = '{}' WHERE id = 19"))
  await withClient(url, (client) => client.query('DELETE FROM intray.dedupe WHERE event_id = 19'))
  const flipped = await examine(url)
  const problem = 'its bytes do not match their digest'
  assert.deepEqual(flipped.of('payloads').events, [
    { id: 12, problem },
    { id: 19, problem },
  ])
  assert.deepEqual(
    flipped.of('keys').events?.map(({ id }) => id),
    [19],
  )

  await change('payloads = payloads[1:8]')
  const cut = await examine(url)
  assert.match(cut.of('payloads').summary, /to its end: what arrived as 10 to 18 is damaged\.$/)
  assert.equal(cut.code, 1)
})

test('what has arrived and is not filed yet is looked at too, and named where it is damaged (sqlite)', async () => {
  const path = join(tempFolder('doctor'), 'intray.db')
  const url = `sqlite:${path}`
  const store = await openStore(url, { role: 'server' })
  const first = { sourceRef: 'ref:1', body: '{"source_ref":"ref:1"}' }
  await store.journal.append([
    item(first),
    item({ idempotencyKey: 'key-1', body: '{"n":1}' }),
    item({ body: '{"n":2}' }),
  ])
  await store.journal.append([item({ ...first, body: '{"source_ref":"ref:1","n":3}' })])
  await store.close()
  const change = (edit: (batch: Buffer) => Uint8Array): void => {
    const db = new DatabaseSync(path)
    const batch = Buffer.from(db.prepare('SELECT batch FROM arrivals').get()!.batch as Uint8Array)
    db.prepare('UPDATE arrivals SET batch = ?').run(edit(batch))
    db.close()
  }

  const well = await examine(url)
  assert.deepEqual(wrongIn(well.checks), ['index'])
  assert.match(well.of('payloads').summary, /: 4 events and revisions, \d+ bytes, 0 erased\.$/)
  const sampled = await examine(url, '--sample', '10')
  assert.match(sampled.of('payloads').summary, /: 1 events .*, 3 more not filed yet and not looked at\.$/)

  change((batch) => batch.fill('9', batch.lastIndexOf('2')).fill('}', batch.length - 1))
  const flipped = await examine(url)
  assert.deepEqual(flipped.of('payloads').events, [{ id: 3, problem: 'its bytes do not match their digest' }])
  assert.equal(flipped.of('keys').verdict, 'ok')

  change((batch) => batch.fill(0, 8, 24))
  const misnamed = await examine(url)
  const problem = 'its dedupe key is not that of its reference and tenant'
  assert.deepEqual(misnamed.of('keys').events, [{ id: 1, problem }])

  const headAt = (batch: Buffer) => batch.lastIndexOf('["')
  change((batch) => batch.fill('x', headAt(batch), headAt(batch) + 1))
  const beheaded = await examine(url)
  assert.match(beheaded.of('payloads').summary, /to its end: what arrived as 3 is damaged\.$/)
  assert.equal(beheaded.code, 1)

  change((batch) => batch.subarray(0, -1))
  const cut = await examine(url)
  assert.equal(cut.code, 1)
  assert.match(cut.of('payloads').summary, /what arrived as 1 to 3 is damaged/)
})

test('where there is no database, doctor says so and makes none', async () => {
  const path = join(tempFolder('doctor'), 'none.db')
  const { code, stderr } = await runToEnd([LAUNCHER, 'doctor'], { INTRAY_DATABASE_URL: `sqlite:${path}` })
  assert.equal(code, 1)
  assert.match(stderr, /There is no database at/)
  assert.equal(existsSync(path), false)
})

test('for people every check is a line with a sentence, and a wrong call is told', async () => {
  const { url } = await newDatabase(drivers[0]!)
  const { code, stdout } = await runToEnd([LAUNCHER, 'doctor'], { INTRAY_DATABASE_URL: url })
  assert.equal(code, 0)
  assert.match(stdout.toString(), /^ok +opens: The database opens: driver=sqlite/)
  assert.match(stdout.toString(), /\nok +syncs: Commits are synced before they are acknowledged\.\n/)
  assert.match(stdout.toString(), /\nNothing is wrong\.\n$/)
  const wrong = await runToEnd([LAUNCHER, 'doctor', '--sample', '0'], { INTRAY_DATABASE_URL: url })
  assert.equal(wrong.code, 2)
})

test('the process whose open transaction holds readers back is named, and syncs that are off are wrong', async (t) => {
  const url = await newPostgresDatabase()
  await withStore(url, async () => {})
  const holder = await connect(`${url}?application_name=left-open`)
  t.after(() => holder.end())
  await holder.query('CREATE TABLE held (n int)')
  await holder.query('BEGIN')
  const { rows } = await holder.query('INSERT INTO held VALUES (1) RETURNING pg_backend_pid() AS pid')
  const found = await until('the transaction is a second old', async () => {
    const { of } = await examine(url)
    return of('watermark').summary.includes(`process ${rows[0].pid} `) && of
  })
  const { summary, advice, verdict } = found('watermark')
  assert.notEqual(verdict, 'ok')
  assert.match(summary, new RegExp(`process ${rows[0].pid} \\(left-open, database \\w+, idle in transaction\\)`))
  assert.match(advice ?? '', new RegExp(`pg_terminate_backend\\(${rows[0].pid}\\)`))
  assert.equal(found('syncs').verdict, 'wrong', 'the server of the tests runs without fsync')
})
