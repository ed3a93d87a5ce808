// `./intray copy` that does not come to its end: the source goes on, and what the copy left in it is found and removed.

import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { item } from '../store/rows.ts'
import { intrayJson, runToEnd } from '../support/command.ts'
import { copyArgs, copyWhile } from '../support/copy-command.ts'
import { type Driver, drivers } from '../support/drivers.ts'
import { createToken, withStore } from '../support/journal.ts'
import { killedAtLine } from '../support/killed-at-line.ts'
import { post } from '../support/load.ts'
import { withClient } from '../support/postgres/databases.ts'
import { intray, LAUNCHER, startServer } from '../support/process.ts'

const STORED = 2000

interface Check {
  readonly name: string
  readonly verdict: string
  readonly advice?: string
}

async function filled(driver: Driver): Promise<{ readonly url: string; readonly token: string }> {
  const url = await driver.newDatabase()
  const token = await withStore(url, async (store) => {
    for (let n = 0; n < STORED; n += 200) {
      await store.journal.append(Array.from({ length: 200 }, (_, i) => item({ sourceRef: `stored ${n + i}` })))
    }
    return createToken(store)
  })
  return { url, token }
}

/** By hand, in each database's own words. */
async function execute(url: string, statements: { readonly sqlite: string; readonly postgres: string }): Promise<void> {
  if (url.startsWith('postgres')) return withClient(url, (client) => client.query(statements.postgres).then(() => {}))
  const db = new DatabaseSync(url.slice('sqlite:'.length), { timeout: 10_000 })
  db.exec(statements.sqlite)
  db.close()
}

const AS_IF_LONG_AGO = {
  sqlite: "UPDATE meta SET value = CAST('1000' AS BLOB) WHERE key = 'copy_seen'",
  postgres: "UPDATE intray.meta SET value = '1000' WHERE key = 'copy_seen'",
}

/** The check of the copy; undefined if nothing of a copy is there. */
async function copyCheck(url: string): Promise<Check | undefined> {
  const { stdout } = await runToEnd([LAUNCHER, 'doctor', '--sample', '1', '--json'], { INTRAY_DATABASE_URL: url })
  const { checks } = JSON.parse(stdout.toString()) as { checks: readonly Check[] }
  return checks.find(({ name }) => name === 'copy')
}

for (const [from, to] of [drivers, drivers.toReversed()]) {
  test(`${from!.name}: a copy that is killed leaves its source open, doctor names it, and the next one brings what came meanwhile`, async (t) => {
    const { url, token } = await filled(from!)
    const server = await startServer(t, { INTRAY_DATABASE_URL: url })
    const target = await to!.newDatabase()
    assert.equal(await copyCheck(url), undefined)
    assert.ok(await killedAtLine('copy: events ', copyArgs(url, target)))
    const { status, json } = await post(server.port, token, '{"source_ref":"meanwhile"}')
    assert.equal(status, 200)
    assert.equal((await copyCheck(url))?.verdict, 'ok')
    await execute(url, AS_IF_LONG_AGO)
    const { verdict, advice } = (await copyCheck(url))!
    assert.deepEqual([verdict, /copy --release/.test(advice!)], ['warning', true])
    await intrayJson([...copyArgs(url, target)], {})
    const event = await withStore(target, (store) => store.events.find(json!.id as number))
    assert.equal(event?.sourceRef, 'meanwhile')
    assert.equal(await copyCheck(url), undefined)
  })

  test(`${from!.name}: what a killed copy left goes with a release, and with the next start of a server once it is old`, async (t) => {
    const { url, token } = await filled(from!)
    assert.ok(await killedAtLine('copy: events ', copyArgs(url, await to!.newDatabase())))
    const recent = await startServer(t, { INTRAY_DATABASE_URL: url })
    assert.equal((await copyCheck(url))?.verdict, 'ok', 'a copy may be running')
    recent.child.kill('SIGTERM')
    await recent.exited
    await execute(url, AS_IF_LONG_AGO)
    const { port } = await startServer(t, { INTRAY_DATABASE_URL: url })
    assert.equal(await copyCheck(url), undefined)
    assert.equal((await post(port, token, '{"source_ref":"after"}')).status, 200)
    assert.ok(await killedAtLine('copy: events ', copyArgs(url, await to!.newDatabase())))
    assert.match((await intray(['copy', '--release', url], {})).stdout.toString(), /does not note changes/)
    assert.equal(await copyCheck(url), undefined)
    assert.equal((await post(port, token, '{"source_ref":"released"}')).status, 200)
  })

  test(`${from!.name}: a copy that missed rows is found by their count, and the source goes on (the control)`, async (t) => {
    const { url, token } = await filled(from!)
    const server = await startServer(t, { INTRAY_DATABASE_URL: url })
    const target = await to!.newDatabase()
    let sent = 0
    const run = await copyWhile(url, target, {
      // Dedupe keys are copied by then: it sees none of those that come from here on.
      at: 'copy: events ',
      run: async (goOn, isOver) => {
        await execute(url, {
          sqlite: 'DROP TRIGGER noted_dedupe_insert',
          postgres: 'DROP TRIGGER noted_insert ON intray.dedupe',
        })
        for (let n = 0; n < 1000 && !isOver(); n++) {
          const answer = await post(server.port, token, `{"source_ref":"missed ${n}"}`)
          if (answer.status !== 200) break
          sent += 1
          if (sent === 1) goOn()
        }
      },
    })
    assert.match(run.said, /The copy differs from its source in dedupe: \d+ rows instead of \d+/)
    assert.equal(run.code, 1)
    assert.ok(sent > 0)
    assert.equal((await post(server.port, token, '{"source_ref":"open"}')).status, 200)
    assert.equal(await copyCheck(url), undefined)
    t.diagnostic(`${sent} messages were not noted`)
  })
}
