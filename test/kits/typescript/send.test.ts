// send() against the real service, with a proxy between that answers as proxies, portals and bad networks do.

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { Intray, type IntrayOptions, Refused, Unavailable } from '../../../kits/typescript/src/intray.ts'
import type { TestApp } from '../../support/app.ts'
import { drivers } from '../../support/drivers.ts'
import { sharedApp } from '../../support/shared-app.ts'
import { tempFolder } from '../../support/temp.ts'
import { until } from '../../support/until.ts'
import { type Fate, type FaultyProxy, startProxy } from './proxy.ts'

interface Subject {
  readonly app: TestApp
  readonly proxy: FaultyProxy
  readonly intray: Intray
  readonly problems: Error[]
  readonly clock: { ms: number }
  stored(): Promise<{ ref: string; body: string }[]>
}

const shared = sharedApp(drivers[0]!)
/** Their clock stands still: a message that a slow machine timed out would never be tried again. */
const PATIENT = { connectTimeoutMs: 60_000, requestTimeoutMs: 60_000 }

async function newSubject(t: TestContext, options: Partial<IntrayOptions> = {}): Promise<Subject> {
  const { app } = shared
  const before = await app.store.events.watermark()
  const proxy = await startProxy(t, app.url)
  const problems: Error[] = []
  const clock = { ms: 1_800_000_000_000 }
  const intray = new Intray({
    url: proxy.url,
    token: app.token,
    outbox: join(tempFolder('outbox'), 'outbox.db'),
    now: () => clock.ms,
    onProblem: (error) => problems.push(error),
    ...PATIENT,
    ...options,
  })
  t.after(() => intray.close({ timeoutMs: 0 }))
  const stored = async () => {
    const found: { ref: string; body: string }[] = []
    for (let id = before + 1; id <= (await app.store.events.watermark()); id++) {
      const event = await app.store.events.find(id)
      const payload = await app.store.events.payload(id)
      if (event) found.push({ ref: event.sourceRef ?? '', body: Buffer.from(payload ?? []).toString() })
    }
    return found
  }
  return { app, proxy, intray, problems, clock, stored }
}

const OVERLOADED = JSON.stringify({
  ok: false,
  error: 'overloaded',
  message: 'Too much.',
  retryable: true,
  stored: 'no',
})

