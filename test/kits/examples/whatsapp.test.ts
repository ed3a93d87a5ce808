// The receiver of WhatsApp's webhooks, asked as Meta asks: challenged, signed over the bytes, in batches, twice.

import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { join } from 'node:path'
import { test } from 'node:test'
import { startTestApp } from '../../support/app.ts'
import { drivers } from '../../support/drivers.ts'
import { tempFolder } from '../../support/temp.ts'
import { until, within } from '../../support/until.ts'
import { startProxy } from '../typescript/proxy.ts'
import { ask, storedAfter, typescriptExample } from './kit.ts'

const SECRET = 'app-secret'
const sign = (body: string, secret = SECRET) => `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`

const message = (id: string, from: string, text: string) => ({
  from,
  id,
  timestamp: '1800000000',
  type: 'text',
  text: { body: text },
})
const change = (rest: object) => ({
  field: 'messages',
  value: {
    messaging_product: 'whatsapp',
    metadata: { display_phone_number: '35600000', phone_number_id: '11' },
    ...rest,
  },
})
const contacts = [{ profile: { name: 'Ada' }, wa_id: '35699' }]
const FIRST = message('wamid.A==', '35699', 'Do you ship to Malta? 🙂')
const SECOND = message('wamid.B==', '35699', 'And to Gozo?')
const PICTURE = { from_user_id: 'MT.7', id: 'wamid.C==', timestamp: '1800000001', type: 'image', image: { id: '5' } }
const BATCH = JSON.stringify({
  object: 'whatsapp_business_account',
  entry: [
    { id: '1', changes: [change({ contacts, messages: [FIRST, SECOND] })] },
    { id: '2', changes: [change({ contacts, messages: [PICTURE] })] },
  ],
})
const STATUSES = JSON.stringify({
  object: 'whatsapp_business_account',
  entry: [{ id: '1', changes: [change({ statuses: [{ id: 'wamid.Z==', status: 'read', recipient_id: '35699' }] })] }],
})

test('the WhatsApp receiver proves itself to Meta, and answers when each signed message is on disk', async (t) => {
  const app = await startTestApp(t, drivers[0]!)
  const proxy = await startProxy(t, app.url)
  // The first try does not reach the service.
  proxy.fate = (_request, count) => (count === 1 ? { status: 503 } : 'pass')
  const receiver = typescriptExample(t, 'whatsapp/webhook.ts', {
    INBOX_URL: proxy.url,
    INBOX_TOKEN: app.token,
    WHATSAPP_APP_SECRET: SECRET,
    WHATSAPP_VERIFY_TOKEN: 'verify-me',
    WEBHOOK_OUTBOX: join(tempFolder('whatsapp'), 'outbox.db'),
    PORT: '0',
  })
  const url = await receiver.url()
  const challenge = async (token: string) => {
    const query = new URLSearchParams({ 'hub.mode': 'subscribe', 'hub.verify_token': token, 'hub.challenge': '<b>42' })
    const answer = await ask(`${url}?${query}`)
    return [answer.status, answer.headers.get('content-type'), await answer.text()]
  }
  assert.deepEqual(await challenge('verify-me'), [200, 'text/plain; charset=utf-8', '<b>42'])
  assert.deepEqual((await challenge('verify-you'))[0], 403)

  const post = async (body: string, signature: string | null = sign(body)) => {
    const headers = { 'Content-Type': 'application/json', ...(signature && { 'X-Hub-Signature-256': signature }) }
    return (await ask(url, { method: 'POST', headers, body })).status
  }
  assert.equal(await post(BATCH, null), 401)
  assert.equal(await post(BATCH, sign(BATCH, 'other-secret')), 401)
  assert.equal(await post(`${BATCH} `, sign(BATCH)), 401, 'the bytes count, not what they mean')
  assert.equal(await post('', null), 401)
  assert.equal(await post(STATUSES), 200)
  assert.equal(await post(BATCH), 200)
  // Meta did not see the answer.
  assert.equal(await post(BATCH), 200)
  // Three messages, three of them again, and the first try that failed.
  await until('all is sent', () => proxy.arrived.length >= 7)
  assert.equal(await receiver.stop('SIGTERM'), 0)

  const stored = await storedAfter(app, 0)
  assert.deepEqual(stored.map(({ sourceRef, channelRef }) => [sourceRef, channelRef]).toSorted(), [
    ['whatsapp:wamid.A==', 'whatsapp:11:35699'],
    ['whatsapp:wamid.B==', 'whatsapp:11:35699'],
    ['whatsapp:wamid.C==', 'whatsapp:11:MT.7'],
  ])
  const payloads = new Map(stored.map(({ sourceRef, payload }) => [sourceRef, payload]))
  assert.deepEqual(payloads.get('whatsapp:wamid.A=='), {
    source_ref: 'whatsapp:wamid.A==',
    channel_ref: 'whatsapp:11:35699',
    contact: { name: 'Ada' },
    message: { type: 'text', text: 'Do you ship to Malta? 🙂' },
    meta: { whatsapp: FIRST },
  })
  assert.deepEqual(payloads.get('whatsapp:wamid.C==')!.message, { type: 'image', text: '' })
  assert.deepEqual(payloads.get('whatsapp:wamid.C==')!.meta, { whatsapp: PICTURE })
})

test('without its secrets it does not start', async (t) => {
  const receiver = typescriptExample(t, 'whatsapp/webhook.ts', {
    INBOX_URL: 'http://127.0.0.1:1',
    INBOX_TOKEN: 'itr_x',
    WHATSAPP_APP_SECRET: '',
    WHATSAPP_VERIFY_TOKEN: 'verify-me',
    WEBHOOK_OUTBOX: join(tempFolder('whatsapp'), 'outbox.db'),
  })
  assert.equal(await within('it to end', receiver.ended), 1)
  assert.match(receiver.said(), /Set WHATSAPP_APP_SECRET\./)
})
