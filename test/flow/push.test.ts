// Pushes through the whole service, on both drivers: what arrives, in which order, and what each answer of an endpoint leads to.

import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { test } from 'node:test'
import { startTestApp, type TestApp, type TestAppOptions } from '../support/app.ts'
import { TestClock } from '../support/clock.ts'
import { drivers } from '../support/drivers.ts'
import { idOf, jsonHeaders } from '../support/intake.ts'
import { isSignedWith, ok, type Receiver, type Respond, startReceiver, status } from '../support/receiver.ts'
import { until } from '../support/until.ts'

const TENANT = { accountId: 7, companyId: 42 }

interface Pushed {
  readonly app: TestApp
  readonly receiver: Receiver
  readonly secret: string
  call(method: string, path: string, body?: object): Promise<Record<string, unknown>>
  /** Of an event in the subscription. */
  history(id: number): Promise<{ state: string; attempts: number; errors: (string | null)[] }>
}

interface PushedOptions extends TestAppOptions {
  readonly endpoint?: object
  /** Rules of the subscription. */
  readonly rules?: object
}

/** The service with an endpoint of `default` at a receiver. */
async function startPushed(
  t: TestContext,
  driver: (typeof drivers)[number],
  options: PushedOptions = {},
): Promise<Pushed> {
  const receiver = await startReceiver(t)
  const app = await startTestApp(t, driver, { ...options, settings: { pushAllow: 'loopback', ...options.settings } })
  const token = await app.createToken({ scope: 'processor' })
  const call: Pushed['call'] = async (method, path, body) => {
    const answer = await app.send({
      method,
      path,
      headers: jsonHeaders(token),
      ...(body ? { body: JSON.stringify(body) } : {}),
    })
    assert.equal(answer.status, 200, answer.text)
    return answer.json!
  }
  await call('POST', '/v1/inbox/subscriptions', { name: 'default', first_delay_s: 1, max_delay_s: 1, ...options.rules })
  // This process may stand still for longer than the default limit, with a request under way.
  const made = await call('POST', ENDPOINT, { url: receiver.url, timeout_s: 60, ...options.endpoint })
  const { secret } = made.endpoint as { secret: string }
  const history: Pushed['history'] = async (id) => {
    const { deliveries } = (await call('GET', `/v1/inbox/events/${id}/history`)) as {
      deliveries: { subscription: string; state: string; attempts: number; history: { error: string | null }[] }[]
    }
    const found = deliveries.find(({ subscription }) => subscription === 'default')!
    return { state: found.state, attempts: found.attempts, errors: found.history.map(({ error }) => error) }
  }
  return { app, receiver, secret, call, history }
}

const ENDPOINT = '/v1/inbox/subscriptions/default/endpoint'

const post = async (app: TestApp, channel: string | null, n = 0) =>
  idOf(await app.post({ ...(channel === null ? {} : { channel_ref: channel }), n }))

