// Traces as a collector gets them: whose trace a request belongs to, what its spans say, and what they never say.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { TracerProvider } from '@opentelemetry/sdk-trace'
import type { SettingName } from '../../src/config.ts'
import { createLogger } from '../../src/runtime/log.ts'
import { OtlpExport } from '../../src/runtime/otlp-export.ts'
import { Tracing } from '../../src/runtime/tracing.ts'
import { startTestApp, type TestApp, type TestAppOptions } from '../support/app.ts'
import { runToEnd } from '../support/command.ts'
import { drivers } from '../support/drivers.ts'
import { jsonHeaders } from '../support/intake.ts'
import { type Collector, type ReceivedSpan, startCollector } from '../support/otlp.ts'
import { LAUNCHER, startServer } from '../support/process.ts'
import { tempFolder } from '../support/temp.ts'
import { until, within } from '../support/until.ts'

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
const SENDER = '00f067aa0ba902b7'
const SAMPLED = `00-${TRACE}-${SENDER}-01`

interface Traced {
  readonly collector: Collector
  readonly app: TestApp
  /** Stops the service, which exports what is left, and returns all spans once so many have come. */
  received(count: number): Promise<readonly ReceivedSpan[]>
}

async function startTraced(
  t: TestContext,
  settings: Partial<Record<SettingName, string>> = {},
  options: TestAppOptions = {},
): Promise<Traced> {
  const collector = await startCollector(t)
  const app = await startTestApp(t, drivers[0]!, {
    ...options,
    settings: { otlpEndpoint: collector.url, ...settings },
  })
  const received = async (count: number) => {
    await app.app.stop()
    return until(`${count} spans`, () => collector.spans.length >= count && collector.spans)
  }
  return { collector, app, received }
}

async function claim(app: TestApp): Promise<readonly Record<string, unknown>[]> {
  const headers = jsonHeaders(await app.createToken({ scope: 'processor' }))
  const answer = await app.send({ method: 'POST', path: '/v1/inbox/claims', headers, body: '{"limit":10}' })
  return answer.json?.events as Record<string, unknown>[]
}

function one(spans: readonly ReceivedSpan[], name: string): ReceivedSpan {
  const found = spans.filter((span) => span.name === name)
  assert.equal(found.length, 1, `${name}: ${found.length} of ${spans.map((span) => span.name).join(', ')}`)
  return found[0]!
}

const liesWithin = (inner: ReceivedSpan, outer: ReceivedSpan) =>
  BigInt(outer.startTimeUnixNano) <= BigInt(inner.startTimeUnixNano) &&
  BigInt(inner.startTimeUnixNano) < BigInt(inner.endTimeUnixNano) &&
  BigInt(inner.endTimeUnixNano) <= BigInt(outer.endTimeUnixNano)

test("a message is in its sender's trace, and the claim that hands it out is linked to it", async (t) => {
  const { app, collector, received } = await startTraced(t)
  const id = (await app.post({ n: 1 }, { traceparent: SAMPLED })).json?.id
  await app.indexed()
  const [event] = await claim(app)
  assert.equal(event?.traceparent, SAMPLED, 'the processor can go on with it')
  const spans = await received(5)
  const request = one(spans, 'POST /v1/inbox/events')
  const { 'intray.request_id': requestId, ...attributes } = request.attributes
  assert.deepEqual(attributes, {
    'http.request.method': 'POST',
    'http.route': '/v1/inbox/events',
    'http.response.status_code': 200,
    'intray.outcome': 'stored',
    'intray.event_id': id,
  })
  assert.deepEqual([request.kind, request.traceId, request.parentSpanId], ['SPAN_KIND_SERVER', TRACE, SENDER])
  const logged = app.log.find((line) => line.request_id === requestId)
  assert.deepEqual([logged?.event_id, logged?.trace_id], [id, TRACE], 'the log names the trace, the span the request')

  const commit = one(spans, 'commit')
  assert.deepEqual([commit.traceId, commit.parentSpanId], [TRACE, request.spanId])
  assert.deepEqual(commit.attributes, { 'messaging.batch.message_count': 1 })
  assert.ok(liesWithin(commit, request), 'a commit begins and ends while its request waits')

  const claiming = one(spans, 'claim')
  assert.equal(claiming.parentSpanId, one(spans, 'POST /v1/inbox/claims').spanId)
  assert.notEqual(claiming.traceId, TRACE)
  assert.deepEqual(
    claiming.links?.map(({ traceId, spanId, attributes: of }) => [traceId, spanId, of]),
    [[TRACE, SENDER, { 'intray.event_id': id }]],
  )
  const index = one(spans, 'index')
  assert.deepEqual([index.attributes['messaging.batch.message_count'], index.parentSpanId], [1, undefined])
  const { 'service.name': service, 'service.instance.id': instance } = collector.resources[0]!
  assert.equal(service, 'intray')
  assert.match(String(instance), /^[0-9a-f-]{36}$/)
})

test('a sender decides whether its request is traced, and INTRAY_TRACE_REQUESTS about all others', async (t) => {
  const tracesOf = async (traceRequests: string, expected: number) => {
    const { app, received } = await startTraced(t, { traceRequests })
    const unsampled = SAMPLED.replace(/01$/, '00')
    const unusable = [
      SAMPLED.replace(TRACE, '0'.repeat(32)),
      SAMPLED.toUpperCase(),
      `ff${SAMPLED.slice(2)}`,
      'nonsense',
    ]
    for (const traceparent of [SAMPLED, unsampled, ...unusable]) await app.post('{}', { traceparent })
    await app.post('{}')
    // Each with its commit.
    const requests = (await received(2 * expected)).filter(({ kind }) => kind === 'SPAN_KIND_SERVER')
    return [requests.length, requests.filter(({ traceId }) => traceId === TRACE).length]
  }
  assert.deepEqual(await tracesOf('0', 1), [1, 1])
  assert.deepEqual(await tracesOf('100', 6), [6, 1], 'all but the one that its sender left out')
})

