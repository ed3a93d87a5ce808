// The example bot as its users run it: webhooks of a vendor in, messages of the service out, also if the service is away meanwhile.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { test } from 'node:test'
import { startTestApp } from '../../support/app.ts'
import { drivers } from '../../support/drivers.ts'
import { ROOT } from '../../support/process.ts'
import { missingPython, PYTHON } from '../../support/python.ts'
import { tempFolder } from '../../support/temp.ts'
import { until, within } from '../../support/until.ts'
import { startProxy } from '../typescript/proxy.ts'
import { pythonEnvironment } from './kit.ts'

const UPDATE = {
  update_id: 5,
  message: {
    message_id: 71,
    from: { id: 9, first_name: 'Ada', last_name: 'Lovelace' },
    chat: { id: -1002003, type: 'supergroup' },
    text: 'Do you ship to Malta? 🙂',
  },
}

test('the Python bot answers when the message is on disk; webhooks that come twice are stored once', {
  skip: missingPython(),
}, async (t) => {
  const app = await startTestApp(t, drivers[0]!)
  const proxy = await startProxy(t, app.url)
  // The first try does not reach the service.
  proxy.fate = (_request, count) => (count === 1 ? { status: 503 } : 'pass')
  const env = {
    INBOX_URL: proxy.url,
    INBOX_TOKEN: app.token,
    BOT_SECRET: 'secret',
    BOT_PORT: '0',
    BOT_OUTBOX: join(tempFolder('bot'), 'outbox.db'),
  }
  const child = spawn(PYTHON, [join(ROOT, 'kits/examples/python-bot/bot.py')], {
    env: pythonEnvironment(env),
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.after(() => child.kill('SIGKILL'))
  let said = ''
  child.stdout.on('data', (chunk: Buffer) => (said += chunk))
  const [, url] = await until('the bot listens', () => /listening on (\S+)/.exec(said))
  const post = async (body: string, secret = 'secret') => {
    const headers = { 'X-Telegram-Bot-Api-Secret-Token': secret }
    return (await fetch(url!, { method: 'POST', headers, body })).status
  }
  assert.equal(await post(JSON.stringify(UPDATE)), 200)
  assert.equal(await post(JSON.stringify(UPDATE)), 200)
  assert.equal(await post(JSON.stringify({ update_id: 6, edited_channel_post: {} })), 200)
  assert.equal(await post(JSON.stringify(UPDATE), 'wrong'), 401)
  for (const body of ['no JSON', 'null', '[]', '{"message":{}}', '{"message":{"chat":7,"message_id":1}}']) {
    assert.equal(await post(body), 400, body)
  }
  // Both copies: the second one is a duplicate for the service.
  await until('all is sent', () => proxy.arrived.length >= 3)
  const closed = once(child, 'close')
  child.kill('SIGTERM')
  assert.deepEqual(await within('the bot to end', closed), [0, null])
  assert.equal(await app.store.events.watermark(), 1)
  const event = (await app.store.events.find(1))!
  assert.deepEqual([event.sourceRef, event.channelRef], ['telegram:-1002003:71', 'telegram:-1002003'])
  const payload = JSON.parse(Buffer.from((await app.store.events.payload(1))!).toString()) as Record<string, unknown>
  assert.deepEqual(payload.contact, { name: 'Ada Lovelace' })
  assert.deepEqual(payload.meta, { update: UPDATE })
})
