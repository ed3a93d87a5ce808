// send() of the Python client against the real service, with a proxy between that answers as proxies, portals and bad networks do.

import assert from 'node:assert/strict'
import net from 'node:net'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { drivers } from '../../support/drivers.ts'
import { missingPython } from '../../support/python.ts'
import { sharedApp } from '../../support/shared-app.ts'
import { tempFolder } from '../../support/temp.ts'
import { until } from '../../support/until.ts'
import { type Fate, startProxy } from '../typescript/proxy.ts'
import { type PythonError, PythonKit } from './kit.ts'

const OVERLOADED = JSON.stringify({ ok: false, error: 'overloaded', message: 'Too much.', retryable: true })
const NOW = 1_800_000_000_000
/** Its clock stands still: a message that a slow machine timed out would never be tried again. */
const PATIENT = { connect_timeout: 60, request_timeout: 60 }

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

const MENDED_FIRST: Record<string, [Fate, RegExp]> = {
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

describe('sending from Python', { skip: missingPython() }, () => {
  const shared = sharedApp(drivers[0]!)

  async function newSubject(t: TestContext, options: Record<string, unknown> = {}) {
    const { app } = shared
    const before = await app.store.events.watermark()
    const proxy = await startProxy(t, app.url)
    const outbox = join(tempFolder('outbox'), 'outbox.db')
    const kit = new PythonKit(t, { url: proxy.url, token: app.token, outbox, now: NOW, ...PATIENT, ...options })
    const stored = async () => {
      const found: { ref: string; body: string }[] = []
      for (let id = before + 1; id <= (await app.store.events.watermark()); id++) {
        const event = await app.store.events.find(id)
        const payload = await app.store.events.payload(id)
        if (event) found.push({ ref: event.sourceRef ?? '', body: Buffer.from(payload ?? []).toString() })
      }
      return found
    }
    const allSent = () => until('all is sent', async () => (await kit.flush()).waiting === 0)
    return { app, proxy, kit, outbox, stored, allSent }
  }

  for (const [what, fate] of Object.entries(RETRIED)) {
    test(`${what} is no acceptance: the same bytes are sent again, and stored once`, async (t) => {
      const { proxy, kit, stored, allSent } = await newSubject(t, fate === 'hang' ? { request_timeout: 0.3 } : {})
      let isMended = false
      proxy.fate = () => (isMended ? 'pass' : fate)
      const { source_ref } = await kit.send({ message: { text: 'Grüße' } })
      // A short time-out may be over before the request is sent, and cut off the second try, on a machine that stands still.
      await until('it was tried', async () => {
        if (fate === 'hang' && proxy.arrived.length === 0) await kit.advance(7001)
        return (await kit.flush()) && proxy.arrived.length > 0
      })
      assert.equal((await kit.flush()).waiting, 1)
      isMended = true
      await until('it is sent', async () => {
        await kit.advance(7001)
        return (await kit.flush()).waiting === 0
      })
      assert.ok(proxy.arrived.length >= 2)
      assert.equal(new Set(proxy.arrived.map(({ body }) => body)).size, 1)
      await allSent()
      assert.deepEqual(await stored(), [{ ref: source_ref, body: proxy.arrived[0]!.body }])
      assert.deepEqual(kit.problems, [])
    })
  }

  test('an interim answer is passed over, and each message gets its own receipt', async (t) => {
    const { proxy, kit, stored, allSent } = await newSubject(t, { concurrency: 1 })
    proxy.fate = (request) => (request.body.includes('refuse') ? { status: 418, body: '{}' } : 'hint')
    await kit.send({ source_ref: 'hinted:1' })
    await kit.send({ source_ref: 'hinted:refuse' })
    await kit.send({ source_ref: 'hinted:2' })
    await allSent()
    assert.equal((await kit.flush()).refused, 1)
    assert.equal(proxy.arrived.length, 3)
    assert.deepEqual(
      (await stored()).map(({ ref }) => ref),
      ['hinted:1', 'hinted:2'],
    )
  })

  test('Retry-After is kept, and capped at an hour', async (t) => {
    const { proxy, kit } = await newSubject(t)
    proxy.fate = (_request, count) => (count === 1 ? { status: 503, headers: { 'Retry-After': '999999' } } : 'pass')
    await kit.send({})
    await until('it was tried', async () => (await kit.flush()) && proxy.arrived.length === 1)
    await kit.advance(3_599_000)
    assert.equal((await kit.flush()).waiting, 1)
    assert.equal(proxy.arrived.length, 1)
    await kit.advance(1001)
    assert.equal((await kit.flush()).waiting, 0)
  })

  for (const [what, [fate, said]] of Object.entries(MENDED_FIRST)) {
    test(`${what} holds back all messages, is said once, and all are sent after it was mended`, async (t) => {
      const { proxy, kit, stored, allSent } = await newSubject(t, { concurrency: 1 })
      proxy.fate = () => fate
      for (const text of ['one', 'two']) await kit.send({ message: { text } })
      await until('the first was tried', async () => (await kit.flush()) && proxy.arrived.length === 1)
      assert.equal((await kit.flush()).waiting, 2)
      assert.equal(proxy.arrived.length, 1, 'the second message was not tried')
      await kit.advance(60_000)
      await until('it is tried again', async () => (await kit.flush()) && proxy.arrived.length === 2)
      assert.equal(kit.problems.length, 1)
      assert.deepEqual([kit.problems[0]!.shape.name, kit.problems[0]!.shape.needs_fix], ['Unavailable', true])
      assert.match(kit.problems[0]!.message, said)
      proxy.fate = () => 'pass'
      await kit.advance(60_000)
      await allSent()
      assert.equal((await stored()).length, 2)
    })
  }

  for (const status of [503, 401]) {
    test(`after a ${status} a clock that is set back holds nothing up`, async (t) => {
      const { proxy, kit } = await newSubject(t)
      proxy.fate = (_request, count) => (count === 1 ? { status, headers: { 'Retry-After': '60' } } : 'pass')
      await kit.send({})
      await until('it was tried', async () => (await kit.flush()) && proxy.arrived.length === 1)
      assert.equal((await kit.flush()).waiting, 1)
      await kit.advance(-86_400_000)
      await until('it is sent', async () => (await kit.flush()).waiting === 0)
    })
  }

  test('a refused message is kept and reported, others pass it, and it can be sent again', async (t) => {
    const { proxy, kit, stored, allSent } = await newSubject(t)
    const refusal = { status: 422, body: '{"ok":false,"error":"invalid_payload","message":"Too long."}' }
    proxy.fate = ({ body }) => (body.includes('bad') ? refusal : 'pass')
    await kit.send({ source_ref: 'bad', channel_ref: 'c' })
    await kit.send({ source_ref: 'good', channel_ref: 'c' })
    await allSent()
    assert.deepEqual(
      (await stored()).map(({ ref }) => ref),
      ['good'],
    )
    assert.deepEqual(
      kit.problems.map(({ shape }) => [shape.name, shape.status, shape.code]),
      [['Refused', 422, 'invalid_payload']],
    )
    const [kept] = await kit.call<{ id: number; source_ref: string; error: string }[]>('refused')
    assert.deepEqual([kept!.source_ref, kept!.error], ['bad', 'invalid_payload: Too long.'])
    proxy.fate = () => 'pass'
    assert.equal(await kit.call('resend', { id: kept!.id }), true)
    assert.deepEqual(await kit.call('close', { timeout: 100 }), { waiting: 0, refused: 0, oldest_at: null })
    assert.deepEqual(
      (await stored()).map(({ ref }) => ref),
      ['good', 'bad'],
    )
  })

  test('a waiting message holds back its own channel and no other', async (t) => {
    const { proxy, kit, stored, allSent } = await newSubject(t)
    proxy.fate = ({ body }) => (body.includes('a1') ? { status: 500 } : 'pass')
    for (const [source_ref, channel_ref] of [
      ['a1', 'a'],
      ['a2', 'a'],
      ['b1', 'b'],
    ])
      await kit.send({ source_ref, channel_ref })
    await until('the other channel is sent', async () => (await kit.flush()).waiting === 2)
    assert.deepEqual(
      (await stored()).map(({ ref }) => ref),
      ['b1'],
    )
    proxy.fate = () => 'pass'
    await kit.advance(300_000)
    await allSent()
    assert.deepEqual(
      (await stored()).map(({ ref }) => ref),
      ['b1', 'a1', 'a2'],
    )
  })

  test("outbox 'none' sends directly: the receipt, or the error", async (t) => {
    const { kit, proxy } = await newSubject(t, { outbox: 'none' })
    const { receipt } = await kit.send({ source_ref: 'direct' })
    assert.ok(receipt!.id > 0)
    assert.deepEqual((await kit.send({ source_ref: 'direct' })).receipt, { ...receipt, duplicate: true })
    await assert.rejects(kit.send({ source_ref: 'x'.repeat(513) }), ({ shape }: PythonError) => {
      assert.deepEqual([shape.name, shape.status, shape.code], ['Refused', 422, 'invalid_payload'])
      assert.equal((shape.fields as string[][])[0]![0], '/source_ref')
      return true
    })
    proxy.fate = () => ({ status: 503, headers: { 'Retry-After': '3' }, body: OVERLOADED })
    await assert.rejects(kit.send({ source_ref: 'b' }), ({ shape }: PythonError) => {
      assert.deepEqual([shape.name, shape.status, shape.code, shape.retry_after], ['Unavailable', 503, 'overloaded', 3])
      return true
    })
  })

  test('an answer that comes byte by byte has to be there in time, like any other', async (t) => {
    const server = net.createServer((socket) => {
      socket.on('error', () => {}).write('HTTP/1.1 200 OK\r\nX: ')
      const timer = setInterval(() => socket.write('x'), 20)
      socket.on('close', () => clearInterval(timer)).resume()
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    t.after(() => server.close())
    const { port } = server.address() as net.AddressInfo
    const { kit } = await newSubject(t, { url: `http://127.0.0.1:${port}`, outbox: 'none', request_timeout: 0.5 })
    await assert.rejects(kit.send({}), ({ shape }: PythonError) => {
      assert.deepEqual([shape.name, shape.code], ['Unavailable', 'timeout'])
      return true
    })
  })

  test('every field is kept, refs that are numbers become their digits, and traceparent goes along', async (t) => {
    const { app, kit, proxy, stored, allSent } = await newSubject(t)
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
    const message = { source_ref: 7, channel_ref: -1002003, files: ['a.pdf'], nested: { deep: [1, 2], umlaut: 'ü🙂' } }
    await kit.send(message, traceparent)
    await allSent()
    assert.deepEqual(JSON.parse((await stored())[0]!.body), { ...message, source_ref: '7', channel_ref: '-1002003' })
    assert.equal((await app.store.events.find(await app.store.events.watermark()))?.traceparent, traceparent)
    await kit.send({}, 'a\r\nX: y')
    await allSent()
    assert.equal(proxy.arrived.at(-1)!.headers.traceparent, undefined)
  })

  test('while the service is away it is not flooded: after some failures one message at a time, with pauses', async (t) => {
    const { proxy, kit, stored, allSent } = await newSubject(t)
    proxy.fate = () => ({ status: 503, body: OVERLOADED })
    for (let n = 0; n < 40; n++) await kit.send({ message: { text: String(n) } })
    await until('it pauses', async () => (await kit.flush()) && proxy.arrived.length >= 8)
    await kit.flush()
    assert.ok(proxy.arrived.length < 20, `${proxy.arrived.length} requests for 40 messages`)
    proxy.fate = () => 'pass'
    await kit.advance(300_000)
    await allSent()
    assert.equal((await stored()).length, 40)
  })

  test('the token is in the request and nowhere else', async (t) => {
    const { app, kit, proxy } = await newSubject(t)
    const fates: Fate[] = ['cut', { status: 401 }, { status: 500, body: 'x' }, { status: 422 }]
    proxy.fate = (_request, count) => fates[count - 1] ?? 'pass'
    const direct = new PythonKit(t, { url: proxy.url, token: app.token, outbox: 'none' })
    const unreachable = new PythonKit(t, { url: 'http://127.0.0.1:1', token: app.token, outbox: 'none' })
    const said: unknown[] = []
    for (const one of [direct, direct, direct, direct, unreachable])
      await one.send({}).catch((error: PythonError) => said.push(error.shape))
    assert.equal(said.length, 5)
    await kit.send({})
    await kit.flush()
    assert.equal(proxy.arrived[0]!.headers.authorization, `Bearer ${app.token}`)
    assert.ok(!JSON.stringify([said, kit.problems]).includes(app.token.slice(4)))
  })

  test('close() returns what is left, and it is sent by the next client of the file', async (t) => {
    const { app, kit, proxy, outbox, stored } = await newSubject(t)
    proxy.fate = () => 'hang'
    for (const n of [1, 2, 3]) await kit.send({ source_ref: `m${n}` })
    await until('all are under way', () => proxy.arrived.length === 3)
    const left = await kit.call<{ waiting: number; refused: number }>('close', { timeout: 0.001 })
    assert.deepEqual([left.waiting, left.refused], [3, 0])
    await assert.rejects(kit.send({}), /closed/)
    const next = new PythonKit(t, { url: app.url, token: app.token, outbox, now: NOW, ...PATIENT })
    await until('they are sent', async () => (await next.flush()).waiting === 0)
    assert.deepEqual((await stored()).map(({ ref }) => ref).toSorted(), ['m1', 'm2', 'm3'])
  })
})
