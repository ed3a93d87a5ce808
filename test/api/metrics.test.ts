// The figures: they count what happened, name nobody, and are the ones that the documentation lists.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { hasProgram } from '../../prove/debian.ts'
import { ROUTES } from '../../src/http/routes.ts'
import { ERRORS } from '../../src/model/errors.ts'
import { openBackupSource } from '../../src/store/open.ts'
import { startTestApp } from '../support/app.ts'
import { installPair, makeCertificate, newPairFiles, noOpenssl } from '../support/certificates.ts'
import { TestClock } from '../support/clock.ts'
import { drivers } from '../support/drivers.ts'
import { idOf } from '../support/intake.ts'
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

for (const driver of drivers) {
  test(`${driver.name}: counters are there from the start, each label value that is known beforehand with 0`, async (t) => {
    const app = await startTestApp(t, driver, SETTINGS)
    const text = await scrapeText(app)
    const samples = samplesOf(text)
    const types = Array.from(text.matchAll(/^# TYPE (\w+) (\w+)$/gm), ([, name, type]) => [name!, type!] as const)
    const counters = types.flatMap(([name, type]) => (type === 'counter' ? [name] : []))
    assert.ok(counters.length >= 9, counters.join())
    for (const [name, type] of types) assert.equal(type === 'counter', name.endsWith('_total'), `${name} is a ${type}`)
    for (const [name, value] of samples) {
      if (counters.includes(name.replace(/\{.*/, '')) && name !== 'process_cpu_seconds_total')
        assert.equal(value, 0, name)
    }
    const expected = [
      ...Object.keys(ERRORS).map((error) => `intray_errors_total{error="${error}"}`),
      ...ROUTES.map(({ path }) => `intray_http_requests_total{route="${path}",status="200"}`),
      ...['stored', 'duplicate', 'conflict'].map((outcome) => `intray_messages_total{outcome="${outcome}"}`),
      'intray_token_refusals_total{reason="forbidden_scope"}',
      'intray_shed_total{route="/v1/inbox/events"}',
      'intray_shed_total{route="/v1/inbox/claims"}',
      'intray_append_failures_total',
      'intray_refusals_dropped_total',
      'intray_erasures_total',
    ]
    for (const name of expected) assert.equal(samples.get(name), 0, name)
    assert.ok(samples.get('process_cpu_seconds_total')! > 0)
    await app.send({ path: '/api/ping' })
    await app.send({ path: '/nowhere' })
    const after = await scrape(app)
    assert.equal(after.get('intray_errors_total{error="missing_token"}'), 1)
    assert.equal(after.get('intray_http_requests_total{route="none",status="404"}'), 1)
  })

  test(`${driver.name}: the sizes of database and disk, and how far erasures are`, async (t) => {
    const app = await startTestApp(t, driver, SETTINGS)
    const before = await scrape(app)
    assert.ok(before.get('intray_database_bytes')! > 10_000)
    assert.equal(before.has('intray_disk_free_bytes'), driver.name === 'sqlite')
    if (driver.name === 'sqlite') {
      const [size, free] = [before.get('intray_disk_size_bytes')!, before.get('intray_disk_free_bytes')!]
      assert.ok(free > 0 && free <= size, `${free} of ${size}`)
    }
    const id = idOf(await app.post({ source_ref: 'to be erased' }))
    await app.indexed()
    const headers = { Authorization: `Bearer ${await app.createToken({ scope: 'admin' })}` }
    assert.equal((await app.send({ method: 'DELETE', path: `/v1/inbox/events/${id}`, headers })).status, 200)
    await until('the erasure is complete', async () => {
      const samples = await scrape(app)
      return samples.get('intray_erasures_total') === 1 && samples.get('intray_erasures_pending') === 0
    })
  })
}

test('why a stream ended is no outcome of a message', async (t) => {
  const app = await startTestApp(t, drivers[0]!, SETTINGS)
  const token = await app.createToken({ scope: 'processor' })
  const left = new AbortController()
  const stream = await fetch(`${app.url}/v1/inbox/stream`, {
    headers: { Authorization: `Bearer ${token}` },
    signal: left.signal,
  })
  assert.equal(stream.status, 200)
  left.abort()
  const name = 'intray_http_requests_total{route="/v1/inbox/stream",status="200"}'
  await until('the stream is counted', async () => (await scrape(app)).get(name) === 1)
  const outcomes = [...(await scrape(app)).keys()].filter((key) => key.startsWith('intray_messages_total'))
  assert.equal(outcomes.length, 3, outcomes.join())
})

const noPromtool = hasProgram('promtool') ? false : 'promtool is not installed (Debian: prometheus)'
test('promtool finds nothing to complain about', { skip: noPromtool }, async (t) => {
  const check = (text: string) => spawnSync('promtool', ['check', 'metrics'], { input: text, encoding: 'utf8' })
  for (const driver of drivers) {
    const app = await startTestApp(t, driver, SETTINGS)
    const { status, stdout, stderr } = check(await scrapeText(app))
    assert.deepEqual([status, stdout, stderr], [0, '', ''])
  }
  const control = check('# TYPE intray_things_total gauge\nintray_things_total 1\n')
  assert.notEqual(control.status, 0, 'control: a gauge named like a counter is found')
})

function withTls() {
  const { cert, key } = newPairFiles(makeCertificate())
  return { tlsCert: cert, tlsKey: key }
}

test('the metrics say when the certificate in use expires, and nothing of one without TLS', {
  skip: noOpenssl,
}, async (t) => {
  const name = 'intray_tls_certificate_expires_timestamp_seconds'
  const plain = await startTestApp(t, drivers[0]!, SETTINGS)
  assert.ok(!(await scrape(plain)).has(name))
  const settings = { ...SETTINGS.settings, ...withTls() }
  const app = await startTestApp(t, drivers[0]!, { settings })
  const expiresAt = () => Date.parse(new X509Certificate(readFileSync(settings.tlsCert)).validTo) / 1000
  assert.equal((await scrape(app)).get(name), expiresAt())
  installPair({ cert: settings.tlsCert, key: settings.tlsKey }, makeCertificate(9))
  await until('the renewed one counts', async () => (await scrape(app)).get(name) === expiresAt())
})

test('every figure stands in the documentation, and the documentation lists no other', {
  skip: noOpenssl,
}, async (t) => {
  const names = new Set<string>()
  // Disks are known on SQLite only, watermarks on PostgreSQL only.
  for (const driver of drivers) {
    const app = await startTestApp(t, driver, { settings: { ...SETTINGS.settings, ...withTls() } })
    // There from the first backup on.
    const source = await openBackupSource(app.databaseUrl)
    await source.note(Date.now())
    await source.close()
    // There once the first walk of retention has ended.
    const text = await until('retention has run', async () => {
      const scraped = await scrapeText(app)
      return scraped.includes('intray_retention_last_run_seconds') && scraped
    })
    for (const [, name] of text.matchAll(/^# TYPE (\w+) /gm)) names.add(name!)
  }
  const served = [...names]
  const text = readFileSync(new URL('../../docs/operating/monitoring.md', import.meta.url), 'utf8')
  const rows = text.slice(text.indexOf('## Metrics'), text.indexOf('## Alerts')).matchAll(/^\| (`.*?) \|/gm)
  const listed = [...rows].flatMap(([, names]) => [...names!.matchAll(/`(\w+)`/g)].map(([, name]) => name!))
  assert.deepEqual(listed.toSorted(), served.toSorted())
})

test('only GET /metrics is there, and nothing of it on the port of the service', async (t) => {
  const app = await startTestApp(t, drivers[0]!, SETTINGS)
  const address = String(app.log.find(({ msg }) => msg === 'listening')?.metrics)
  const headers = { Connection: 'close' }
  assert.equal((await fetch(address.replace('/metrics', '/'), { headers })).status, 404)
  assert.equal((await fetch(address, { method: 'POST', headers })).status, 404)
  assert.equal((await app.send({ path: '/metrics' })).status, 404)
})
