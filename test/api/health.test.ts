import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { startTestApp } from '../support/app.ts'
import { drivers } from '../support/drivers.ts'
import { within } from '../support/until.ts'

for (const driver of drivers) {
  describe(`health on ${driver.name}`, () => {
    test('GET /livez and GET /readyz answer exactly ok, without a token', async (t) => {
      const app = await startTestApp(t, driver)
      for (const path of ['/livez', '/readyz']) {
        const answer = await app.send({ path })
        assert.equal(answer.status, 200)
        assert.equal(answer.text, '{"ok":true}')
      }
    })

    test('503 shutting_down: a server that is stopping says so, and still takes what comes', async (t) => {
      const app = await startTestApp(t, driver, { settings: { readyDelay: '3s' } })
      // The first timer is that of the delay, which lasts until all was asked here.
      const delay = Promise.withResolvers<() => void>()
      t.mock.method(globalThis, 'setTimeout', delay.resolve as unknown as typeof setTimeout, { times: 1 })
      const stopped = app.app.stop()
      const ready = await app.send({ path: '/readyz' })
      assert.equal(ready.status, 503)
      assert.equal(ready.json?.error, 'shutting_down')
      assert.equal(ready.json?.stored, 'no')
      assert.match(String(ready.headers['retry-after']), /^[1-9]\d*$/)
      assert.equal((await app.send({ path: '/livez' })).status, 200)
      assert.equal((await app.post('{}')).status, 200)
      const endDelay = await delay.promise
      endDelay()
      await within('the service stops', stopped)
      await assert.rejects(app.send({ path: '/livez' }), { code: 'ECONNREFUSED' })
    })
  })
}
