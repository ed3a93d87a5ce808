// Samples of standard-webhooks requests: shaped as the documentation of the sender shows, with data that is made up.

import { type HookSample, JSON_TYPE } from './sample.ts'

export const standardWebhooksSamples: readonly HookSample[] = [
  {
    title: 'a contact that was created',
    contentType: JSON_TYPE,
    headers: { 'webhook-id': 'msg_2KWPBgLlAfxdpx2AI54pPJ85f4W' },
    body: JSON.stringify({
      type: 'contact.created',
      timestamp: '2026-11-19T10:00:00Z',
      data: { id: '1f81eb52', first_name: 'Ada', last_name: 'Lovelace', email: 'ada@a.test', message: 'Call me' },
    }),
    sourceRef: 'wh:msg_2KWPBgLlAfxdpx2AI54pPJ85f4W',
    channelRef: null,
    contactName: 'Ada Lovelace',
    contactEmail: 'ada@a.test',
    messageType: 'contact.created',
    text: 'Call me',
  },
  {
    title: 'an event of a sender that has other names in its data',
    contentType: JSON_TYPE,
    headers: { 'webhook-id': 'evt-7' },
    body: JSON.stringify({
      type: 'invoice.paid',
      data: { number: 'R-7', lines: [{ title: 'Oil' }, { title: 'Cards', count: 2 }] },
    }),
    sourceRef: 'wh:evt-7',
    channelRef: null,
    contactName: null,
    contactEmail: null,
    messageType: 'invoice.paid',
    text: 'R-7\nOil\nCards',
  },
  {
    title: 'a body of plain text',
    contentType: 'text/plain; charset=utf-8',
    headers: { 'webhook-id': 'msg_text' },
    body: 'The boiler is at 90 °C',
    sourceRef: 'wh:msg_text',
    channelRef: null,
    contactName: null,
    contactEmail: null,
    messageType: null,
    text: 'The boiler is at 90 °C',
  },
]