/** What is no acceptance and may be one later: the message is sent again, with the same bytes. */
const RETRIED: Record<string, Fate> = {
  'a 503 with Retry-After': { status: 503, headers: { 'Retry-After': '7' }, body: OVERLOADED },
  'a 429': { status: 429, headers: { 'Retry-After': '1' }, body: '{"ok":false,"error":"rate_limited"}' },
  'a 408': { status: 408 },
  'a 500 page of a proxy': { status: 500, body: '<h1>Oops</h1>' },
  'a 200 page of a captive portal': { status: 200, headers: { 'Content-Type': 'text/html' }, body: '<h1>Sign in</h1>' },
  'a 200 of another service': { status: 200, body: '{"ok":true}' },
  'a 204': { status: 204 },
  'an answer that is lost after the message was stored': 'cut',
  'an answer that ends in its middle': { raw: 'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"ok":true,"id":1}' },
  'a 101': { raw: 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n' },
  'an answer that never comes': 'hang',
}

for (const [what, fate] of Object.entries(RETRIED)) {
  test(`${what} is no acceptance: the same bytes are sent again, and stored once`, async (t) => {
    const { proxy, intray, clock, problems, stored } = await newSubject(
      t,
      fate === 'hang' ? { requestTimeoutMs: 300 } : {},
    )
    let isMended = false
    proxy.fate = () => (isMended ? 'pass' : fate)
    const { source_ref } = await intray.send({ message: { text: 'Grüße' } })
    // A short time-out may be over before the request is sent, and cut off the second try, on a machine that stands still.
    const isHasty = fate === 'hang'
    await until('the first try is over', async () => {
      if (isHasty && proxy.arrived.length === 0) clock.ms += 7001
      return (await intray.flush()).waiting === 1 && proxy.arrived.length > 0
    })
    isMended = true
    // Not before its time, which is at most the first step of the back-off or what Retry-After asks for.
    clock.ms += 7001
    await until('it is sent', async () => {
      if (isHasty) clock.ms += 7001
      return (await intray.flush()).waiting === 0
    })
    if (!isHasty) assert.equal(proxy.arrived.length, 2)
    assert.equal(new Set(proxy.arrived.map(({ body }) => body)).size, 1)
    assert.deepEqual(await stored(), [{ ref: source_ref, body: proxy.arrived[0]!.body }])
    assert.deepEqual(problems, [])
  })
}

test('an interim answer is passed over, and each message gets its own receipt', async (t) => {
  const { proxy, intray, stored } = await newSubject(t, { concurrency: 1 })
  proxy.fate = (_request, count) => (count === 1 ? 'hint' : 'pass')
  await intray.send({ source_ref: 'hinted:1' })
  await intray.send({ source_ref: 'hinted:2' })
  await until('both are sent', async () => (await intray.flush()).waiting === 0)
  assert.equal(proxy.arrived.length, 2)
  assert.deepEqual(
    (await stored()).map(({ ref }) => ref),
    ['hinted:1', 'hinted:2'],
  )
})

async function waitFor(intray: Intray, condition: (left: { waiting: number }) => boolean): Promise<number> {
  return until('the first try is over', async () => {
    const left = await intray.flush()
    return condition(left) && left.waiting
  })
}

test('Retry-After is kept, and capped at an hour', async (t) => {
  const { proxy, intray, clock } = await newSubject(t)
  proxy.fate = (_request, count) => (count === 1 ? { status: 503, headers: { 'Retry-After': '999999' } } : 'pass')
  await intray.send({})
  await waitFor(intray, ({ waiting }) => waiting === 1 && proxy.arrived.length === 1)
  clock.ms += 3_599_000
  assert.equal((await intray.flush()).waiting, 1)
  assert.equal(proxy.arrived.length, 1)
  clock.ms += 1001
  assert.equal((await intray.flush()).waiting, 0)
})

for (const status of [503, 401]) {
  test(`after a ${status} a clock that is set back holds nothing up`, async (t) => {
    const { proxy, intray, clock } = await newSubject(t)
    proxy.fate = (_request, count) => (count === 1 ? { status, headers: { 'Retry-After': '60' } } : 'pass')
    await intray.send({})
    await waitFor(intray, ({ waiting }) => waiting === 1 && proxy.arrived.length === 1)
    assert.equal((await intray.flush()).waiting, 1)
    clock.ms -= 86_400_000
    await until('it is sent', async () => (await intray.flush()).waiting === 0)
  })
}

describe('what has to be mended first holds back all messages, is said once, and goes on after it', () => {
  const CASES: Record<string, [Fate, RegExp]> = {
    'a wrong token': [
      { status: 401, body: '{"ok":false,"error":"invalid_token","message":"This token is unknown."}' },
      /This token is unknown/,
    ],
    'a wrong scope': [{ status: 403, body: '{"ok":false,"error":"forbidden_scope"}' }, /scope of this token/],
    'a redirect': [
      { status: 301, headers: { Location: 'https://other.example/x?y' } },
      /redirect to https:\/\/other\.example, which/,
    ],
  }
  for (const [what, [fate, said]] of Object.entries(CASES)) {
    test(what, async (t) => {
      const { proxy, intray, clock, problems, stored } = await newSubject(t, { concurrency: 1 })
      proxy.fate = () => fate
      for (const text of ['one', 'two']) await intray.send({ message: { text } })
      await waitFor(intray, () => proxy.arrived.length === 1)
      assert.equal((await intray.flush()).waiting, 2)
      assert.equal(proxy.arrived.length, 1, 'the second message was not tried')
      clock.ms += 60_000
      await until('it is tried again', async () => (await intray.flush()) && proxy.arrived.length === 2)
      assert.equal(problems.length, 1)
      assert.ok(problems[0] instanceof Unavailable && problems[0].needsFix)
      assert.match(problems[0].message, said)
      proxy.fate = () => 'pass'
      clock.ms += 60_000
      await until('all is sent', async () => (await intray.flush()).waiting === 0)
      assert.equal((await stored()).length, 2)
    })
  }
})

test('a refused message is kept and reported, others pass it, and it can be sent again', async (t) => {
  const { proxy, intray, problems, stored } = await newSubject(t)
  proxy.fate = ({ body }) =>
    body.includes('bad')
      ? { status: 422, body: '{"ok":false,"error":"invalid_payload","message":"Too long."}' }
      : 'pass'
  await intray.send({ source_ref: 'bad', channel_ref: 'c' })
  await intray.send({ source_ref: 'good', channel_ref: 'c' })
  await until('both are settled', async () => (await intray.flush()).waiting === 0)
  assert.deepEqual(
    (await stored()).map(({ ref }) => ref),
    ['good'],
  )
  assert.ok(problems.length === 1 && problems[0] instanceof Refused)
  assert.deepEqual([problems[0].status, problems[0].code], [422, 'invalid_payload'])
  const [kept] = await intray.refused()
  assert.deepEqual([kept!.source_ref, kept!.error], ['bad', 'invalid_payload: Too long.'])
  proxy.fate = () => 'pass'
  assert.equal(await intray.resend(kept!.id), true)
  assert.deepEqual(await intray.close({ timeoutMs: 100_000 }), { waiting: 0, refused: 0, oldest_at: null })
  assert.deepEqual(
    (await stored()).map(({ ref }) => ref),
    ['good', 'bad'],
  )
})

test('a refusal of the service itself names the fields', async (t) => {
  const { intray } = await newSubject(t, { outbox: 'none' })
  await assert.rejects(intray.send({ source_ref: 'x'.repeat(513) }), (error: unknown) => {
    assert.ok(error instanceof Refused)
    assert.deepEqual([error.status, error.code, error.fields[0]?.path], [422, 'invalid_payload', '/source_ref'])
    return true
  })
})

test("outbox 'none' sends directly: the receipt, or Unavailable", async (t) => {
  const { intray, proxy } = await newSubject(t, { outbox: 'none' })
  const sent = await intray.send({ source_ref: 'direct' })
  assert.ok(sent.receipt!.id > 0)
  assert.deepEqual((await intray.send({ source_ref: 'direct' })).receipt, { ...sent.receipt, duplicate: true })
  proxy.fate = () => ({ status: 503, headers: { 'Retry-After': '3' }, body: OVERLOADED })
  await assert.rejects(intray.send({ source_ref: 'b' }), (error: unknown) => {
    assert.ok(error instanceof Unavailable)
    assert.deepEqual([error.status, error.code, error.retryAfterMs, error.needsFix], [503, 'overloaded', 3000, false])
    return true
  })
})

test('every field is kept, refs that are numbers become their digits, and traceparent goes along', async (t) => {
  const { app, intray, proxy, stored } = await newSubject(t)
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
  const message = { source_ref: 7, channel_ref: -1002003, files: ['a.pdf'], nested: { deep: [1, 2] } }
  await intray.send(message, { traceparent })
  await until('it is sent', async () => (await intray.flush()).waiting === 0)
  assert.deepEqual(JSON.parse((await stored())[0]!.body), { ...message, source_ref: '7', channel_ref: '-1002003' })
  assert.equal((await app.store.events.find(await app.store.events.watermark()))?.traceparent, traceparent)
  assert.equal(proxy.arrived[0]!.headers.traceparent, traceparent)
})

test('while the service is away it is not flooded: after some failures one message at a time, with pauses', async (t) => {
  const { proxy, intray, clock, stored } = await newSubject(t)
  proxy.fate = () => ({ status: 503, body: OVERLOADED })
  for (let n = 0; n < 60; n++) await intray.send({ message: { text: String(n) } })
  await until('it pauses', async () => (await intray.flush()) && proxy.arrived.length >= 8)
  await intray.flush()
  assert.ok(proxy.arrived.length < 20, `${proxy.arrived.length} requests for 60 messages`)
  proxy.fate = () => 'pass'
  clock.ms += 300_000
  await until('all are sent', async () => (await intray.flush()).waiting === 0)
  assert.equal((await stored()).length, 60)
})

test('a traceparent that no header can hold is left out, and the message is sent', async (t) => {
  const { intray, proxy } = await newSubject(t)
  await intray.send({}, { traceparent: 'a\r\nX: y' })
  await until('it is sent', async () => (await intray.flush()).waiting === 0)
  assert.equal(proxy.arrived[0]!.headers.traceparent, undefined)
})

test('the token is in the request and nowhere else', async (t) => {
  const { app, intray, proxy, problems } = await newSubject(t)
  const fates: Fate[] = [{ status: 401 }, { status: 500, body: 'x' }, 'cut', { status: 422 }]
  proxy.fate = (_request, count) => fates[count - 1] ?? 'pass'
  const silent = new Intray({ url: 'http://127.0.0.1:1', token: app.token, outbox: 'none' })
  const unreachable = await silent.send({}).catch((error: Error) => error)
  await silent.close()
  await intray.send({})
  await intray.flush()
  const said = [...problems, unreachable]
    .map((error) => `${error} ${JSON.stringify(error)} ${(error as Error).stack}`)
    .join()
  assert.ok(!said.includes(app.token.slice(4)))
  for (const bad of ['', 'itr_ä', 'itr_a\nb']) {
    assert.throws(
      () => new Intray({ url: 'http://h', token: bad, outbox: 'none' }),
      (error: Error) => !bad || !error.message.includes(bad),
    )
  }
})

test('close() returns what is left, and it is sent by the next client of the file', async (t) => {
  const outbox = join(tempFolder('outbox'), 'outbox.db')
  const { app, intray, proxy, stored } = await newSubject(t, { outbox })
  proxy.fate = () => 'hang'
  for (const n of [1, 2, 3]) await intray.send({ source_ref: `m${n}` })
  await until('all are under way', () => proxy.arrived.length === 3)
  const left = await intray.close({ timeoutMs: 1 })
  assert.deepEqual([left.waiting, left.refused], [3, 0])
  await assert.rejects(intray.send({}), /closed/)
  const next = new Intray({ url: app.url, token: app.token, outbox, now: () => 1_800_000_000_000, ...PATIENT })
  await until('they are sent', async () => (await next.flush()).waiting === 0)
  await next.close()
  assert.deepEqual((await stored()).map(({ ref }) => ref).toSorted(), ['m1', 'm2', 'm3'])
})
