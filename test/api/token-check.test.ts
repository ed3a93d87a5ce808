import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { startTestApp } from '../support/app.ts'
import { TestClock } from '../support/clock.ts'
import { drivers } from '../support/drivers.ts'
import { rowsStoredDuring } from '../support/intake.ts'
import { exchange, rawRequest } from '../support/raw.ts'
import { sharedApp } from '../support/shared-app.ts'

const PING = '/api/ping'
const TESTER = '/api/inbox-test'

for (const driver of drivers) {
  describe(`token checks on ${driver.name}`, () => {
    test('ping answers exactly ok, account_id, company_id and scope', async (t) => {
      const app = await startTestApp(t, driver)
      const answer = await app.send({ path: PING, headers: { Authorization: `Bearer ${app.token}` } })
      assert.equal(answer.status, 200)
      assert.equal(answer.text, '{"ok":true,"account_id":7,"company_id":42,"scope":"cf"}')
      assert.equal(answer.headers['content-type'], 'application/json; charset=utf-8')
      assert.equal(answer.headers['cache-control'], 'no-store')
    })

    test('ping shows an empty scope for a token without one', async (t) => {
      const app = await startTestApp(t, driver)
      const token = await app.createToken({ scope: '' })
      const answer = await app.send({ path: PING, headers: { Authorization: `bearer ${token}` } })
      assert.equal(answer.json?.scope, '')
    })

    test('a token expires at its time, not before', async (t) => {
      const clock = new TestClock()
      const app = await startTestApp(t, driver, { clock })
      const token = await app.createToken({ expiresAt: clock.now() + 1000 })
      const ping = () => app.send({ path: PING, headers: { Authorization: `Bearer ${token}` } })
      clock.advance(999)
      assert.equal((await ping()).status, 200)
      clock.advance(1)
      const expired = await ping()
      assert.equal(expired.status, 401)
      assert.equal(expired.json?.error, 'token_expired')
    })
  })

  describe(`GET ${PING} on ${driver.name}`, () => {
    const shared = sharedApp(driver)
    const ping = (headers: Record<string, string>, path = PING) => shared.app.send({ path, headers })

    test('200: a processor token may ask', async () => {
      const token = await shared.app.createToken({ scope: 'processor' })
      const answer = await ping({ Authorization: `Bearer ${token}` })
      assert.equal(answer.text, '{"ok":true,"account_id":7,"company_id":42,"scope":"processor"}')
    })

    test('200: the tenant is the one of the token', async () => {
      const token = await shared.app.createToken({
        accountId: 2_000_000_001,
        companyId: 3_000_000_002,
        scope: 'a.b:c-d',
      })
      const answer = await ping({ Authorization: `Bearer ${token}` })
      assert.equal(answer.text, '{"ok":true,"account_id":2000000001,"company_id":3000000002,"scope":"a.b:c-d"}')
    })

    test('200: unknown query parameters are ignored', async () => {
      assert.equal((await ping({ Authorization: `Bearer ${shared.app.token}` }, `${PING}?a=1&b&token`)).status, 200)
    })

    test('200: a body on a GET is not looked at', async () => {
      const { app } = shared
      const headers = [`Authorization: Bearer ${app.token}`, 'Content-Type: application/json']
      const request = rawRequest({ method: 'GET', target: PING, headers, body: '{not json' })
      assert.equal((await exchange(app.port, 'GET', PING, request)).status, 200)
    })

    test('200: a header that asks for an upgrade is ignored', async () => {
      const { app } = shared
      const headers = [`Authorization: Bearer ${app.token}`, 'Connection: upgrade', 'Upgrade: websocket']
      const request = rawRequest({ method: 'GET', target: PING, headers })
      assert.equal((await exchange(app.port, 'GET', PING, request)).status, 200)
    })

    test('401: a token in the query is not read', async () => {
      const answer = await ping({}, `${PING}?token=${shared.app.token}`)
      assert.equal(answer.status, 401)
      assert.equal(answer.json?.error, 'missing_token')
    })

    test('a new token works at once', async () => {
      for (let count = 0; count < 5; count += 1) {
        const token = await shared.app.createToken()
        assert.equal((await ping({ Authorization: `Bearer ${token}` })).status, 200)
      }
    })
  })

  describe(`GET ${TESTER} on ${driver.name}`, () => {
    const shared = sharedApp(driver)
    const check = (query: string, headers: Record<string, string | string[]> = {}) =>
      shared.app.send({ path: `${TESTER}${query}`, headers })
    const BODY = '{"ok":true,"account_id":7,"company_id":42,"scope":"cf","deprecated":true}'

    test('200: the token in the query', async () => {
      const answer = await check(`?token=${shared.app.token}`)
      assert.equal(answer.status, 200)
      assert.equal(answer.text, BODY)
    })

    test('200: the token in the header', async () => {
      assert.equal((await check('', { Authorization: `Bearer ${shared.app.token}` })).text, BODY)
    })

    test('200: the same token in both', async () => {
      const { token } = shared.app
      assert.equal((await check(`?token=${token}`, { Authorization: `Bearer ${token}` })).text, BODY)
    })

    test('200: the same token twice in the query', async () => {
      const { token } = shared.app
      assert.equal((await check(`?token=${token}&token=${token}`)).text, BODY)
    })

    test('200: an empty token in the query counts as none', async () => {
      assert.equal((await check('?token=', { Authorization: `Bearer ${shared.app.token}` })).text, BODY)
    })

    test('200: a percent-encoded token, and parameters it does not know', async () => {
      const encoded = shared.app.token.replaceAll('_', '%5F')
      assert.equal((await check(`?x=1&token=${encoded}&debug=true`)).text, BODY)
    })

    test('200: a processor token may ask', async () => {
      const token = await shared.app.createToken({ scope: 'processor' })
      assert.equal((await check(`?token=${token}`)).json?.scope, 'processor')
    })

    test('200: the answer is kept out of caches and referrers and says that it is deprecated', async () => {
      const { headers } = await check(`?token=${shared.app.token}`)
      assert.equal(headers['cache-control'], 'no-store')
      assert.equal(headers['referrer-policy'], 'no-referrer')
      assert.match(String(headers.deprecation), /^@\d+$/)
    })

    test('200: nothing is stored', async () => {
      const rows = await rowsStoredDuring(shared.app, () => check(`?token=${shared.app.token}`))
      assert.deepEqual(rows, [])
    })

    test('200: an absolute address and a trailing slash are the same route', async () => {
      const { app } = shared
      for (const target of [`http://intray.test${TESTER}?token=${app.token}`, `${TESTER}/?token=${app.token}`]) {
        const answer = await exchange(app.port, 'GET', TESTER, rawRequest({ method: 'GET', target }))
        assert.equal(answer.text, BODY)
      }
    })

    test('400: two different tokens, wherever they are', async () => {
      const { token } = shared.app
      const other = await shared.app.createToken()
      const answers = [
        await check(`?token=${token}`, { Authorization: `Bearer ${other}` }),
        await check(`?token=${token}&token=${other}`),
        await check(`?token=${other}&token=${token}`, { Authorization: `Bearer ${token}` }),
        await check(`?token=${token}`, { Authorization: 'Bearer nonsense' }),
        await check(`?token=nonsense&token=${token}`),
      ]
      for (const { status, json, text } of answers) {
        assert.equal(status, 400)
        assert.equal(json?.error, 'invalid_request')
        assert.ok(!text.includes(token) && !text.includes(other), 'no token in the answer')
      }
    })

    test('400: two Authorization headers', async () => {
      const { token } = shared.app
      const answer = await check('', { Authorization: [`Bearer ${token}`, `Bearer ${token}`] })
      assert.equal(answer.status, 400)
      assert.equal(answer.json?.error, 'invalid_request')
    })

    test('401: no token at all, an empty one, or another scheme', async () => {
      const answers = [await check(''), await check('?token='), await check('?token=', { Authorization: 'Basic eA==' })]
      for (const { status, json, headers } of answers) {
        assert.equal(status, 401)
        assert.equal(json?.error, 'missing_token')
        assert.equal(headers['www-authenticate'], 'Bearer realm="intray"')
      }
    })

    test('401: a token that is not known, is disabled or has expired', async () => {
      const { app } = shared
      const expired = await app.createToken({ expiresAt: Date.now() - 1 })
      const disabled = await app.createToken()
      await app.store.tokens.setActive(disabled.split('_')[1]!, false, Date.now())
      assert.equal((await check('?token=nonsense')).json?.error, 'invalid_token')
      assert.equal((await check(`?token=${expired}`)).json?.error, 'token_expired')
      assert.equal((await check(`?token=${disabled}`)).json?.error, 'token_disabled')
    })

    test('405: other methods, with those it takes', async () => {
      const answer = await shared.app.send({ method: 'POST', path: `${TESTER}?token=${shared.app.token}` })
      assert.equal(answer.status, 405)
      assert.equal(answer.headers.allow, 'GET, HEAD, OPTIONS')
    })

    test('404: turned off, it does not exist for any method', async (t) => {
      const app = await startTestApp(t, driver, { settings: { legacyTester: 'off' } })
      for (const method of ['GET', 'HEAD', 'POST', 'OPTIONS']) {
        const answer = await app.send({ method, path: `${TESTER}?token=${app.token}` })
        assert.equal(answer.status, 404, method)
        if (method !== 'HEAD') assert.equal(answer.json?.error, 'not_found')
      }
      assert.equal((await app.send({ path: PING, headers: { Authorization: `Bearer ${app.token}` } })).status, 200)
    })
  })
}
