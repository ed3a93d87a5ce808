// What is kept of a message beside its bytes: what is not kept when it arrives can never be recovered.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { startTestApp } from '../support/app.ts'
import { TestClock } from '../support/clock.ts'
import { drivers } from '../support/drivers.ts'
import { INTAKE_PATHS, idOf, postTo } from '../support/intake.ts'

const TRACE = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'

for (const driver of drivers) {
  describe(`the record of a message on ${driver.name}`, () => {
    for (const path of INTAKE_PATHS) {
      test(`POST ${path}: tenant, token, time, address, references and headers are kept`, async (t) => {
        const clock = new TestClock()
        const app = await startTestApp(t, driver, { clock })
        const answer = await postTo(app, path, '{"source_ref":"s","channel_ref":"c"}', {
          'Content-Type': 'application/json; charset=utf-8',
          'Idempotency-Key': '"k"',
          'User-Agent': 'WordPress/7.1',
          traceparent: TRACE,
        })
        const event = await app.store.events.find(idOf(answer))
        const { id, sha256: _sha256, ...rest } = event!
        assert.equal(id, idOf(answer))
        assert.deepEqual(rest, {
          kind: 'event',
          revises: null,
          accountId: 7,
          companyId: 42,
          receivedAt: clock.now(),
          keyId: app.token.split('_')[1],
          scope: 'cf',
          route: path,
          sourceRef: 's',
          channelRef: 'c',
          idempotencyKey: 'k',
          contentType: 'application/json; charset=utf-8',
          size: 36,
          erasedAt: null,
          origin: 'intake',
          requestId: answer.headers['x-request-id'],
          traceparent: TRACE,
          userAgent: 'WordPress/7.1',
          remoteAddr: '127.0.0.1',
          recipe: null,
        })
      })
    }

    test('a traceparent of another form is not kept', async (t) => {
      const app = await startTestApp(t, driver)
      for (const value of ['nonsense', TRACE.toUpperCase(), `${TRACE}-x`, '']) {
        const answer = await app.post('{}', { traceparent: value })
        assert.equal(answer.status, 200)
        assert.equal((await app.store.events.find(idOf(answer)))?.traceparent, null, value)
      }
    })

    test('a user agent is cut, and a token in it is masked', async (t) => {
      const app = await startTestApp(t, driver)
      const answer = await app.post('{}', { 'User-Agent': `${'x'.repeat(500)} ${app.token}` })
      const userAgent = (await app.store.events.find(idOf(answer)))?.userAgent ?? ''
      assert.ok(userAgent.length <= 512)
      assert.ok(!userAgent.includes(app.token.slice(0, 20)))
    })

    for (const [remoteAddr, kept] of [
      ['truncated', '127.0.0.0'],
      ['off', null],
    ] as const) {
      test(`of the sender's address as much is kept as the setting says: ${remoteAddr}`, async (t) => {
        const app = await startTestApp(t, driver, { settings: { remoteAddr } })
        const answer = await app.post('{}')
        assert.equal((await app.store.events.find(idOf(answer)))?.remoteAddr, kept)
      })
    }

    test('messages with one channel_ref are one conversation of their tenant', async (t) => {
      const app = await startTestApp(t, driver)
      const first = idOf(await app.post({ channel_ref: 'chat:1', contact: { name: 'Ada', email: 'ada@a.test' } }))
      const last = idOf(await app.post({ channel_ref: 'chat:1', message: { type: 'text', text: ' Hello\n you ' } }))
      await app.post({ channel_ref: 'chat:2' })
      const other = await app.createToken({ accountId: 8 })
      await app.post({ channel_ref: 'chat:1' }, { Authorization: `Bearer ${other}` })
      await app.indexed()
      const conversation = await app.store.events.conversation({ accountId: 7, companyId: 42 }, 'chat:1')
      assert.equal(conversation?.id, first)
      assert.equal(conversation?.eventCount, 2)
      assert.equal(conversation?.lastEventId, last)
      assert.equal(conversation?.lastSnippet, 'Hello you')
      assert.deepEqual(conversation?.firstContact, { name: 'Ada', email: 'ada@a.test' })
    })
  })
}
