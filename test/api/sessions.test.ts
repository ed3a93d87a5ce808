import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { describe, test } from 'node:test'
import { hashPassword } from '../../src/auth/password.ts'
import { startTestApp, type TestApp } from '../support/app.ts'
import type { TestAnswer } from '../support/client.ts'
import { TestClock } from '../support/clock.ts'
import { drivers } from '../support/drivers.ts'
import { EventStream } from '../support/event-stream.ts'
import { createOperator, cookieOf, operatorOf, operatorWith, signIn, signInCode } from '../support/operators.ts'
import { sharedApp } from '../support/shared-app.ts'
import { until } from '../support/until.ts'

const HOUR_MS = 3_600_000
const SESSION = '/v1/console/session'
const EVENTS = '/v1/inbox/events'

/** Everything that a client can see of an answer, but what differs between any two. */
function seen({ status, headers, text }: TestAnswer) {
  const { date: _, 'x-request-id': requestId, ...rest } = headers
  return { status, headers: rest, text: text.replaceAll(String(requestId), '<request id>') }
}

async function seenAt({ store }: TestApp, cookie: string, now: number): Promise<number | undefined> {
  const found = await store.operators.findSession(hash('sha256', cookie.split('=')[1]!, 'buffer'), now)
  return found?.session.seenAt
}

