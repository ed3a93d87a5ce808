// Needs the package @intray/client. On a server only: a token must not reach a browser.
import { Intray } from '@intray/client'

const intray = new Intray({
  url: 'https://inbox.example.org',
  token: 'itr_…',
  outbox: './outbox.db', // messages wait here until the service has them
})

await intray.send({
  source_ref: 'example:typescript:1', // your own id of the message, so that a re-send is stored once
  channel_ref: 'ada@example.org', // one per person or thread
  contact: { name: 'Ada Lovelace', email: 'ada@example.org' },
  message: { type: 'text', text: 'Do you ship to Malta?' },
})

await intray.close() // when the program ends
