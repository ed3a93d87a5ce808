// A contact form (Express): the visitor is thanked once the message is on disk, whether Intray is up or not.
//
// Environment: INBOX_URL, INBOX_TOKEN, FORM_OUTBOX [form-outbox.db], PORT [8000].

import { randomUUID } from 'node:crypto'
import type { AddressInfo } from 'node:net'
import express from 'express'
import { Intray } from '@intray/client'

const FORM = `<!doctype html>
<html lang="en"><title>Contact</title>
<form method="post">
  <p><label>Name <input name="name" required maxlength="200"></label></p>
  <p><label>E-mail <input name="email" type="email" required maxlength="200"></label></p>
  <p><label>Message <textarea name="text" required maxlength="10000"></textarea></label></p>
  <p><button>Send</button></p>
</form></html>`

const ADDRESS = /^[^\s@\p{Cc}]{1,64}@[^\s@\p{Cc}]{1,250}$/u

const intray = new Intray({
  url: setting('INBOX_URL'),
  token: setting('INBOX_TOKEN'),
  outbox: setting('FORM_OUTBOX', 'form-outbox.db'),
})
const app = express().disable('x-powered-by')

app.get('/', (_request, response) => {
  response.send(FORM)
})
app.get('/thanks', (_request, response) => {
  response.send('Thank you. We will answer soon.')
})

app.post('/', express.urlencoded({ extended: false, limit: '100kb' }), async (request, response) => {
  const fields = (request.body ?? {}) as Readonly<Record<string, string | string[]>>
  const [name, email, text] = ['name', 'email', 'text'].map((field) => String(fields[field] ?? '').trim())
  if (!text) {
    response.status(422).send('Please write a message.')
    return
  }
  await intray.send({
    // The submission's own id, made once: a visitor may say the same thing twice.
    source_ref: `contact:${randomUUID()}`,
    // One per person. Without a usable address the message stands alone: one that is too long would be refused, and stay here.
    channel_ref: ADDRESS.test(email ?? '') ? email!.toLowerCase() : null,
    contact: { name: name ?? '', email: email ?? '' },
    message: { type: 'text', text },
    meta: { fields },
  })
  // A redirect, so that reloading the page does not send the form again.
  response.redirect(303, '/thanks')
})

const onError: express.ErrorRequestHandler = (error: Error, _request, response, _next) => {
  console.error(error.message)
  response.status('status' in error ? Number(error.status) : 500).send('Your message was not saved. Please try again.')
}
app.use(onError)

function setting(name: string, otherwise = ''): string {
  const value = process.env[name] || otherwise
  if (value === '') throw new Error(`Set ${name}.`)
  return value
}

const server = app.listen(Number(setting('PORT', '8000')), '127.0.0.1', (error) => {
  if (error) throw error
  console.log(`listening on http://127.0.0.1:${(server.address() as AddressInfo).port}/`)
})
// What is not sent by then waits on disk for the next start.
process.once('SIGTERM', () => server.close(() => void intray.close()))
