import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { startTestApp } from '../support/app.ts'
import { TestClock } from '../support/clock.ts'
import { drivers } from '../support/drivers.ts'

for (const driver of drivers) {
  describe(`token checks on ${driver.name}`, () => {
    test('ping answers exactly ok, account_id, company_id and scope', async (t) => {
      const app = await startTestApp(t, driver)
      const answer = await app.send({ path: '/api/ping', headers: { Authorization: `Bearer ${app.token}` } })
      assert.equal(answer.status, 200)
      assert.equal(answer.text, '{"ok":true,"account_id":7,"company_id":42,"scope":"cf"}')
      assert.equal(answer.headers['cache-control'], 'no-store')
    })

    test('ping shows an empty scope for a token without one', async (t) => {
      const app = await startTestApp(t, driver)
      const token = await app.createToken({ scope: '' })
      const answer = await app.send({ path: '/api/ping', headers: { Authorization: `bearer ${token}` } })
      assert.equal(answer.json?.scope, '')
    })

    test('a token expires at its time, not before', async (t) => {
      const clock = new TestClock()
      const app = await startTestApp(t, driver, { clock })
      const token = await app.createToken({ expiresAt: clock.now() + 1000 })
      const ping = () => app.send({ path: '/api/ping', headers: { Authorization: `Bearer ${token}` } })
      clock.advance(999)
      assert.equal((await ping()).status, 200)
      clock.advance(1)
      const expired = await ping()
      assert.equal(expired.status, 401)
      assert.equal(expired.json?.error, 'token_expired')
    })
  })
}