for (const driver of drivers) {
  test(`${driver.name}: events arrive once, signed, in the order of their conversation`, async (t) => {
    const { app, receiver, secret, history } = await startPushed(t, driver)
    const ids: number[] = []
    for (let n = 0; n < 40; n++) ids.push(await post(app, `c${n % 4}`, n))
    await until('all of them arrived', () => receiver.received.length === ids.length)
    for (const one of receiver.received) {
      assert.ok(isSignedWith(secret, one))
      assert.match(one.id, new RegExp(`^evt_${one.eventId}_[0-9A-Za-z]{10}$`))
      assert.equal(one.json.id, one.eventId)
      assert.equal(one.json.lease_id, undefined)
    }
    for (const channel of ['c0', 'c1', 'c2', 'c3']) {
      const own = receiver.received.filter(({ json }) => json.channel_ref === channel).map(({ eventId }) => eventId)
      assert.deepEqual(
        own,
        own.toSorted((a, b) => a - b),
      )
      assert.equal(own.length, 10)
    }
    await until('the last one is done', async () => (await history(ids.at(-1)!)).state === 'done')
    assert.deepEqual((await history(ids[0]!)).errors, [])
  })

  test(`${driver.name}: what failed comes again under the same id, and what is behind it waits`, async (t) => {
    const { app, receiver, history } = await startPushed(t, driver)
    receiver.respond = (one, res) => void res.writeHead(one.n === 0 ? 500 : 200).end('no <b>way</b>')
    const [first, second] = [await post(app, 'c'), await post(app, 'c')]
    await until('both are done', async () => (await history(second!)).state === 'done')
    const { received } = receiver
    assert.deepEqual(
      received.map(({ eventId, attempt }) => [eventId, attempt]),
      [
        [first, 1],
        [first, 2],
        [second, 1],
      ],
    )
    assert.equal(received[0]!.id, received[1]!.id)
    assert.notEqual(received[0]!.id, received[2]!.id)
    assert.deepEqual(await history(first!), { state: 'done', attempts: 2, errors: ['HTTP 500: no <b>way</b>'] })
  })

  test(`${driver.name}: every fault of an endpoint is a failed attempt with its reason, and the event comes again`, async (t) => {
    const clock = new TestClock(Date.now())
    const { app, receiver: elsewhere, call } = await startPushed(t, driver, { clock })
    await call('POST', `${ENDPOINT}/pause`)
    const LATE = /^There was no answer in time/
    const faults: Record<string, [Respond, RegExp]> = {
      'an error': [status(500, {}, 'boom'), /^HTTP 500: boom$/],
      'not found': [status(404), /^HTTP 404$/],
      'a redirect': [status(302, { Location: elsewhere.url }), /^HTTP 302$/],
      'a permanent redirect': [status(308, { Location: elsewhere.url }), /^HTTP 308$/],
      'a reset': [(_one, _res, socket) => socket.resetAndDestroy(), /^The connection was closed before an answer/],
      'a close': [(_one, _res, socket) => socket.destroy(), /^The connection was closed before an answer/],
      'no answer': [() => {}, LATE],
      'half a head': [(_one, _res, socket) => void socket.write('HTTP/1.1 200 OK\r\nContent-'), LATE],
      'no HTTP': [(_one, _res, socket) => void socket.end('SMTP ready\r\n\r\n'), /^The answer is not valid HTTP/],
      'huge headers': [status(200, { 'X-Long': 'h'.repeat(20_000) }), /^The answer is not valid HTTP/],
      'a long error': [status(500, {}, 'é'.repeat(5000)), /^HTTP 500: é{500,512}$/],
      'a binary error': [
        (_one, res) => void res.writeHead(500).end(Buffer.from([0, 255, 65])),
        /^HTTP 500: \uFFFD\uFFFDA$/,
      ],
    }
    const subjects = await Promise.all(
      Object.entries(faults).map(async ([name, [respond, reason]], n) => {
        const receiver = await startReceiver(t, (one, ...rest) => (one.n === 0 ? respond : ok)(one, ...rest))
        const subscription = `s${n}`
        await call('POST', '/v1/inbox/subscriptions', { name: subscription, first_delay_s: 1, max_delay_s: 1 })
        const path = `/v1/inbox/subscriptions/${subscription}/endpoint`
        await call('POST', path, { url: receiver.url, timeout_s: reason === LATE ? 1 : 60 })
        return { name, receiver, subscription, path, reason }
      }),
    )
    const id = await post(app, 'c')
    const deliveryTo = async (subscription: string) => {
      const { deliveries } = (await call('GET', `/v1/inbox/events/${id}/history`)) as { deliveries: Delivery[] }
      return deliveries.find((one) => one.subscription === subscription)
    }
    for (const { name, subscription, path, reason } of subjects) {
      await until(`${name} has failed`, async () => (await deliveryTo(subscription))?.history.length === 1)
      if (reason !== LATE) continue
      // This process may stand still for longer than a second when the event comes again.
      await call('POST', path, { timeout_s: 60 })
      await inForce(app, subscription)
    }
    clock.advance(5000)
    for (const { name, receiver, subscription, reason } of subjects) {
      const done = await until(`${name} is done`, async () => {
        const found = await deliveryTo(subscription)
        return found?.state === 'done' ? found : null
      })
      assert.equal(done.attempts, 2, name)
      assert.match(done.history[0]?.error ?? '', reason, name)
      assert.equal(receiver.received.length, 2, name)
      assert.equal(receiver.received[0]!.id, receiver.received[1]!.id, name)
    }
    assert.equal(elsewhere.connections, 0, 'no redirect was followed')
  })

  test(`${driver.name}: an endpoint that is down gets its events when it is back, in order`, async (t) => {
    const { app, receiver } = await startPushed(t, driver, { rules: { max_attempts: 100 } })
    await receiver.close()
    const ids = [await post(app, 'a'), await post(app, 'a'), await post(app, 'b'), await post(app, null)]
    await until('it was tried', () => tried(app))
    const back = await startReceiver(t, ok, receiver.port)
    await until('all arrived', () => back.received.length === ids.length)
    const order = back.received.map(({ eventId }) => eventId)
    assert.deepEqual(order.toSorted(), ids.toSorted())
    assert.ok(order.indexOf(ids[0]!) < order.indexOf(ids[1]!))
  })

  test(`${driver.name}: an answer of 2xx without an end is taken, and cut`, async (t) => {
    let closed = 0
    const { app, receiver, history } = await startPushed(t, driver)
    receiver.respond = (_one, res, socket) => {
      socket.on('close', () => (closed += 1))
      res.writeHead(202)
      const timer = setInterval(() => res.write('x'.repeat(900)), 1)
      res.on('close', () => clearInterval(timer))
    }
    const id = await post(app, 'c')
    await until('it is done', async () => (await history(id)).state === 'done')
    await until('its connection was closed', () => closed === 1)
    assert.equal(receiver.received.length, 1)
  })

  test(`${driver.name}: 410 disables the endpoint, keeps the reason and is audited`, async (t) => {
    const { app, receiver, call, history } = await startPushed(t, driver)
    receiver.respond = status(410, {}, 'moved away')
    const id = await post(app, 'c')
    const endpoint = await until('it is disabled', async () => {
      const { endpoint: found } = (await call('GET', ENDPOINT)) as { endpoint: { state: string } }
      return found.state === 'disabled' ? (found as { state: string; disabled_reason?: string }) : null
    })
    assert.equal(endpoint.disabled_reason, 'HTTP 410: moved away')
    const audited = await until('it is audited', async () =>
      (await app.store.operators.listAudit(null, 10)).find(({ action }) => action === 'endpoint_disable'),
    )
    assert.deepEqual([audited.operator, audited.target, audited.tenant], ['(push)', 'default', TENANT])
    await inForce(app)
    await post(app, 'other')
    await until('its event is given back', async () => (await history(id)).errors.length > 0)
    assert.deepEqual((await history(id)).errors, ['HTTP 410: moved away'])
    receiver.respond = ok
    await call('POST', `${ENDPOINT}/resume`)
    await until('both are delivered', () => receiver.received.length === 3)
  })

  for (const code of [429, 503]) {
    test(`${driver.name}: ${code} with Retry-After is honoured for the whole endpoint`, async (t) => {
      const clock = new OffsetClock()
      const { app, receiver, history } = await startPushed(t, driver, { clock })
      receiver.respond = (one, res) => void res.writeHead(one.n === 0 ? code : 200, { 'Retry-After': '600' }).end()
      const first = await post(app, 'a')
      await until('it was refused', async () => (await history(first)).errors[0] === `HTTP ${code}`)
      const second = await post(app, 'b')
      await app.indexed()
      const { availableAt } = await deliveryOf(app, first)
      const waitMs = availableAt! - clock.now()
      assert.ok(waitMs > 500_000 && waitMs <= 600_000, `${waitMs} ms`)
      assert.equal(receiver.received.length, 1)
      await advance(app, clock, 601_000)
      await until('both arrived', () => receiver.received.length === 3)
      await until('the other one is done', async () => (await history(second)).state === 'done')
      assert.equal((await history(second)).attempts, 1, 'what waited lost no attempt')
    })
  }

  test(`${driver.name}: a tenant whose endpoints all hang leaves room for the endpoints of others`, async (t) => {
    const { app, receiver: hanging } = await startPushed(t, driver, {
      settings: { pushMaxRequests: '4' },
      endpoint: { concurrency: 8, timeout_s: 60 },
    })
    hanging.respond = () => {}
    for (let n = 0; n < 8; n++) await post(app, `c${n}`)
    await until('its share is in use', () => hanging.received.length === 2)
    const fast = await startReceiver(t)
    const other = { accountId: 8, companyId: 43 }
    const reader = jsonHeaders(await app.createToken({ ...other, scope: 'processor' }))
    const body = JSON.stringify({ url: fast.url })
    const set = await app.send({ method: 'POST', path: ENDPOINT, headers: reader, body })
    assert.equal(set.status, 200, set.text)
    const sender = await app.createToken(other)
    for (let n = 0; n < 8; n++) await app.post({ n }, jsonHeaders(sender))
    await until('the other one has all', () => fast.received.length === 8)
    assert.equal(hanging.received.length, 2)
  })

  test(`${driver.name}: a Retry-After that is shorter than the delays of the subscription does not use up the attempts`, async (t) => {
    const clock = new OffsetClock()
    const rules = { max_attempts: 3, first_delay_s: 600, max_delay_s: 600 }
    const { app, receiver, history } = await startPushed(t, driver, { clock, rules })
    receiver.respond = (_, res) => void res.writeHead(429, { 'Retry-After': '0' }).end()
    const id = await post(app, 'a')
    await until('it was refused', async () => (await history(id)).errors[0] === 'HTTP 429')
    const { availableAt } = await deliveryOf(app, id)
    const waitMs = availableAt! - clock.now()
    assert.ok(waitMs > 500_000, `${waitMs} ms`)
    assert.equal(receiver.received.length, 1)
  })

  test(`${driver.name}: a run of failures opens the circuit, which is shown, told and costs no attempts`, async (t) => {
    const clock = new OffsetClock()
    const rules = { max_attempts: 100, first_delay_s: 600, max_delay_s: 600 }
    const { app, receiver, call } = await startPushed(t, driver, { clock, rules, endpoint: { concurrency: 1 } })
    receiver.respond = status(500)
    const ids: number[] = []
    for (let n = 0; n < 30; n++) ids.push(await post(app, `c${n}`))
    const shown = async () => ((await call('GET', ENDPOINT)) as { endpoint: Shown }).endpoint
    await until('the circuit is open', async () => (await shown()).state === 'open')
    assert.equal(receiver.received.length, 10)
    const told = app.log.find(({ msg }) => /circuit is open/.test(String(msg)))!
    assert.deepEqual([told.tenant, told.subscription, told.failure], ['7/42', 'default', 'http_500'])

    // Half-open: one is tried; it fails, and the circuit stays open for longer.
    await advance(app, clock, 31_000)
    await until('one was tried', () => receiver.received.length === 11)
    await until('it is open again', async () => (await shown()).circuit.trips === 2)
    receiver.respond = ok
    await advance(app, clock, 61_000)
    await until('the circuit is closed', async () => (await shown()).state === 'active')
    await until('the others arrived', () => receiver.received.length === ids.length)
    const repeated = receiver.received.filter(({ attempt }) => attempt > 1).map(({ eventId }) => eventId)
    assert.deepEqual(repeated, [], 'those that the circuit withheld were first attempts')
    await advance(app, clock, 760_000)
    await until('the failed ones arrived too', () => receiver.received.length === ids.length + 11)
    assert.equal(new Set(receiver.received.map(({ id }) => id)).size, ids.length)
  })

  test(`${driver.name}: an open circuit is open after a restart`, async (t) => {
    // It stands still: the time until the next try must not run out during the restart.
    const clock = new TestClock(Date.now())
    const { app, receiver, call } = await startPushed(t, driver, { clock, rules: { max_attempts: 100 } })
    receiver.respond = status(500)
    for (let n = 0; n < 12; n++) await post(app, `c${n}`)
    await until('the circuit is open', async () => {
      const { endpoint } = (await call('GET', ENDPOINT)) as { endpoint: Shown }
      return endpoint.state === 'open'
    })
    await app.app.stop()
    const { length } = receiver.received
    const again = await startTestApp(
      t,
      { ...driver, readyDatabase: async () => app.databaseUrl },
      { clock, settings: { pushAllow: 'loopback' } },
    )
    const stored = await again.store.endpoints.find({ tenant: TENANT, subscription: 'default' })
    assert.notEqual(stored?.circuit.openedAt, null)
    await again.indexed()
    assert.equal(receiver.received.length, length)
  })

  test(`${driver.name}: a hanging endpoint delays no other one`, async (t) => {
    const {
      app,
      receiver: hanging,
      call,
    } = await startPushed(t, driver, { endpoint: { timeout_s: 60, concurrency: 64 } })
    hanging.respond = () => {}
    const fast = await startReceiver(t)
    await call('POST', '/v1/inbox/subscriptions', { name: 'fast' })
    await call('POST', '/v1/inbox/subscriptions/fast/endpoint', { url: fast.url })
    for (let n = 0; n < 200; n++) await post(app, `c${n % 50}`)
    await until('the fast one has all', () => fast.received.length === 200)
    // All conversations of the slow one are still under way, or begin with the same event again.
    const begun = () => new Set(hanging.received.map(({ eventId }) => eventId)).size
    await until('the slow one has one of each', () => begun() === 50)
    assert.equal(begun(), 50)
  })

  test(`${driver.name}: the payload is sent as it came if the endpoint wants that`, async (t) => {
    const { app, receiver, secret } = await startPushed(t, driver, { endpoint: { body: 'raw' } })
    const bodies = ['{"a": 1,\n "a":2, "n":9007199254740993}', '\uFEFF{"bom":true}']
    for (const body of bodies) await app.post(body, { 'Content-Type': 'application/vnd.x+json' })
    await until('both arrived', () => receiver.received.length === 2)
    for (const [n, one] of receiver.received.entries()) {
      assert.ok(bodies.includes(one.body.toString()), `body ${n}`)
      assert.equal(one.headers['content-type'], 'application/vnd.x+json')
      assert.ok(isSignedWith(secret, one))
    }
  })

  test(`${driver.name}: headers are added, and both secrets of a rotation sign`, async (t) => {
    const headers = [
      { name: 'Authorization', value: 'Bearer receivers-own' },
      { name: 'X-Team', value: 'crm', secret: false },
    ]
    const { app, receiver, secret, call } = await startPushed(t, driver, { endpoint: { headers } })
    const { endpoint } = (await call('POST', `${ENDPOINT}/secret`, { overlap_s: 3600 })) as {
      endpoint: { secret: string }
    }
    await inForce(app)
    await post(app, 'c')
    const one = await until('it arrived', () => receiver.received[0])
    assert.equal(one.headers.authorization, 'Bearer receivers-own')
    assert.equal(one.headers['x-team'], 'crm')
    for (const signing of [secret, endpoint.secret]) assert.ok(isSignedWith(signing, one))
    assert.equal(String(one.headers['webhook-signature']).split(' ').length, 2)

    await call('POST', `${ENDPOINT}/secret`, {})
    await inForce(app)
    await post(app, 'c')
    const two = await until('another arrived', () => receiver.received[1])
    for (const old of [secret, endpoint.secret]) assert.ok(!isSignedWith(old, two))
  })

  test(`${driver.name}: a trace goes on in the request`, async (t) => {
    const { app, receiver } = await startPushed(t, driver)
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
    await app.post({ n: 1 }, { traceparent })
    const one = await until('it arrived', () => receiver.received[0])
    assert.match(String(one.headers.traceparent), /^00-0af7651916cd43dd8448eb211c80319c-[0-9a-f]{16}-01$/)
  })

  test(`${driver.name}: nothing is sent while the endpoint is paused, and all of it afterwards`, async (t) => {
    const { app, receiver, call, history } = await startPushed(t, driver)
    await call('POST', `${ENDPOINT}/pause`)
    await inForce(app)
    const id = await post(app, 'c')
    await app.indexed()
    assert.equal((await history(id)).state, 'pending')
    assert.equal(receiver.received.length, 0)
    await call('POST', `${ENDPOINT}/resume`)
    await until('it arrived', () => receiver.received.length === 1)
  })

  test(`${driver.name}: a range is replayed under the same ids`, async (t) => {
    const { app, receiver, call, history } = await startPushed(t, driver)
    const ids = [await post(app, 'a'), await post(app, 'a'), await post(app, 'b')]
    await until('all arrived', () => receiver.received.length === 3)
    await until('all are done', async () =>
      (await Promise.all(ids.map(history))).every(({ state }) => state === 'done'),
    )
    const range = { from: ids[0], to: ids[1] }
    const counted = await call('POST', `${ENDPOINT}/replay`, { ...range, dry_run: true })
    assert.deepEqual([counted.matched, counted.replayed], [2, 0])
    const done = await call('POST', `${ENDPOINT}/replay`, range)
    assert.deepEqual([done.matched, done.replayed, done.next], [2, 2, null])
    await until('they arrived again', () => receiver.received.length === 5)
    const [first, second] = receiver.received
    assert.deepEqual(
      receiver.received.slice(3).map(({ id }) => id),
      [first!, second!, receiver.received[2]!].filter(({ eventId }) => eventId !== ids[2]).map(({ id }) => id),
    )
  })

  test(`${driver.name}: a stop lets a request end, and gives back what was not sent`, async (t) => {
    const { app, receiver } = await startPushed(t, driver, { endpoint: { concurrency: 1 } })
    const answer = Promise.withResolvers<void>()
    receiver.respond = (_one, res) => void answer.promise.then(() => res.end())
    const ids: number[] = []
    for (let n = 0; n < 5; n++) ids.push(await post(app, 'c'))
    await until('one is under way', () => receiver.received.length === 1)
    const stopped = app.app.stop()
    answer.resolve()
    await stopped
    assert.equal(receiver.received.length, 1)
    const again = await startTestApp(
      t,
      { ...driver, readyDatabase: async () => app.databaseUrl },
      { settings: { pushAllow: 'loopback' } },
    )
    // The first one is done, the others are free at once: none of them waits for a lease to end, or has lost an attempt.
    receiver.respond = ok
    await until('the others arrived', () => receiver.received.length === 5)
    assert.deepEqual(
      receiver.received.map(({ eventId, attempt }) => [eventId, attempt]),
      ids.map((id) => [id, 1]),
    )
    await again.indexed()
  })
}

