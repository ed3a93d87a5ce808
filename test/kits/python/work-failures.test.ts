// work() of the Python client: what a stop and a handler's errors do to the attempts of an event, on both databases.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startTestApp } from '../../support/app.ts'
import { drivers } from '../../support/drivers.ts'
import { readerOf } from '../../support/inbox.ts'
import { missingPython } from '../../support/python.ts'
import { PythonKit } from './kit.ts'

const skip = missingPython()

for (const driver of drivers) {
  test(`${driver.name}: stops of Python cost no attempt, an error does, and an unrecoverable one is the last`, {
    skip,
  }, async (t) => {
    const app = await startTestApp(t, driver, { settings: { maxAttempts: '2' } })
    const reader = await readerOf(app)
    const patient = { connect_timeout: 60, request_timeout: 60 }
    const kit = new PythonKit(t, { url: app.url, token: reader.token, outbox: 'none', ...patient })
    await app.post({ channel_ref: 'a' })
    await app.post({ channel_ref: 'a' })
    const dead = async () =>
      ((await reader.json('/v1/inbox/events?state=dead')) as { events: { id: number; last_error: string }[] }).events
    const attempts: string[] = []

    // Without time to finish, the handler's event is given back, and so is the one behind it.
    for (let stops = 0; stops < 5; stops++) {
      kit.handler = (event) => {
        attempts.push(`${event.id}: ${event.attempts}`)
        kit.stop(`stop ${stops}`)
        return new Promise(() => {})
      }
      await kit.call('work', { stop: `stop ${stops}`, stop_s: 0 })
    }
    assert.deepEqual(
      attempts,
      Array.from({ length: 5 }, () => '1: 1'),
    )
    assert.deepEqual(await dead(), [])

    const seen: string[] = []
    kit.handler = (event) => {
      seen.push(`${event.id}: ${event.attempts}`)
      if (event.id === 1) throw new Error('the CRM is down')
      kit.stop('last')
      throw new Error('dead: no such customer')
    }
    await kit.call('work', { stop: 'last', stop_s: 600 })
    assert.deepEqual(seen, ['1: 1', '1: 2', '2: 1'])
    assert.deepEqual(
      (await dead()).map(({ id, last_error }) => [id, last_error]),
      [
        [2, 'Unrecoverable: dead: no such customer'],
        [1, 'RuntimeError: the CRM is down'],
      ],
    )
  })
}
