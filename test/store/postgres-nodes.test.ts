// Several services on one PostgreSQL database agree about tokens and messages, with nothing between them but the database.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { POLL_MS } from '../../src/auth/principals.ts'
import type { Store } from '../../src/store/contract/store.ts'
import { openStore } from '../../src/store/open.ts'
import { LOCKS } from '../../src/store/postgres/connection/locks.ts'
import { startTestApp, type TestApp } from '../support/app.ts'
import { ask } from '../support/postgres/ask.ts'
import { connect, newMigratedDatabase, newPostgresDatabase, withClient } from '../support/postgres/databases.ts'
import { startProxy, through } from '../support/postgres/proxy.ts'
import { until } from '../support/until.ts'
import { backDoorOf } from './back-door.ts'
import { drivers, postgresOn } from '../support/drivers.ts'
import { item } from './rows.ts'
import { newDatabase } from './suite.ts'

const postgres = drivers.find(({ name }) => name === 'postgres')!

const statusOf = async (node: TestApp, token: string): Promise<number> =>
  (await node.send({ method: 'GET', path: '/api/ping', headers: { Authorization: `Bearer ${token}` } })).status

test('a token made on one node works on the other at once, and disabled there it is refused here after one look at the tokens', async (t) => {
  const url = await newPostgresDatabase()
  const sameDatabase = postgresOn(async () => url)
  const a = await startTestApp(t, sameDatabase)
  let looks = 0
  const wrapStore = (store: Store): Store => ({
    ...store,
    tokens: {
      ...store.tokens,
      generation: () => {
        looks += 1
        return store.tokens.generation()
      },
    },
  })
  const b = await startTestApp(t, sameDatabase, { wrapStore })
  const token = await a.createToken()
  assert.equal(await statusOf(b, token), 200)
  const keyId = token.split('_')[1]!
  await a.store.tokens.setActive(keyId, false, Date.now())
  // One look may have begun before the change; when there is a second one, the first that came after it is over.
  const before = looks
  await until('the other node has looked, and looks again', () => looks >= before + 2)
  assert.equal(await statusOf(b, token), 401)
  assert.ok(2 * POLL_MS <= 5000, 'two looks are within the 5 s that docs/internals/adr/0017 promises')
  const generation = await a.store.tokens.generation()
  await until('both nodes have reported it', async () => {
    const live = await a.store.nodes.live()
    return live.length === 2 && live.every(({ tokenGeneration }) => tokenGeneration === generation)
  })
})

test('a report that is under way when its node signs off does not put the node back', async (t) => {
  const url = await newMigratedDatabase()
  const gate = await connect(url)
  t.after(() => gate.end())
  // Two connections: one is with the report that waits at the gate; whoever asks next stands behind the sign-off.
  const store = await openStore(`${url}?pool_size=2`, { role: 'server' })
  t.after(() => store.close())
  await store.nodes.report({ nodeId: 'node-1', tokenGeneration: 0 })
  await gate.query(`CREATE FUNCTION intray.wait_at_gate() RETURNS trigger LANGUAGE plpgsql AS
      $$BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NULL; END$$;
    CREATE TRIGGER gate BEFORE INSERT ON intray.nodes EXECUTE FUNCTION intray.wait_at_gate();
    SELECT pg_advisory_lock(1)`)
  const waiting = `SELECT count(*)::int FROM pg_locks l JOIN pg_database d ON d.oid = l.database
    WHERE d.datname = current_database() AND l.locktype = 'advisory' AND NOT l.granted`
  await until('a report waits at the gate', async () => (await ask<number>(url, waiting)) === 1)

  const signedOff = store.nodes.remove('node-1')
  await store.nodes.live()
  await gate.query('SELECT pg_advisory_unlock(1)')
  await signedOff
  await store.close()
  const sessions = `SELECT count(*)::int FROM pg_stat_activity WHERE datname = current_database()
    AND application_name = 'intray'`
  await until('the report is over', async () => (await ask<number>(url, sessions)) === 0)
  assert.equal(await ask<number>(url, 'SELECT count(*)::int FROM intray.nodes'), 0)
})

test('one message sent to both nodes at once is one event, answered with one id', async (t) => {
  const url = await newPostgresDatabase()
  const sameDatabase = postgresOn(async () => url)
  const nodes = [await startTestApp(t, sameDatabase), await startTestApp(t, sameDatabase)]
  for (let n = 0; n < 20; n++) {
    const body = { source_ref: `form-${n}`, channel_ref: 'page' }
    const answers = await Promise.all([...nodes, ...nodes].map((node) => node.post(body)))
    for (const { status } of answers) assert.equal(status, 200)
    const ids = answers.map(({ json }) => (json as { id: number }).id)
    assert.equal(new Set(ids).size, 1)
  }
  await nodes[0]!.indexed()
  const conversation = await nodes[1]!.store.events.conversation({ accountId: 7, companyId: 42 }, 'page')
  assert.equal(conversation?.eventCount, 20)
})

test('while no server can be reached: 503 with Retry-After, not ready, alive; and back without a restart', async (t) => {
  const url = await newPostgresDatabase()
  const proxy = await startProxy(Number(new URL(url).port), 'intray_append')
  t.after(() => proxy.close())
  const node = await startTestApp(
    t,
    postgresOn(async () => through(proxy, url)),
  )
  const look = async (path: string) => (await node.send({ method: 'GET', path })).status
  assert.equal((await node.post({ source_ref: 'before' })).status, 200)
  proxy.refuse(true)
  const refused = await node.post({ source_ref: 'during' })
  assert.equal(refused.status, 503)
  assert.equal(refused.json?.error, 'storage_unavailable')
  assert.ok(Number(refused.headers['retry-after']) > 0)
  await until('it says that it is not ready', async () => (await look('/readyz')) === 503)
  assert.equal(await look('/livez'), 200)
  proxy.refuse(false)
  await until('it is ready again', async () => (await look('/readyz')) === 200)
  const again = await node.post({ source_ref: 'during' })
  assert.deepEqual([again.status, again.json?.duplicate], [200, undefined])
  assert.equal((await backDoorOf(postgres).countJournal(url)).events, 2)
})

test('an append after the schema is gone is fatal, and the process is told once', async (t) => {
  const database = await newDatabase(t, postgres)
  const store = await database.open('server')
  await store.journal.append([item()])
  const told: Error[] = []
  store.onFatal((failure) => told.push(failure))
  await withClient(database.url, (client) => client.query('DROP SCHEMA intray CASCADE'))
  for (let n = 0; n < 2; n++) await assert.rejects(store.journal.append([item()]), { kind: 'fatal' })
  assert.equal(told.length, 1)
})

test('old traffic is deleted in turn with the steps of the index', async (t) => {
  const database = await newDatabase(t, postgres)
  const store = await database.open('server')
  const runner = await connect(database.url)
  t.after(() => runner.end())
  const [group, lock] = LOCKS.indexer
  await runner.query(`BEGIN; SELECT pg_advisory_xact_lock(${group}, ${lock})`)
  await assert.rejects(store.index.pruneTraffic(1, 1), { kind: 'unavailable' })
  await runner.query('COMMIT')
  await store.index.pruneTraffic(1, 1)
})
