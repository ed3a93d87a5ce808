// The figures: they count what happened, name nobody, and are the ones that the documentation lists.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { openBackupSource } from '../../src/store/open.ts'
import { startTestApp } from '../support/app.ts'
import { TestClock } from '../support/clock.ts'
import { drivers } from '../support/drivers.ts'
import { samplesOf, scrape, scrapeText } from '../support/metrics.ts'
import { until } from '../support/until.ts'

const SETTINGS = { settings: { metrics: '127.0.0.1:0' } } as const

for (const driver of drivers) {
  test(`${driver.name}: what happened is counted, and nobody is named`, async (t) => {
    const app = await startTestApp(t, driver, SETTINGS)
    const before = await scrape(app)
    assert.equal(before.get('intray_ready'), 1)
    assert.equal(before.get('intray_append_failures_total'), 0)
    for (const body of ['{"source_ref":"a"}', '{"source_ref":"a"}', '{"source_ref":"a","x":1}', '{"source_ref":"b"}']) {
      assert.equal((await app.post(body)).status, 200)
    }
    assert.equal((await app.post('{"source_ref":true}')).status, 422)
    assert.equal((await app.send({ path: '/api/ping', headers: { Authorization: 'Bearer nobody' } })).status, 401)
    assert.equal((await app.send({ path: '/secret-looking-path' })).status, 404)
    await app.indexed()
    const text = await scrapeText(app)
    const samples = samplesOf(text)
    const expected = {
      'intray_http_requests_total{route="/v1/inbox/events",status="200"}': 4,
      'intray_http_requests_total{route="/v1/inbox/events",status="422"}': 1,
      'intray_http_requests_total{route="/api/ping",status="401"}': 1,
      'intray_http_requests_total{route="none",status="404"}': 1,
      intray_http_request_seconds_count: 7,
      'intray_http_request_seconds_bucket{le="+Inf"}': 7,
      'intray_messages_total{outcome="stored"}': 2,
      'intray_messages_total{outcome="duplicate"}': 1,
      'intray_messages_total{outcome="conflict"}': 1,
      'intray_errors_total{error="invalid_payload"}': 1,
      'intray_errors_total{error="invalid_token"}': 1,
      'intray_token_refusals_total{reason="invalid_token"}': 1,
      intray_append_events_count: 4,
      intray_append_events_sum: 4,
      intray_index_lag: 0,
      intray_queue_events: 0,
    }
    for (const [name, value] of Object.entries(expected)) assert.equal(samples.get(name), value, name)
    await until('the event loop is looked at', async () => {
      return (await scrape(app)).get('intray_event_loop_delay_seconds')! > 0
    })
    const keyId = app.token.split('_')[1]!
    for (const word of [keyId, 'secret-looking-path', 'account', 'company', 'source_ref']) {
      assert.ok(!text.includes(word), word)
    }
  })
}

test('refusals that are not kept are counted', async (t) => {
  const droppedWith = async (refusalsBuffer: string) => {
    const app = await startTestApp(t, drivers[0]!, { settings: { ...SETTINGS.settings, refusalsBuffer } })
    for (let n = 0; n < 3; n += 1) assert.equal((await app.post('{')).status, 400)
    return (await scrape(app)).get('intray_refusals_dropped_total')
  }
  assert.equal(await droppedWith('0'), 3)
  assert.equal(await droppedWith('256'), 0)
})

for (const driver of drivers) {
  test(`${driver.name}: leases, what is pending and for how long, and why tokens were refused`, async (t) => {
    const clock = new TestClock(Date.now())
    const app = await startTestApp(t, driver, { clock, settings: { ...SETTINGS.settings, failedTokenLimit: '1/1h' } })
    const token = await app.createToken({ scope: 'processor' })
    const limited = await app.createToken({ rateLimit: { requests: 1, windowMs: 3_600_000 } })
    const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' }
    const claim = (body: string) => app.send({ method: 'POST', path: '/v1/inbox/claims', headers, body })
    for (const n of [1, 2, 3]) await app.post({ n })
    await app.indexed()
    assert.equal((await claim('{"limit":1,"lease_s":600}')).status, 200)
    clock.advance(90_000)
    for (const one of ['nobody', 'nobody', limited, limited]) {
      await app.send({ path: '/api/ping', headers: { Authorization: `Bearer ${one}` } })
    }
    const figure = async (name: string) => (await scrape(app)).get(name)
    // What the store is asked for is kept for two seconds.
    await until('the lease is counted', async () => (await figure('intray_leases')) === 1)
    const pending = await figure('intray_oldest_pending_seconds')
    assert.ok(pending !== undefined && pending >= 90 && pending < 190, String(pending))
    const samples = await scrape(app)
    for (const reason of ['invalid_token', 'too_many_failures', 'rate_limited'])
      assert.equal(samples.get(`intray_token_refusals_total{reason="${reason}"}`), 1, reason)
    assert.equal(samples.has('intray_watermark_age_seconds'), driver.name === 'postgres')
    clock.advance(600_000)
    await until('the lease is over', async () => (await figure('intray_leases')) === 0)
  })
}

test('every figure stands in the documentation, and the documentation lists no other', async (t) => {
  const settings = { ...SETTINGS.settings, queueMaxEvents: '1', queueMaxBytes: '1024' }
  // On PostgreSQL there is one more: how old the watermark is.
  const app = await startTestApp(t, drivers.find(({ name }) => name === 'postgres')!, { settings })
  await until('a message is shed', async () => {
    const answers = await Promise.all([app.post('{}'), app.post('{}'), app.post('{}')])
    return answers.some(({ status }) => status === 503)
  })
  await app.send({ path: '/api/ping' })
  // There from the first backup on.
  const source = await openBackupSource(app.databaseUrl)
  await source.note(Date.now())
  await source.close()
  const served = [...(await scrapeText(app)).matchAll(/^# TYPE (\w+) /gm)].map(([, name]) => name!)
  const text = readFileSync(new URL('../../docs/operating/monitoring.md', import.meta.url), 'utf8')
  const rows = text.slice(text.indexOf('## Metrics'), text.indexOf('## Alerts')).matchAll(/^\| (`.*?) \|/gm)
  const listed = [...rows].flatMap(([, names]) => [...names!.matchAll(/`(\w+)`/g)].map(([, name]) => name!))
  assert.deepEqual(listed.toSorted(), served.toSorted())
})

test('only GET /metrics is there, and nothing of it on the port of the service', async (t) => {
  const app = await startTestApp(t, drivers[0]!, SETTINGS)
  const address = String(app.log.find(({ msg }) => msg === 'listening')?.metrics)
  assert.equal((await fetch(address.replace('/metrics', '/'))).status, 404)
  assert.equal((await fetch(address, { method: 'POST' })).status, 404)
  assert.equal((await app.send({ path: '/metrics' })).status, 404)
})
