// A receiver of WhatsApp's webhooks (Cloud API): each message becomes one event, on disk before Meta gets its 200. What this
// program did not keep, Meta sends again, and Intray stores it once.
//
// Environment: INBOX_URL, INBOX_TOKEN, WHATSAPP_APP_SECRET, WHATSAPP_VERIFY_TOKEN, WEBHOOK_OUTBOX [whatsapp-outbox.db], PORT [8000].

import { createHmac, timingSafeEqual } from 'node:crypto'
import type { AddressInfo } from 'node:net'
import express from 'express'
import { Intray } from '@intray/client'

interface WhatsAppMessage {
  readonly id: string
  /** Missing if the person hides the number behind a username. */
  readonly from?: string
  readonly from_user_id?: string
  readonly type: string
  readonly text?: { readonly body: string }
}

interface Change {
  readonly value: {
    readonly metadata: { readonly phone_number_id: string }
    readonly contacts?: readonly { readonly profile?: { readonly name?: string } }[]
    /** Missing in reports of what became of our own messages (`statuses`). */
    readonly messages?: readonly WhatsAppMessage[]
  }
}

const intray = new Intray({
  url: setting('INBOX_URL'),
  token: setting('INBOX_TOKEN'),
  outbox: setting('WEBHOOK_OUTBOX', 'whatsapp-outbox.db'),
})
const appSecret = setting('WHATSAPP_APP_SECRET')
const verifyToken = setting('WHATSAPP_VERIFY_TOKEN')
const app = express().disable('x-powered-by')

/** Meta asks once, when the address of the webhook is entered. */
app.get('/webhook', ({ query }, response) => {
  const isMeta = query['hub.mode'] === 'subscribe' && isSame(String(query['hub.verify_token']), verifyToken)
  if (isMeta) response.type('text/plain').send(String(query['hub.challenge']))
  else response.sendStatus(403)
})

// Meta signs the bytes. Batches of messages reach 3 MB.
app.post('/webhook', express.raw({ type: () => true, inflate: false, limit: '4mb' }), async (request, response) => {
  const bytes = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0)
  const signature = `sha256=${createHmac('sha256', appSecret).update(bytes).digest('hex')}`
  if (!isSame(request.get('X-Hub-Signature-256') ?? '', signature)) {
    response.sendStatus(401)
    return
  }
  const { entry = [] } = JSON.parse(bytes.toString()) as { entry?: readonly { readonly changes: readonly Change[] }[] }
  for (const { value } of entry.flatMap(({ changes }) => changes)) {
    // If this throws, Express answers 500, and Meta tries again.
    for (const message of value.messages ?? []) await intray.send(eventOf(message, value))
  }
  response.sendStatus(200)
})

function eventOf(message: WhatsAppMessage, { metadata, contacts }: Change['value']) {
  const person = message.from ?? message.from_user_id
  return {
    source_ref: `whatsapp:${message.id}`,
    channel_ref: person === undefined ? null : `whatsapp:${metadata.phone_number_id}:${person}`,
    contact: { name: contacts?.[0]?.profile?.name ?? '' },
    // Pictures, buttons and the rest are in `meta`, as Meta sent them.
    message: { type: message.type, text: message.text?.body ?? '' },
    meta: { whatsapp: message },
  }
}

function isSame(given: string, right: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(right)]
  return a.length === b.length && timingSafeEqual(a, b)
}

function setting(name: string, otherwise = ''): string {
  const value = process.env[name] || otherwise
  if (value === '') throw new Error(`Set ${name}.`)
  return value
}

const server = app.listen(Number(setting('PORT', '8000')), '127.0.0.1', (error) => {
  if (error) throw error
  console.log(`listening on http://127.0.0.1:${(server.address() as AddressInfo).port}/webhook`)
})
// What is not sent by then waits on disk for the next start.
process.once('SIGTERM', () => server.close(() => void intray.close()))