test('refused requests say why, and only failures of the service are errors', async (t) => {
  const { app, received } = await startTraced(
    t,
    {},
    {
      wrapStore: (store) => ({
        ...store,
        journal: { ...store.journal, append: () => Promise.reject(new Error('gone')) },
      }),
    },
  )
  assert.equal((await app.post('not json')).status, 400)
  assert.equal((await app.send({ path: '/nowhere' })).status, 404)
  assert.equal((await app.post('{}')).status, 503)
  const spans = await received(4)
  const said = spans.map(({ name, status, attributes }) => [name, status.code, attributes['error.type']])
  assert.deepEqual(said.toSorted(), [
    ['GET', 'STATUS_CODE_UNSET', 'not_found'],
    ['POST /v1/inbox/events', 'STATUS_CODE_ERROR', 'storage_unavailable'],
    ['POST /v1/inbox/events', 'STATUS_CODE_UNSET', 'invalid_json'],
    ['commit', 'STATUS_CODE_ERROR', undefined],
  ])
})

test('no span has anything that a sender wrote', async (t) => {
  const { app, received } = await startTraced(t)
  const canary = 'canary7f3a'
  const headers = { 'User-Agent': canary, 'Idempotency-Key': canary, 'X-Other': canary, traceparent: SAMPLED }
  const body = { source_ref: canary, channel_ref: canary, contact: { name: canary }, message: { text: canary } }
  for (const token of [app.token, `itr_${canary}`]) {
    const authorization = { Authorization: `Bearer ${token}` }
    await app.post(body, { ...headers, ...authorization })
    await app.send({ path: `/api/inbox-test?token=${token}`, headers: { 'User-Agent': canary } })
    await app.send({ path: `/${canary}?q=${canary}`, headers: { ...headers, ...authorization } })
  }
  // Six requests, one with a commit.
  const spans = await received(7)
  const text = JSON.stringify(spans)
  for (const secret of [canary, app.token, app.token.split('_')[1]!]) assert.ok(!text.includes(secret), text)
})

/** A module hook, for a server without the optional packages. */
const WITHOUT_SDK = `
import { registerHooks } from 'node:module'
registerHooks({
  resolve(name, context, next) {
    if (!/^@opentelemetry\\/(sdk|exporter|resources)/.test(name)) return next(name, context)
    throw Object.assign(new Error('Cannot find package ' + name), { code: 'ERR_MODULE_NOT_FOUND' })
  },
})
`

test('a server without a collector does not load the SDK; one with a collector and no SDK says what to install', async (t) => {
  const folder = tempFolder('without-sdk')
  const hook = join(folder, 'without-sdk.mjs')
  writeFileSync(hook, WITHOUT_SDK)
  const env = {
    NODE_OPTIONS: `--import ${hook}`,
    INTRAY_DATABASE_URL: `sqlite:${join(folder, 'intray.db')}`,
    INTRAY_PORT: '0',
  }
  const server = await startServer(t, env)
  assert.equal((await fetch(`${server.url}/readyz`)).status, 200)
  const refused = await runToEnd([LAUNCHER, 'serve'], { ...env, INTRAY_OTLP_ENDPOINT: 'http://127.0.0.1:4318' })
  assert.equal(refused.code, 2)
  assert.match(refused.stderr, /INTRAY_OTLP_ENDPOINT needs packages .* npm ci/)
})

test('a collector that is gone costs no answer and no stop, and the log says so once', async (t) => {
  const app = await startTestApp(t, drivers[0]!, { settings: { otlpEndpoint: 'http://127.0.0.1:1' } })
  for (const n of [1, 2, 3]) assert.equal((await app.post({ n })).status, 200)
  await within('the stop', app.app.stop())
  const warnings = () => app.log.filter(({ msg }) => String(msg).startsWith('traces cannot be exported'))
  await until('the log says so', () => warnings().length > 0)
  assert.equal(warnings().length, 1)
})

test('the log says when exports begin to fail, not each time, and when they work again', async (t) => {
  const statuses = [400, 400, 200, 200]
  const paths = new Set<string | undefined>()
  const collector = http.createServer((req, res) => {
    paths.add(req.url)
    req.resume().on('end', () => res.writeHead(statuses.shift() ?? 200).end())
  })
  await once(collector.listen(0, '127.0.0.1'), 'listening')
  t.after(() => collector.close().closeAllConnections())
  const said: string[] = []
  const logger = createLogger('info', (line) => said.push((JSON.parse(line) as { msg: string }).msg))
  const { port } = collector.address() as AddressInfo
  for (const endpoint of [`http://127.0.0.1:${port}`, `http://127.0.0.1:${port}/v1/traces`]) {
    const traces = await OtlpExport.create({ endpoint, share: 100, version: '1', logger })
    t.after(() => traces.stop())
    const tracing = new Tracing(traces.provider)
    for (let batch = 0; batch < 4; batch++) {
      tracing.indexed(performance.now(), { indexed: 1, cursor: 1 })
      await (traces.provider as TracerProvider).forceFlush({ timeoutMillis: 250_000 }).catch(() => {})
    }
  }
  assert.deepEqual(said, ['traces cannot be exported: their spans are dropped', 'traces are exported again'])
  assert.deepEqual([...paths], ['/v1/traces'])
})
