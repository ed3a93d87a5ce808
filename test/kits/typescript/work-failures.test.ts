// work(): what a stop and a handler's errors do to the attempts of an event, on both databases.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Intray, Unrecoverable } from '../../../kits/typescript/src/intray.ts'
import { startTestApp } from '../../support/app.ts'
import { drivers } from '../../support/drivers.ts'
import { readerOf } from '../../support/inbox.ts'
import { within } from '../../support/until.ts'

for (const driver of drivers) {
  test(`${driver.name}: stops cost no attempt, an error does, and an unrecoverable one is the last`, async (t) => {
    const app = await startTestApp(t, driver, { settings: { maxAttempts: '2' } })
    const reader = await readerOf(app)
    const intray = new Intray({ url: app.url, token: reader.token, outbox: 'none' })
    t.after(() => intray.close({ timeoutMs: 0 }))
    await app.post({ channel_ref: 'a' })
    await app.post({ channel_ref: 'a' })
    const dead = async () =>
      ((await reader.json('/v1/inbox/events?state=dead')) as { events: { id: number; last_error: string }[] }).events
    const attempts: string[] = []

    // Without time to finish, the handler's event is given back, and so is the one behind it.
    for (let stops = 0; stops < 5; stops++) {
      const stop = new AbortController()
      const handler = (event: { id: number; attempts: number }) => {
        attempts.push(`${event.id}: ${event.attempts}`)
        stop.abort()
        return new Promise(() => {})
      }
      await within('the work to stop', intray.work(handler, { signal: stop.signal, stopMs: 0 }))
    }
    assert.deepEqual(
      attempts,
      Array.from({ length: 5 }, () => '1: 1'),
    )
    assert.deepEqual(await dead(), [])

    const stop = new AbortController()
    const seen: string[] = []
    const failing = (event: { id: number; attempts: number }) => {
      seen.push(`${event.id}: ${event.attempts}`)
      if (event.id === 1) throw new Error('the CRM is down')
      stop.abort()
      throw new Unrecoverable('no such customer')
    }
    await within('the work to stop', intray.work(failing, { signal: stop.signal, stopMs: 600_000 }))
    assert.deepEqual(seen, ['1: 1', '1: 2', '2: 1'])
    assert.deepEqual(
      (await dead()).map(({ id, last_error }) => [id, last_error]),
      [
        [2, 'Unrecoverable: no such customer'],
        [1, 'Error: the CRM is down'],
      ],
    )
  })
}
