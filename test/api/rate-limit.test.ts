// Too many requests of one token, and too many tokens that nobody knows.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { mintToken } from '../../src/auth/token.ts'
import { type TestApp, startTestApp } from '../support/app.ts'
import { TestClock } from '../support/clock.ts'
import { drivers } from '../support/drivers.ts'
import { idOf, rowsBetween } from '../support/intake.ts'
import { until } from '../support/until.ts'

const bearer = (token: string) => ({ Authorization: `Bearer ${token}` })
const ping = (app: TestApp, token: string, headers: Record<string, string> = {}) =>
  app.send({ path: '/api/ping', headers: { ...bearer(token), ...headers } })

for (const driver of drivers) {
  test(`${driver.name}: a token above its limit is answered 429 with the fields, stores nothing, and is let in again`, async (t) => {
    const clock = new TestClock()
    const app = await startTestApp(t, driver, { clock, settings: { rateLimit: '3/10s' } })
    const policy = '"token";q=3;w=10'
    const seen: unknown[] = []
    const free = bearer(await app.createToken({ rateLimit: 'off' }))
    const before = idOf(await app.post({}, free))
    for (let n = 0; n < 4; n++) {
      const { status, headers } = await app.post({ n })
      assert.equal(headers['ratelimit-policy'], policy)
      seen.push([status, headers.ratelimit, headers['retry-after']])
    }
    assert.deepEqual(seen, [
      [200, '"token";r=2;t=4', undefined],
      [200, '"token";r=1;t=7', undefined],
      [200, '"token";r=0;t=4', undefined],
      [429, '"token";r=0;t=4', '4'],
    ])
    assert.equal((await rowsBetween(app, before, idOf(await app.post({}, free)))).length, 3)
    assert.equal((await ping(app, app.token)).json?.error, 'rate_limited', 'one bucket for all routes')
    clock.advance(4000)
    assert.equal((await app.post({})).status, 200)
    assert.equal((await app.post({})).status, 429)
  })

  test(`${driver.name}: a limit of its own wins over the setting, and a change is in force on the running server`, async (t) => {
    const app = await startTestApp(t, driver, { clock: new TestClock(), settings: { rateLimit: '1/1d' } })
    const own = await app.createToken({ rateLimit: { requests: 2, windowMs: 86_400_000 } })
    const free = await app.createToken({ rateLimit: 'off' })
    const statuses = async (token: string) => {
      const answers = [await ping(app, token), await ping(app, token), await ping(app, token)]
      return answers.map(({ status }) => status)
    }
    assert.deepEqual(await statuses(app.token), [200, 429, 429])
    assert.deepEqual(await statuses(own), [200, 200, 429])
    assert.deepEqual(await statuses(free), [200, 200, 200])
    assert.equal((await ping(app, free)).headers['ratelimit-policy'], undefined)
    await app.store.tokens.setRateLimit(app.token.slice(4, 14), 'off')
    await until('the limit is lifted', async () => (await ping(app, app.token)).status === 200)
  })
}

const [sqlite] = drivers

test('off: no field says anything', async (t) => {
  const app = await startTestApp(t, sqlite!)
  for (const answer of [await app.post({}), await ping(app, app.token), await ping(app, 'nobody')]) {
    assert.equal(answer.headers.ratelimit, undefined)
    assert.equal(answer.headers['ratelimit-policy'], undefined)
  }
})

test('the rate comes after the scope and before the body: a call the scope forbids takes nothing', async (t) => {
  const app = await startTestApp(t, sqlite!, { clock: new TestClock(), settings: { rateLimit: '1/1d' } })
  const processor = await app.createToken({ scope: 'processor' })
  for (let n = 0; n < 3; n++) {
    const forbidden = await app.send({ method: 'POST', path: '/api/inbox', headers: bearer(processor), body: '{}' })
    assert.equal(forbidden.status, 403)
    assert.equal(forbidden.headers.ratelimit, '"token";r=1;t=0')
  }
  assert.equal((await ping(app, processor)).status, 200)
  assert.equal((await app.post({})).status, 200)
  const answer = await app.post('not even JSON', { 'Content-Type': 'text/html', 'Content-Encoding': 'br' })
  assert.equal(answer.status, 429)
  const stream = await app.send({ path: '/v1/inbox/stream', headers: bearer(processor) })
  assert.equal(stream.status, 429)
})

test('tokens that nobody knows: 401 up to the limit, then 429; a valid one from the same address is never refused', async (t) => {
  const clock = new TestClock()
  const app = await startTestApp(t, sqlite!, { clock, settings: { failedTokenLimit: '3/1m' } })
  const statuses: number[] = []
  for (let n = 0; n < 5; n++) {
    statuses.push((await ping(app, n % 2 ? mintToken().token : 'nonsense')).status)
    assert.equal((await app.post({ n })).status, 200)
  }
  assert.deepEqual(statuses, [401, 401, 401, 429, 429])
  const refused = await ping(app, 'nonsense')
  assert.deepEqual([refused.json?.error, refused.headers['retry-after']], ['too_many_failures', '20'])
  const fresh = await app.createToken()
  assert.equal((await ping(app, fresh)).status, 200, 'one that the node has never seen')
  clock.advance(20_000)
  assert.equal((await ping(app, 'nonsense')).status, 401)
})

test('no token, a disabled and an expired one are not guesses: they are told what they are, always', async (t) => {
  const app = await startTestApp(t, sqlite!, { settings: { failedTokenLimit: '1/1d' } })
  const expired = await app.createToken({ expiresAt: 1 })
  for (let n = 0; n < 3; n++) {
    assert.equal((await app.send({ path: '/api/ping' })).json?.error, 'missing_token')
    assert.equal((await ping(app, expired)).json?.error, 'token_expired')
  }
  assert.equal((await ping(app, 'nonsense')).status, 401)
  assert.equal((await ping(app, 'nonsense')).status, 429)
  assert.equal((await ping(app, expired)).json?.error, 'token_expired')
})

test('a trusted proxy decides the address that is kept, logged and counted; any other peer does not', async (t) => {
  const settings = { failedTokenLimit: '1/1d', trustedProxies: 'loopback' }
  const app = await startTestApp(t, sqlite!, { settings })
  const via = (address: string) => ({ 'X-Forwarded-For': `6.6.6.6, ${address}` })
  assert.equal((await ping(app, 'nonsense', via('203.0.113.7'))).status, 401)
  assert.equal((await ping(app, 'nonsense', via('203.0.113.7'))).status, 429)
  assert.equal((await ping(app, 'nonsense', via('203.0.113.8'))).status, 401)
  const { json } = await app.post({}, via('203.0.113.7'))
  assert.equal((await app.store.events.find(Number(json?.id)))?.remoteAddr, '203.0.113.7')
  await until('it is logged', () =>
    app.log.some(({ event_id: id, remote_addr: from }) => id === json?.id && from === '203.0.113.7'),
  )

  const direct = await startTestApp(t, sqlite!, { settings: { ...settings, trustedProxies: '10.0.0.0/8' } })
  assert.equal((await ping(direct, 'nonsense', via('203.0.113.7'))).status, 401)
  assert.equal((await ping(direct, 'nonsense', via('203.0.113.8'))).status, 429)
  const stored = await direct.post({}, via('203.0.113.7'))
  assert.equal((await direct.store.events.find(Number(stored.json?.id)))?.remoteAddr, '127.0.0.1')
})
