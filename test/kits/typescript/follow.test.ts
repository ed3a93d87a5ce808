// follow(): every event once and in order, over broken and silent connections.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Intray } from '../../../kits/typescript/src/intray.ts'
import { startTestApp } from '../../support/app.ts'
import { drivers } from '../../support/drivers.ts'
import { until, within } from '../../support/until.ts'
import { startProxy } from './proxy.ts'

for (const [what, silenceMs] of [
  ['that break off', 60_000],
  ['that fall silent', 250],
] as const) {
  test(`over connections ${what} it goes on after the last event: none is missing, none comes twice`, async (t) => {
    const app = await startTestApp(t, drivers[0]!)
    const proxy = await startProxy(t, app.url)
    const intray = new Intray({ url: proxy.url, token: await app.createToken({ scope: 'processor' }), outbox: 'none' })
    t.after(() => intray.close())
    const seen: number[] = []
    const stop = new AbortController()
    const following = (async () => {
      for await (const { id } of intray.follow({ after: 0, silenceMs, signal: stop.signal })) seen.push(id)
    })()
    for (let round = 1; round <= 3; round++) {
      for (let n = 0; n < 10; n++) await app.post({})
      await until('all are there', () => seen.length === 10 * round)
      const connections = proxy.arrived.length
      // Silence needs no help: there is no heartbeat for 15 s.
      if (silenceMs > 1000) proxy.cut()
      await until('it has connected again', () => proxy.arrived.length > connections)
    }
    stop.abort()
    await within('the iteration to end', following)
    assert.deepEqual(
      seen,
      Array.from({ length: 30 }, (_, n) => n + 1),
    )
    const resumed = proxy.arrived.map(({ headers }) => Number(headers['last-event-id']))
    assert.equal(resumed[0], 0)
    assert.deepEqual(
      resumed,
      resumed.toSorted((a, b) => a - b),
    )
    assert.equal(resumed.at(-1), 30, 'the last connection began after the last event')
  })
}

test('an error that never ends is given up, and the stream is opened again', async (t) => {
  const app = await startTestApp(t, drivers[0]!)
  const proxy = await startProxy(t, app.url)
  const raw = 'HTTP/1.1 503 Unavailable\r\nContent-Length: 100\r\n\r\n{'
  proxy.fate = (_request, count) => (count === 1 ? { raw, isSilent: true } : 'pass')
  const token = await app.createToken({ scope: 'processor' })
  const intray = new Intray({ url: proxy.url, token, outbox: 'none', requestTimeoutMs: 1000 })
  t.after(() => intray.close())
  await app.post({})
  const next = intray.follow({ after: 0 }).next()
  assert.equal((await within('the event', next)).value?.id, 1)
})

test('without a start it begins with what comes from now on, also if the first connection breaks off', async (t) => {
  const app = await startTestApp(t, drivers[0]!)
  const proxy = await startProxy(t, app.url)
  const intray = new Intray({ url: proxy.url, token: await app.createToken({ scope: 'processor' }), outbox: 'none' })
  t.after(() => intray.close())
  await app.post({})
  await app.indexed()
  const events = intray.follow()
  const next = events.next()
  await until('the first block is there', () => proxy.passedBytes > 0)
  proxy.cut()
  await app.post({})
  assert.equal((await within('the event', next)).value?.id, 2)
  await intray.close()
  assert.equal((await within('the end', events.next())).done, true)
})
