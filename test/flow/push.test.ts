// Pushes through the whole service, on both drivers: what arrives, in which order, and what each answer of an endpoint leads to.

import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { test } from 'node:test'
import { startTestApp, type TestApp, type TestAppOptions } from '../support/app.ts'
import { drivers } from '../support/drivers.ts'
import { idOf, jsonHeaders } from '../support/intake.ts'
import { isSignedWith, ok, type Receiver, startReceiver, status } from '../support/receiver.ts'
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
  const made = await call('POST', ENDPOINT, { url: receiver.url, ...options.endpoint })
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
}