for (const driver of drivers) {
  describe(`sessions on ${driver.name}`, () => {
    const shared = sharedApp(driver)

    test('200: a link signs in once, and the cookie is for this site and its server alone', async () => {
      const { app } = shared
      const link = await signInCode(app, await createOperator(app, { role: 'viewer', name: 'ada' }))
      const answer = await signIn(app, { link })
      assert.equal(answer.status, 200)
      assert.deepEqual(answer.json?.operator, { name: 'ada', role: 'viewer', tenants: 'all' })
      const [cookie] = answer.headers['set-cookie']!
      assert.match(cookie!, /^intray_session=[0-9A-Za-z]{43}; Path=\/; Max-Age=4[23]\d{3}; HttpOnly; SameSite=Strict$/)
      const again = await signIn(app, { link })
      assert.equal(again.status, 401)
      assert.equal(again.json?.error, 'sign_in_failed')
    })

    test('the cookie is Secure, and bound to its host, wherever the server goes by another name than loopback', async () => {
      const { app } = shared
      const name = await createOperator(app)
      for (const [host, secure] of [
        ['localhost:8080', false],
        ['127.0.0.1', false],
        ['[::1]:8080', false],
        ['intray.example.org', true],
        ['127.0.0.1.example.org', true],
        ['192.0.2.7:8080', true],
      ] as const) {
        const answer = await signIn(app, { link: await signInCode(app, name) }, { Host: host })
        const [cookie = ''] = answer.headers['set-cookie'] ?? []
        assert.equal(cookie.endsWith('; Secure'), secure, host)
        assert.equal(cookie.startsWith('__Host-intray_session='), secure, host)
        const pair = cookie.split(';')[0]!
        const show = (Cookie: string) => app.send({ path: '/v1/console/session', headers: { Host: host, Cookie } })
        assert.equal((await show(pair)).status, 200, host)
        if (secure)
          assert.equal((await show(pair.replace('__Host-', ''))).status, 401, 'the name another host could set')
      }
    })

    test('200: a session reads the inbox of the tenant that it names, as a processor would', async () => {
      const { app } = shared
      const operator = await operatorOf(app, { role: 'viewer' })
      await app.post({ source_ref: 'seen' })
      await app.indexed()
      const list = await operator.get(`${EVENTS}?source_ref=seen`)
      assert.equal(list.status, 200)
      assert.equal((list.json!.events as unknown[]).length, 1)
      await app.createToken({ accountId: 9, companyId: 42 })
      const other = await operator.get(`${EVENTS}?source_ref=seen`, '9/42')
      assert.deepEqual(other.json?.events, [])
    })

    test('400: a session without a tenant, or with one that cannot be', async () => {
      const { app } = shared
      const { cookie } = await operatorOf(app)
      for (const tenant of [
        undefined,
        '',
        '7',
        '7/',
        '/42',
        '07/42',
        '7/42/1',
        '0/42',
        '-7/42',
        'a/b',
        ['7/42', '7/42'],
      ]) {
        const headers = { Cookie: cookie, ...(tenant === undefined ? {} : { 'Intray-Tenant': tenant }) }
        const answer = await app.send({ path: EVENTS, headers })
        assert.equal(answer.status, 400, String(tenant))
        assert.equal(answer.json?.error, 'invalid_request')
      }
    })

    test('401 not_signed_in: a cookie that is none, unknown, or there twice', async () => {
      const { app } = shared
      const { cookie } = await operatorOf(app)
      const value = cookie.split('=')[1]!
      const wrong = [
        `intray_session=${value.slice(1)}x`,
        'intray_session=',
        `intray_session=${value}x`,
        `${cookie}; intray_session=${'a'.repeat(43)}`,
        `${cookie}; ${cookie}`,
      ]
      for (const one of wrong) {
        for (const path of [EVENTS, SESSION]) {
          const answer = await app.send({ path, headers: { Cookie: one, 'Intray-Tenant': '7/42' } })
          assert.equal(answer.json?.error, 'not_signed_in', `${path} ${one}`)
          assert.equal(answer.headers['www-authenticate'], 'Session realm="intray console"')
        }
      }
      const beside = await app.send({ path: SESSION, headers: { Cookie: `a=b; ${cookie}; c=d` } })
      assert.equal(beside.status, 200)
    })

    test('401: without a cookie a token is asked for where tokens are taken, and a session where not', async () => {
      const { app } = shared
      for (const cookie of [{}, { Cookie: 'other=1; xintray_session=1' }]) {
        assert.equal((await app.send({ path: EVENTS, headers: cookie })).json?.error, 'missing_token')
        assert.equal((await app.send({ path: SESSION, headers: cookie })).json?.error, 'not_signed_in')
      }
      const headers = { Authorization: `Bearer ${app.token}` }
      assert.equal((await app.send({ path: SESSION, headers })).json?.error, 'not_signed_in')
    })

    test('an Authorization header wins over the cookie, whatever it holds', async () => {
      const { app } = shared
      const operator = await operatorOf(app)
      for (const [value, error] of [
        [`Bearer ${app.token}`, 'forbidden_scope'],
        ['Bearer nonsense', 'invalid_token'],
        ['Basic eA==', 'missing_token'],
        ['', 'missing_token'],
      ] as const) {
        const answer = await app.send({ path: EVENTS, headers: { ...operator.headers(), Authorization: value } })
        assert.equal(answer.json?.error, error, value)
      }
    })

    test('a session sends nothing and claims nothing: intake and claims ask for a token', async () => {
      const { app } = shared
      const operator = await operatorOf(app)
      for (const path of [EVENTS, '/api/inbox', '/v1/inbox/claims', '/v1/inbox/claims/ack']) {
        const answer = await operator.post(path, {})
        assert.equal(answer.status, 401, path)
        assert.equal(answer.json?.error, 'missing_token')
      }
      assert.equal((await operator.get('/api/ping')).json?.error, 'missing_token')
    })

    test('403 forbidden_origin: what changes something has to come from this server', async () => {
      const { app } = shared
      const operator = await operatorOf(app)
      const ask = (headers: Record<string, string>) =>
        app.send({
          method: 'POST',
          path: '/v1/console/test-events',
          headers: { Cookie: operator.cookie, 'Intray-Tenant': '7/42', 'Content-Type': 'application/json', ...headers },
          body: '{}',
        })
      const own = `http://127.0.0.1:${app.port}`
      const foreign = [
        {},
        { Origin: 'null' },
        { Origin: 'https://evil.example' },
        { Origin: `http://127.0.0.1:${app.port + 1}` },
        { Origin: `http://127.0.0.1:${app.port}.evil.example` },
        { Origin: `http://x@127.0.0.1:${app.port}` },
        { Origin: '' },
        { Origin: own, 'Sec-Fetch-Site': 'cross-site' },
        { Origin: own, 'Sec-Fetch-Site': 'same-site' },
        { Origin: own, 'Sec-Fetch-Site': 'none' },
      ]
      const before = await app.store.events.watermark()
      for (const headers of foreign) {
        const answer = await ask(headers as Record<string, string>)
        assert.equal(answer.json?.error, 'forbidden_origin', JSON.stringify(headers))
      }
      const deletes = await app.send({ method: 'DELETE', path: SESSION, headers: { Cookie: operator.cookie } })
      assert.equal(deletes.json?.error, 'forbidden_origin')
      assert.equal(await app.store.events.watermark(), before, 'nothing was stored')
      assert.equal((await ask({ Origin: own })).status, 200)
      assert.equal((await ask({ Origin: own.replace('http', 'https'), 'Sec-Fetch-Site': 'same-origin' })).status, 200)
    })

    test('403 forbidden_origin: nobody is signed in from another site', async () => {
      const { app } = shared
      const link = await signInCode(app, await createOperator(app))
      for (const headers of [{ Origin: 'https://evil.example' }, { 'Sec-Fetch-Site': 'cross-site' }]) {
        assert.equal((await signIn(app, { link }, headers as Record<string, string>)).json?.error, 'forbidden_origin')
      }
      assert.equal((await signIn(app, { link })).status, 200)
    })

    test('400: a sign-in that says anything else than a name and a password, or a link', async () => {
      const { app } = shared
      for (const body of [
        {},
        { name: 'ada' },
        { name: 'ada', password: 1 },
        { name: 'ada', password: '' },
        { name: 'ada', password: 'x'.repeat(300) },
        { link: 'x', name: 'ada', password: 'x' },
        { link: null },
        { name: 'ada', password: 'x', more: 1 },
      ]) {
        assert.equal((await signIn(app, body)).json?.error, 'invalid_request', JSON.stringify(body))
      }
    })

    test('signing out ends this session, and everywhere all of the operator, at once', async () => {
      const { app } = shared
      const first = await operatorOf(app)
      const more = []
      for (let n = 0; n < 2; n++) {
        const answer = await signIn(app, { link: await signInCode(app, first.name) })
        more.push(operatorWith(app, first.name, cookieOf(answer)))
      }
      const other = await operatorOf(app)
      const [second, third] = more
      for (const one of [first, second!, third!, other]) assert.equal((await one.get(SESSION)).status, 200)
      const out = await app.send({ method: 'DELETE', path: SESSION, headers: first.headers() })
      assert.equal(out.status, 200)
      assert.match(out.headers['set-cookie']![0]!, /^intray_session=; Path=\/; Max-Age=0; HttpOnly; SameSite=Strict$/)
      assert.equal((await first.get(SESSION)).json?.error, 'not_signed_in')
      assert.equal((await second!.get(SESSION)).status, 200)
      const path = `${SESSION}?everywhere=true`
      assert.equal((await app.send({ method: 'DELETE', path, headers: second!.headers() })).status, 200)
      for (const one of [second!, third!]) assert.equal((await one.get(SESSION)).json?.error, 'not_signed_in')
      assert.equal((await other.get(SESSION)).status, 200)
    })

    test('a stream of a session shows its tenant and ends when the session does', async () => {
      const { app } = shared
      const operator = await operatorOf(app, { role: 'viewer' })
      const stream = await EventStream.open(app.port, '', { credentials: operator.headers() })
      assert.equal(stream.status, 200)
      await app.post({ source_ref: 'streamed' })
      await until('the event is on the stream', () => stream.events.some((one) => one.source_ref === 'streamed'))
      await app.send({ method: 'DELETE', path: SESSION, headers: operator.headers() })
      await stream.closed
      assert.equal(stream.blocks.at(-1)?.comment?.trim(), 'not_signed_in')
    })
  })

  describe(`how sessions end and are held up, on ${driver.name}`, () => {
    test('a session ends after its time, and earlier if nothing is done with it', async (t) => {
      const clock = new TestClock()
      const app = await startTestApp(t, driver, {
        clock,
        settings: { sessionMaxAge: '12h', sessionIdle: '1h' },
      })
      const enter = async () => {
        const name = await createOperator(app)
        const answer = await signIn(app, { link: await signInCode(app, name, clock.now()) })
        return operatorWith(app, name, cookieOf(answer))
      }
      const idle = await enter()
      clock.advance(HOUR_MS - 1)
      assert.equal((await idle.get(SESSION)).status, 200)
      clock.advance(HOUR_MS)
      assert.equal((await idle.get(SESSION)).json?.error, 'not_signed_in')

      const busy = await enter()
      for (let n = 0; n < 23; n++) {
        clock.advance(HOUR_MS / 2)
        assert.equal((await busy.get(SESSION)).status, 200, `after ${(n + 1) / 2} hours`)
        // It is noted behind the answer.
        await until('the use is noted', async () => (await seenAt(app, busy.cookie, clock.now())) === clock.now())
      }
      clock.advance(HOUR_MS / 2)
      assert.equal((await busy.get(SESSION)).json?.error, 'not_signed_in')
    })

    test('an operator who is disabled, or gets a new password, is out within a second', async (t) => {
      const clock = new TestClock()
      const app = await startTestApp(t, driver, { clock })
      for (const change of [
        (name: string) => app.store.operators.setDisabled(name, clock.now()),
        (name: string) => app.store.operators.setPassword(name, 'x'),
      ]) {
        const name = await createOperator(app)
        const answer = await signIn(app, { link: await signInCode(app, name, clock.now()) })
        const operator = operatorWith(app, name, cookieOf(answer))
        assert.equal((await operator.get(SESSION)).status, 200)
        await change(name)
        clock.advance(1000)
        assert.equal((await operator.get(SESSION)).json?.error, 'not_signed_in')
      }
    })

    test('a wrong name, a wrong password and a disabled operator get one answer; after some failures a name waits', async (t) => {
      const clock = new TestClock()
      const app = await startTestApp(t, driver, { clock, settings: { signInFailures: '2' } })
      const password = 'correct horse battery'
      for (const name of ['ada', 'gone', 'bare']) await createOperator(app, { name })
      const hashed = await hashPassword(password)
      for (const name of ['ada', 'gone']) await app.store.operators.setPassword(name, hashed)
      await app.store.operators.setDisabled('gone', clock.now())
      const session = await signIn(app, { name: 'ada', password })
      assert.equal(session.status, 200)
      const failures = [
        { name: 'nobody', password },
        { name: 'ada', password: `${password}!` },
        { name: 'gone', password },
        { name: 'bare', password },
      ]
      const answers = []
      for (const body of failures) answers.push(seen(await signIn(app, body)))
      for (const answer of answers) assert.deepEqual(answer, answers[0])
      assert.equal(answers[0]!.status, 401)

      assert.equal((await signIn(app, { name: 'ada', password: 'wrong again' })).status, 401)
      const held = await signIn(app, { name: 'ada', password })
      assert.equal(held.status, 429)
      assert.equal(held.json?.error, 'rate_limited')
      assert.equal(held.headers['retry-after'], '1')
      const open = operatorWith(app, 'ada', cookieOf(session))
      assert.equal((await open.get(SESSION)).status, 200, 'a session that is open stays usable')
      const link = await signInCode(app, 'ada', clock.now())
      assert.equal((await signIn(app, { link })).status, 200, 'a link lets in whatever was tried with the name')
      clock.advance(1000)
      assert.equal((await signIn(app, { name: 'ada', password })).status, 200, 'after the pause the password works')
    })

    test('with the console off its addresses are gone and a cookie is worth nothing', async (t) => {
      const app = await startTestApp(t, driver, { settings: { console: 'off' } })
      for (const path of [SESSION, '/v1/console/audit', '/console', '/console/queue', '/console/assets/x.js']) {
        assert.equal((await app.send({ path })).status, 404, path)
      }
      const headers = { Cookie: `intray_session=${'a'.repeat(43)}`, 'Intray-Tenant': '7/42' }
      assert.equal((await app.send({ path: EVENTS, headers })).json?.error, 'missing_token')
    })
  })
}
