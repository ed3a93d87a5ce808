// Several hosts in the URL: the one that takes writes is found, a standby is passed over, and when the primary is gone and
// the standby was promoted the same store goes on.

import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { openStore } from '../../src/store/open.ts'
import { createDatabase, withClient } from '../support/postgres/databases.ts'
import {
  copyCluster,
  createCluster,
  makeStandby,
  type PostgresServer,
  startPostgres,
} from '../support/postgres/server.ts'
import { until } from '../support/until.ts'
import { item } from './rows.ts'
import { failure, outcomesOf, payloadText } from './suite.ts'

const REPLICATED = { fsync: 'off', max_wal_senders: '10', hot_standby: 'on' }

async function startPair(t: TestContext): Promise<{ primary: PostgresServer; standby: PostgresServer }> {
  const folder = await createCluster()
  const copy = await copyCluster(folder)
  const primary = await startPostgres(folder, REPLICATED)
  makeStandby(copy, `host=127.0.0.1 port=${primary.port} user=intray application_name=s1`)
  const standby = await startPostgres(copy, REPLICATED)
  t.after(() => Promise.all([primary.kill(), standby.kill()]))
  return { primary, standby }
}

test('the primary is found among the hosts, and its successor when it is gone', async (t) => {
  const { primary, standby } = await startPair(t)
  const name = new URL(await createDatabase(primary.url('postgres'))).pathname.slice(1)
  const url = `postgres://intray@127.0.0.1:${standby.port},127.0.0.1:${primary.port}/${name}`
  await until('the database is on the standby too', () =>
    withClient(standby.url(name), () => Promise.resolve(true)).catch(() => false),
  )
  await assert.rejects(openStore(standby.url(name), { role: 'server' }), {
    name: 'StoreRefused',
    message: /takes no writes: it is a standby/,
  })
  const store = await openStore(url, { role: 'server' })
  t.after(() => store.close())
  await withClient(primary.url('postgres'), async (client) => {
    await client.query("ALTER SYSTEM SET synchronous_standby_names = 'FIRST 1 (s1)'")
    await client.query('SELECT pg_reload_conf()')
    await until('the standby is in step', async () => {
      const { rows } = await client.query("SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'")
      return rows.length === 1
    })
  })
  const [first] = await store.journal.append([item({ sourceRef: 'a', body: 'before' })])
  assert.equal(first?.outcome, 'stored')

  await primary.kill()
  await until('nobody takes writes', () =>
    store.probe().then(
      () => false,
      (error: unknown) => failure('unavailable')(error),
    ),
  )
  await withClient(standby.url('postgres'), (client) => client.query('SELECT pg_promote()'))
  await until('the successor takes writes', () =>
    store.probe().then(
      () => true,
      () => false,
    ),
  )
  const [again, second] = await store.journal.append([
    item({ sourceRef: 'a', body: 'before' }),
    item({ sourceRef: 'b', body: 'after' }),
  ])
  assert.deepEqual(outcomesOf([again!, second!]), ['duplicate', 'stored'])
  assert.equal('id' in again! && (await payloadText(store, again.id)), 'before')
})
