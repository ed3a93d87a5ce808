// The secrets of an endpoint are written down nowhere in clear: canaries as header, signing secret and query, at a receiver that repeats
// all it got. Neither the log, an answer, the metrics, the audit log nor the database may hold a piece of one afterwards.

import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { type TestContext, test } from 'node:test'
import { randomBase62 } from '../../src/runtime/id.ts'
import { findCanaries, type Place, placesOfDatabase } from '../support/canaries.ts'
import { send } from '../support/client.ts'
import { type Driver, drivers } from '../support/drivers.ts'
import { createToken, withStore } from '../support/journal.ts'
import { intray, startServer } from '../support/process.ts'
import { startReceiver } from '../support/receiver.ts'
import { until } from '../support/until.ts'

const ENDPOINT = '/v1/inbox/subscriptions/default/endpoint'
const TENANT = ['--account', '7', '--company', '42']

for (const driver of drivers) {
  test(`${driver.name}: no secret of an endpoint is found anywhere`, async (t) => {
    const canaries = {
      header: randomBase62(36),
      secret: `whsec_${randomBytes(48).toString('base64')}`,
      query: randomBase62(36),
      refused: randomBase62(36),
    }
    const { databaseUrl, env, places } = await provoke(t, driver, canaries)
    const found = new Map(Object.entries(canaries).map(([name, canary]) => [canary, name]))
    places.push(...(await placesOfDatabase(databaseUrl, 'at the end')))
    assert.ok(places.filter(({ bytes }) => bytes.length > 0).length >= 20, 'there is something to look at')
    assert.deepEqual(findCanaries(places, found), [])

    // The control: with the key they are all there.
    const shown = await intray(['endpoint', 'test', ...TENANT, '--json'], env)
    assert.equal(shown.code, 1, 'the receiver was reached, and refuses')
    const planted: Place = { name: 'control', bytes: Buffer.from(Object.values(canaries).join(' ')) }
    assert.equal(findCanaries([planted], found).length, Object.keys(canaries).length)
  })
}

/** Makes the endpoint, lets it fail and answer with all it got, and collects whatever the service says. */
async function provoke(
  t: TestContext,
  driver: Driver,
  canaries: Record<'header' | 'secret' | 'query' | 'refused', string>,
) {
  const databaseUrl = await driver.newDatabase()
  const env = {
    INTRAY_DATABASE_URL: databaseUrl,
    INTRAY_SECRETS_KEY: randomBytes(32).toString('base64'),
    INTRAY_PUSH_ALLOW: 'loopback',
    INTRAY_LOG_LEVEL: 'debug',
    INTRAY_LOG_FORMAT: 'json',
    INTRAY_METRICS: '127.0.0.1:0',
  }
  const receiver = await startReceiver(t, (one, res) => {
    const text = `${JSON.stringify(one.headers)} ${canaries.query} ${canaries.secret}`
    // Once as it is, once so that the cut falls into the secrets.
    res.writeHead(500).end(one.n % 2 === 0 ? text : `${'x'.repeat(1000)} Bearer ${canaries.header}`)
  })
  const server = await startServer(t, env)
  const token = await withStore(databaseUrl, (store) => createToken(store, { scope: 'processor' }))
  const sender = await withStore(databaseUrl, (store) => createToken(store))
  const places: Place[] = []
  const call = async (method: string, path: string, body?: object, as = token) => {
    const headers = { Authorization: `Bearer ${as}`, 'Content-Type': 'application/json' }
    const answer = await send(server.port, { method, path, headers, ...(body ? { body: JSON.stringify(body) } : {}) })
    places.push({ name: `${method} ${path}`, bytes: Buffer.from(JSON.stringify(answer.headers) + answer.text) })
    return answer
  }
  await call('POST', '/v1/inbox/subscriptions', { name: 'default', first_delay_s: 1, max_delay_s: 1, max_attempts: 3 })
  const url = `http://127.0.0.1:${receiver.port}/hook?key=${canaries.query}`
  const headers = [{ name: 'Authorization', value: `Bearer ${canaries.header}` }]
  const refused = [
    { url: `http://127.0.0.1/${'p'.repeat(3000)}?k=${canaries.refused}` },
    { url: `ftp://${canaries.refused}@host/` },
    { url, headers: [{ name: 'X', value: `${canaries.refused}\n` }] },
    { url, headers: [{ name: 'Host', value: canaries.refused }] },
    { url, secret: `whsec_${canaries.refused}!` },
    { url, [canaries.refused]: 1 },
  ]
  for (const body of refused) assert.equal((await call('POST', ENDPOINT, body)).status, 422)
  const set = await call('POST', ENDPOINT, { url, headers, secret: canaries.secret })
  assert.equal(set.status, 200, set.text)
  const stored = await call('POST', '/v1/inbox/events', { text: 'hello' }, sender)
  await until('the event is dead', async () => {
    const { text } = await call('GET', `/v1/inbox/events/${stored.json!.id}/history`)
    return text.includes('"dead"')
  })
  for (const path of ['/v1/inbox/endpoints', ENDPOINT, `${ENDPOINT}/attempts`]) await call('GET', path)
  for (const verb of ['test', 'pause', 'resume']) await call('POST', `${ENDPOINT}/${verb}`, {})
  for (const command of [['list'], ['show', ...TENANT], ['test', ...TENANT], ['pause', ...TENANT]]) {
    const { stdout, stderr } = await intray(['endpoint', ...command], env)
    places.push({ name: `endpoint ${command[0]}`, bytes: Buffer.concat([stdout, Buffer.from(`${stderr}.`)]) })
  }
  const audit = await withStore(databaseUrl, (store) => store.operators.listAudit(null, 100))
  places.push({ name: 'audit', bytes: Buffer.from(JSON.stringify(audit)) })
  const metrics = /"metrics":"(http[^"]+)"/.exec(server.stderr())?.[1]
  places.push({ name: 'metrics', bytes: Buffer.from(await (await fetch(metrics!)).text()) })
  server.child.kill('SIGTERM')
  await server.exited
  places.push({ name: 'log', bytes: Buffer.from(server.stderr() + server.stdout()) })
  return { databaseUrl, env, places }
}
