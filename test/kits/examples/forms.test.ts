// The contact forms, filled in as a browser does: Express, and plain PHP on PHP's own server.

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { startBackground } from '../../support/background.ts'
import { runToEnd } from '../../support/command.ts'
import { drivers } from '../../support/drivers.ts'
import { missingPhp } from '../../support/php.ts'
import { ROOT } from '../../support/process.ts'
import { sharedApp } from '../../support/shared-app.ts'
import { tempFolder } from '../../support/temp.ts'
import { until } from '../../support/until.ts'
import { startProxy } from '../typescript/proxy.ts'
import { ask, makeDue, type StoredEvent, storedAfter, typescriptExample } from './kit.ts'

const FIELDS = { name: 'Ada Lovelace', email: 'Ada@example.org', text: 'Do you ship to Malta? 🙂', topic: 'orders' }

/** A visitor submits the form and follows the redirect. */
async function submit(url: string, fields: Record<string, string>): Promise<string> {
  const answer = await ask(url, { method: 'POST', body: new URLSearchParams(fields), redirect: 'manual' })
  assert.equal(answer.status, 303)
  return (await ask(new URL(answer.headers.get('location')!, url))).text()
}

/** No reference can be as long. */
const ODD = { ...FIELDS, email: `${'a'.repeat(600)}@example.org` }

/** Two submissions with the same words are two messages of one conversation. One with an odd address stands alone. */
function assertAllStored([odd, ...stored]: readonly StoredEvent[]): void {
  assert.equal(odd!.channelRef, null)
  assert.deepEqual(odd!.payload.contact, { name: ODD.name, email: ODD.email })
  const refs = stored.map(({ sourceRef }) => sourceRef!)
  assert.equal(new Set(refs).size, 2)
  for (const ref of refs) assert.match(ref, /^contact:[0-9a-f-]{32,36}$/)
  for (const { sourceRef, channelRef, payload } of stored) {
    assert.equal(channelRef, 'ada@example.org')
    assert.deepEqual(payload, {
      source_ref: sourceRef,
      channel_ref: 'ada@example.org',
      contact: { name: 'Ada Lovelace', email: 'Ada@example.org' },
      message: { type: 'text', text: FIELDS.text },
      meta: { fields: FIELDS },
    })
  }
}

describe('a contact form', () => {
  const shared = sharedApp(drivers[0]!)

  test('in Express thanks the visitor while Intray is away; what a kill left behind is sent by the next start', async (t) => {
    const { app } = shared
    const before = await app.store.events.watermark()
    const proxy = await startProxy(t, app.url)
    proxy.fate = () => ({ status: 503 })
    const env = {
      INBOX_URL: proxy.url,
      INBOX_TOKEN: app.token,
      FORM_OUTBOX: join(tempFolder('form'), 'outbox.db'),
      PORT: '0',
    }
    const killed = typescriptExample(t, 'express-form/server.ts', env)
    const url = await killed.url()
    assert.match(await (await ask(url)).text(), /<form method="post">/)
    assert.match(await submit(url, ODD), /Thank you/)
    assert.match(await submit(url, FIELDS), /Thank you/)
    assert.match(await submit(url, FIELDS), /Thank you/)
    const empty = await ask(url, { method: 'POST', body: new URLSearchParams({ name: 'Ada', text: ' ' }) })
    assert.deepEqual([empty.status, await empty.text()], [422, 'Please write a message.'])
    await killed.stop('SIGKILL')
    assert.deepEqual(await storedAfter(app, before), [])

    makeDue(env.FORM_OUTBOX)
    proxy.fate = () => 'pass'
    const next = typescriptExample(t, 'express-form/server.ts', env)
    await until('all are stored', async () => (await storedAfter(app, before)).length === 3)
    assert.equal(await next.stop('SIGTERM'), 0)
    assertAllStored(await storedAfter(app, before))
  })

  test('in Express says so if a message cannot be kept', async (t) => {
    const form = typescriptExample(t, 'express-form/server.ts', {
      INBOX_URL: shared.app.url,
      INBOX_TOKEN: shared.app.token,
      FORM_OUTBOX: join(tempFolder('form'), 'missing', 'outbox.db'),
      PORT: '0',
    })
    const answer = await ask(await form.url(), { method: 'POST', body: new URLSearchParams(FIELDS) })
    assert.deepEqual([answer.status, await answer.text()], [500, 'Your message was not saved. Please try again.'])
  })

  test('in PHP thanks the visitor once the message is in the outbox, and cron sends it', {
    skip: missingPhp(),
  }, async () => {
    const { app } = shared
    const before = await app.store.events.watermark()
    const env = {
      INTRAY_URL: app.url,
      INTRAY_TOKEN: app.token,
      INTRAY_OUTBOX: `sqlite:${join(tempFolder('form'), 'outbox.db')}`,
    }
    const folder = join(ROOT, 'kits/examples/php-form')
    const server = await startBackground(['php', '-S', '127.0.0.1:0', '-t', folder], {
      ready: /Development Server \(http:\S+\) started/,
      env,
    })
    try {
      const url = /\((http:\S+)\)/.exec(server.output())![1]!
      assert.match(await (await ask(url)).text(), /<form method="post">/)
      assert.match(await submit(url, ODD), /Thank you/)
      assert.match(await submit(url, FIELDS), /Thank you/)
      assert.match(await submit(url, FIELDS), /Thank you/)
      const empty = await ask(url, { method: 'POST', body: new URLSearchParams({ name: 'Ada', text: ' ' }) })
      assert.deepEqual([empty.status, await empty.text()], [422, 'Please write a message.'])
    } finally {
      await server.stop()
    }
    assert.deepEqual(await storedAfter(app, before), [], 'this server cannot send after its answer')
    const cron = await runToEnd(['php', join(ROOT, 'kits/php/Intray.php'), 'flush'], env)
    assert.deepEqual([cron.code, cron.stdout.toString()], [0, 'sent 3, refused 0, waiting 0\n'])
    assertAllStored(await storedAfter(app, before))
  })
})
