// Samples of meta requests: shaped as the documentation of the sender shows, with data that is made up.

import { type HookSample, JSON_TYPE, SHA256 } from './sample.ts'

const metadata = { display_phone_number: '35699000111', phone_number_id: '110022003300440' }
const contacts = [{ profile: { name: 'Ada Lovelace' }, wa_id: '35699123456' }]
const textMessage = (id: string, body: string) => ({
  from: '35699123456',
  id,
  timestamp: '1763500000',
  type: 'text',
  text: { body },
})
const whatsappBody = (...values: object[]): string =>
  JSON.stringify({
    object: 'whatsapp_business_account',
    entry: [
      {
        id: '880000000000001',
        changes: values.map((value) => ({
          value: { messaging_product: 'whatsapp', metadata, ...value },
          field: 'messages',
        })),
      },
    ],
  })

export const whatsappSamples: readonly HookSample[] = [
  {
    title: 'a text message',
    contentType: JSON_TYPE,
    body: whatsappBody({ contacts, messages: [textMessage('wamid.HBgLMzU2OTkxMjM0NTY=', 'Is the blue one back?')] }),
    sourceRef: 'wa:wamid.HBgLMzU2OTkxMjM0NTY=',
    channelRef: 'wa:110022003300440:35699123456',
    contactName: 'Ada Lovelace',
    contactEmail: null,
    messageType: 'text',
    text: 'Is the blue one back?',
  },
  {
    title: 'an image with a caption',
    contentType: JSON_TYPE,
    body: whatsappBody({
      contacts,
      messages: [
        {
          from: '35699123456',
          id: 'wamid.IMG1',
          timestamp: '1763500001',
          type: 'image',
          image: { caption: 'Broken here', mime_type: 'image/jpeg', sha256: 'x', id: '77' },
        },
      ],
    }),
    sourceRef: 'wa:wamid.IMG1',
    channelRef: 'wa:110022003300440:35699123456',
    contactName: 'Ada Lovelace',
    contactEmail: null,
    messageType: 'image',
    text: 'Broken here',
  },
  {
    title: 'the status of a message that was sent',
    contentType: JSON_TYPE,
    body: whatsappBody({
      statuses: [{ id: 'wamid.OUT1', status: 'delivered', timestamp: '1763500002', recipient_id: '35699123456' }],
    }),
    sourceRef: 'wa:wamid.OUT1:delivered',
    channelRef: 'wa:110022003300440:35699123456',
    contactName: '35699123456',
    contactEmail: null,
    messageType: 'status.delivered',
    text: null,
  },
  {
    title: 'two messages in one request',
    contentType: JSON_TYPE,
    body: whatsappBody({ contacts, messages: [textMessage('wamid.A', 'one'), textMessage('wamid.B', 'two')] }),
    sourceRef: SHA256,
    channelRef: null,
    contactName: 'Ada Lovelace',
    contactEmail: null,
    messageType: 'text',
    text: 'one',
    isBatch: true,
  },
  {
    title: 'two changes in one request',
    contentType: JSON_TYPE,
    body: whatsappBody(
      { contacts, messages: [textMessage('wamid.C', 'three')] },
      { contacts, messages: [textMessage('wamid.D', 'four')] },
    ),
    sourceRef: SHA256,
    channelRef: null,
    contactName: 'Ada Lovelace',
    contactEmail: null,
    messageType: 'text',
    text: 'three',
    isBatch: true,
  },
]

const messagingBody = (object: string, ...messaging: object[]): string =>
  JSON.stringify({ object, entry: [{ id: '200300', time: 1_763_500_000_123, messaging }] })
const fromAda = { sender: { id: '24001' }, recipient: { id: '200300' }, timestamp: 1_763_500_000_000 }

export const messengerSamples: readonly HookSample[] = [
  {
    title: 'a message to a page',
    contentType: JSON_TYPE,
    body: messagingBody('page', { ...fromAda, message: { mid: 'm_a1', text: 'Open on Sunday?' } }),
    sourceRef: 'page:m_a1',
    channelRef: 'page:200300:24001',
    contactName: '24001',
    contactEmail: null,
    messageType: 'text',
    text: 'Open on Sunday?',
  },
  {
    title: 'an echo of what the page answered, in the same conversation',
    contentType: JSON_TYPE,
    body: messagingBody('page', {
      sender: { id: '200300' },
      recipient: { id: '24001' },
      timestamp: 1,
      message: { mid: 'm_a2', text: 'Yes, from 10', is_echo: true, app_id: 5 },
    }),
    sourceRef: 'page:m_a2',
    channelRef: 'page:200300:24001',
    contactName: '200300',
    contactEmail: null,
    messageType: 'text',
    text: 'Yes, from 10',
  },
  {
    title: 'a message on Instagram that was deleted',
    contentType: JSON_TYPE,
    body: messagingBody('instagram', { ...fromAda, message: { mid: 'ig_1', is_deleted: true } }),
    sourceRef: 'instagram:ig_1:deleted',
    channelRef: 'instagram:200300:24001',
    contactName: '24001',
    contactEmail: null,
    messageType: 'message',
    text: null,
  },
  {
    title: 'a comment on Instagram',
    contentType: JSON_TYPE,
    body: JSON.stringify({
      object: 'instagram',
      entry: [
        {
          id: '200300',
          time: 1_763_500_000,
          changes: [
            {
              field: 'comments',
              value: { id: '1790', from: { id: '24001', username: 'ada' }, text: 'Lovely', media: { id: '9' } },
            },
          ],
        },
      ],
    }),
    sourceRef: SHA256,
    channelRef: 'instagram:200300:24001',
    contactName: 'ada',
    contactEmail: null,
    messageType: 'comments',
    text: 'Lovely',
  },
  {
    title: 'two entries in one request',
    contentType: JSON_TYPE,
    body: JSON.stringify({
      object: 'page',
      entry: [
        { id: '200300', time: 1, messaging: [{ ...fromAda, message: { mid: 'm_b1', text: 'a' } }] },
        { id: '200301', time: 1, messaging: [{ ...fromAda, message: { mid: 'm_b2', text: 'b' } }] },
      ],
    }),
    sourceRef: SHA256,
    channelRef: null,
    contactName: '24001',
    contactEmail: null,
    messageType: 'text',
    text: 'a',
    isBatch: true,
  },
]
