// follow() of the Python client: every event once and in order, over broken and silent connections.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startTestApp } from '../../support/app.ts'
import { drivers } from '../../support/drivers.ts'
import { missingPython } from '../../support/python.ts'
import { until } from '../../support/until.ts'
import { startProxy } from '../typescript/proxy.ts'
import { PythonKit } from './kit.ts'

for (const [what, silenceS] of [
  ['that break off', 600],
  ['that fall silent', 0.25],
] as const) {
  test(`over connections ${what} Python follows on after the last event: none is missing, none comes twice`, {
    skip: missingPython(),
  }, async (t) => {
    const app = await startTestApp(t, drivers[0]!)
    const proxy = await startProxy(t, app.url)
    const token = await app.createToken({ scope: 'processor' })
    const kit = new PythonKit(t, { url: proxy.url, token, outbox: 'none', connect_timeout: 60, request_timeout: 60 })
    const following = kit.call('follow', { after: 0, silence_s: silenceS, stop: 's' })
    for (let round = 1; round <= 3; round++) {
      for (let n = 0; n < 10; n++) await app.post({ text: 'ü🙂' })
      await until('all are there', () => kit.followed.length === 10 * round)
      const connections = proxy.arrived.length
      // Silence needs no help: there is no heartbeat for 15 s.
      if (silenceS > 1) proxy.cut()
      await until('it has connected again', () => proxy.arrived.length > connections)
    }
    kit.stop('s')
    await following
    assert.deepEqual(
      kit.followed,
      Array.from({ length: 30 }, (_, n) => n + 1),
    )
    assert.equal(Number(proxy.arrived[0]!.headers['last-event-id']), 0)
    assert.equal(Number(proxy.arrived.at(-1)!.headers['last-event-id']), 30, 'it resumed after the last event')
  })
}