interface Delivery {
  readonly subscription: string
  readonly state: string
  readonly attempts: number
  readonly history: { readonly error: string | null }[]
}

interface Shown {
  readonly state: string
  readonly circuit: { readonly trips: number }
}

class OffsetClock {
  offset = 0
  now(): number {
    return Date.now() + this.offset
  }
}

async function deliveryOf(app: TestApp, id: number) {
  const found = await app.store.processing.history(TENANT, id)
  return found.find(({ subscription }) => subscription === 'default')!
}

/** In steps shorter than a lease, which none that is under way outlives: a longer one would end leases that are given back just then. */
async function advance(app: TestApp, clock: OffsetClock, ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= 10_000) {
    // Behind a claim that is on its way.
    await app.store.probe()
    await until('nothing is leased', async () => (await app.store.metrics.read(clock.now())).leases === 0)
    clock.offset += Math.min(left, 10_000)
  }
}

/** Nobody was there, and the history says so. */
async function tried(app: TestApp): Promise<boolean> {
  const attempts = await app.store.endpoints.attempts({ tenant: TENANT, subscription: 'default' }, 10)
  return attempts.some(({ failure }) => failure === 'refused')
}

/** Resolves when this node pushes by the latest settings. */
async function inForce(app: TestApp, subscription = 'default'): Promise<void> {
  const { revision } = (await app.store.endpoints.find({ tenant: TENANT, subscription }))!
  await until('the node follows', () =>
    app.log.some(
      (one) => one.msg === 'an endpoint is in effect' && one.subscription === subscription && one.revision === revision,
    ),
  )
}
