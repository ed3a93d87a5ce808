// `./intray doctor`: what is well, what is not, what to do, and an exit code for scripts.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { backDoorOf } from '../store/back-door.ts'
import { eraseEvent } from '../store/erase-event.ts'
import { item } from '../store/rows.ts'
import { append, indexAll } from '../store/suite.ts'
import { runToEnd } from '../support/command.ts'
import { type Driver, drivers } from '../support/drivers.ts'
import { withStore } from '../support/journal.ts'
import { connect, newPostgresDatabase } from '../support/postgres/databases.ts'
import { LAUNCHER } from '../support/process.ts'
import { tempFolder } from '../support/temp.ts'
import { until } from '../support/until.ts'

// As of the service, so that its databases are closed to other users.
process.umask(0o077)

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

    test('an event without its key is wrong; a key without its event is not, and is counted', async () => {
      const { url, ids } = await newDatabase(driver)
      const backDoor = backDoorOf(driver)
      await backDoor.deleteEvent(url, ids[2]!)
      const outlived = await examine(url)
      assert.deepEqual(wrongIn(outlived.checks), [])
      assert.match(outlived.of('keys').summary, /1 keys have no event any more/)
      await backDoor.deleteKey(url, ids[0]!)
      const { of, code } = await examine(url)
      assert.equal(code, 1)
      const problem = 'it has no dedupe key: sent again, it would be stored again'
      assert.deepEqual(of('keys').events, [{ id: ids[0], problem }])
    })

    test('an erased event is nothing wrong', async () => {
      const { url, ids } = await newDatabase(driver)
      await eraseEvent(url, ids[2]!, Date.now())
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
      assert.match(of('payloads').summary, /: 5 events and revisions/, 'they are read all the same')
    })
  })
}

test('files that every user of the machine can open are wrong, with the command that closes them', async () => {
  const path = join(tempFolder("doctor's files"), 'intray.db')
  const url = `sqlite:${path}`
  await withStore(url, async () => {})
  assert.equal((await examine(url)).of('files').verdict, 'ok')
  const index = path.replace(/\.db$/, '.index.db')
  for (const [file, mode] of [
    [path, 0o604],
    [index, 0o644],
    [index, 0o602],
  ] as const) {
    chmodSync(file, mode)
    const { code, of } = await examine(url)
    assert.equal(code, 1)
    assert.equal(of('files').verdict, 'wrong')
    assert.ok(of('files').summary.includes(`${file} (mode ${mode.toString(8)})`), of('files').summary)
    const command = /^Run: (chmod .*)$/.exec(of('files').advice ?? '')?.[1]
    execFileSync('sh', ['-c', command!])
    assert.equal((await examine(url)).of('files').verdict, 'ok', 'the command works')
  }
  chmodSync(path, 0o640)
  assert.equal((await examine(url)).of('files').verdict, 'ok', 'a group may be trusted')
})

test('where there is no database, doctor says so and makes none', async () => {
  const path = join(tempFolder('doctor'), 'none.db')
  const { code, stderr } = await runToEnd([LAUNCHER, 'doctor'], { INTRAY_DATABASE_URL: `sqlite:${path}` })
  assert.equal(code, 2)
  assert.match(stderr, /There is no database at/)
  assert.equal(existsSync(path), false)
})

test('for people every check is a line with a sentence, and a wrong call is told', async () => {
  const { url } = await newDatabase(drivers[0]!)
  const { code, stdout } = await runToEnd([LAUNCHER, 'doctor'], { INTRAY_DATABASE_URL: url })
  assert.equal(code, 0)
  assert.match(stdout.toString(), /^ok +opens: The database opens: driver=sqlite/)
  assert.match(stdout.toString(), /\nok +syncs: Commits are synced before they are acknowledged\.\n/)
  assert.match(stdout.toString(), /\nNo problems found\.\n$/)
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
