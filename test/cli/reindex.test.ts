// `./intray reindex`: the index rebuilt from the journal, with and without a server.

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { type TestContext, test } from 'node:test'
import { indexPath } from '../../src/store/sqlite/index/index-file.ts'
import { intrayJson, newDatabaseEnv } from '../support/command.ts'
import { createToken, untilIndexed, withStore } from '../support/journal.ts'
import { post } from '../support/load.ts'
import { intray, startServer } from '../support/process.ts'
import { tempFolder } from '../support/temp.ts'
import { within } from '../support/until.ts'

const DERIVED = { event_index: 'event_id', conversations: 'id', repeats: 'event_id' }
const EVENTS = 60

/** Every row of what is derived. */
function derivedRows(databaseUrl: string): unknown {
  const db = new DatabaseSync(indexPath(databaseUrl.slice('sqlite:'.length)), { readOnly: true })
  const rows = Object.entries(DERIVED).map(([table, key]) => db.prepare(`SELECT * FROM ${table} ORDER BY ${key}`).all())
  db.close()
  return rows
}

/** Makes the index wrong, as a bug of an older version could have left it. */
function spoil(databaseUrl: string): void {
  const db = new DatabaseSync(indexPath(databaseUrl.slice('sqlite:'.length)), { timeout: 10_000 })
  db.exec(`UPDATE conversations SET event_count = event_count + 1, last_snippet = 'wrong';
    DELETE FROM event_index WHERE event_id % 3 = 0; DELETE FROM repeats`)
  db.close()
}

async function startFilledIntray(t: TestContext) {
  const databaseUrl = `sqlite:${join(tempFolder('cli-reindex'), 'intray.db')}`
  const env = { INTRAY_DATABASE_URL: databaseUrl }
  const token = await withStore(databaseUrl, (store) => createToken(store))
  const server = await startServer(t, env)
  for (let n = 1; n <= EVENTS; n += 1) {
    const body = {
      source_ref: `r:${n % 50}`,
      channel_ref: `c:${n % 4}`,
      message: { type: 'text', text: `text ${n % 45}` },
    }
    assert.equal((await post(server.port, token, JSON.stringify(body))).status, 200)
  }
  await untilIndexed(databaseUrl)
  return { databaseUrl, env, server, token, right: derivedRows(databaseUrl) }
}

test('beside a running server the rebuild ends with the same rows, and intake goes on', async (t) => {
  const { databaseUrl, env, server, token, right } = await startFilledIntray(t)
  spoil(databaseUrl)
  assert.notDeepEqual(derivedRows(databaseUrl), right)
  const { code, stdout, stderr } = await intray(['reindex'], env)
  assert.deepEqual([code, stdout.toString()], [0, 'The index covers everything, up to event 60.\n'], stderr)
  assert.deepEqual(derivedRows(databaseUrl), right)
  assert.equal((await post(server.port, token, '{"source_ref":"after"}')).status, 200)
})

test('without a server the command rebuilds by itself, and tells it as JSON', async (t) => {
  const { databaseUrl, env, server, right } = await startFilledIntray(t)
  server.child.kill('SIGTERM')
  assert.equal(await within('the server to end', server.exited), 0)
  spoil(databaseUrl)
  const { cursor } = await intrayJson(['reindex', '--status'], env)
  assert.deepEqual(await intrayJson(['reindex'], env), {
    cursor,
    lag: 0,
    searchable: cursor,
    search_lag: 0,
    clearing: false,
  })
  assert.deepEqual(derivedRows(databaseUrl), right)
})

test('a changed INTRAY_EXTRACT_BYTES takes effect with a rebuild', async (t) => {
  const { databaseUrl, env, server, token } = await startFilledIntray(t)
  const numbers = new Array<number>(1000).fill(1)
  const body = JSON.stringify({ numbers, contact: { name: 'Ada' } })
  assert.equal((await post(server.port, token, body)).status, 200)
  await untilIndexed(databaseUrl)
  server.child.kill('SIGTERM')
  assert.equal(await within('the server to end', server.exited), 0)
  const hasAda = () => JSON.stringify(derivedRows(databaseUrl)).includes('"Ada"')
  assert.ok(hasAda(), 'the control: with the default it is found')
  await intrayJson(['reindex'], { ...env, INTRAY_EXTRACT_BYTES: '1024' })
  assert.ok(!hasAda())
  await intrayJson(['reindex'], env)
  assert.ok(hasAda())
})

test('--status only tells how far the index is', async (t) => {
  const { databaseUrl, env, server, token, right } = await startFilledIntray(t)
  const running = await intrayJson(['reindex', '--status'], env)
  assert.deepEqual(Object.keys(running).toSorted(), ['clearing', 'cursor', 'lag', 'search_lag', 'searchable'])
  assert.deepEqual([running.lag, running.clearing], [0, false])
  assert.ok(Number(running.cursor) > 0)
  assert.equal((await post(server.port, token, '{"source_ref":"one more"}')).status, 200)
  await untilIndexed(databaseUrl)
  server.child.kill('SIGTERM')
  await server.exited
  const text = await intray(['reindex', '--status'], env)
  assert.equal(text.stdout.toString(), `The index covers everything, up to event ${Number(running.cursor) + 1}.\n`)
  assert.notDeepEqual(derivedRows(databaseUrl), right, 'one row more, and the others were not touched')
})

test('a new database, and an option that does not exist', async () => {
  const env = await newDatabaseEnv('cli-reindex')
  assert.deepEqual(await intrayJson(['reindex'], env), {
    cursor: 0,
    lag: 0,
    searchable: 0,
    search_lag: 0,
    clearing: false,
  })
  const { code, stderr } = await intray(['reindex', '--fast'], env)
  assert.equal(code, 2)
  assert.match(stderr, /--fast/)
})
