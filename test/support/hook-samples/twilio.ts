// Samples of twilio requests: shaped as the documentation of the sender shows, with data that is made up.

import { FORM_TYPE, formBody, type HookSample, JSON_TYPE, SHA256 } from './sample.ts'

const account = { AccountSid: 'AC00000000000000000000000000000001', ApiVersion: '2010-04-01' }

export const twilioSamples: readonly HookSample[] = [
  {
    title: 'an incoming message',
    contentType: FORM_TYPE,
    body: formBody({
      ...account,
      MessageSid: 'SM00000000000000000000000000000001',
      From: '+35699123456',
      To: '+35699000111',
      Body: 'Ħello & goodbye = 100% + ünïcode 😀',
      NumMedia: '0',
      SmsStatus: 'received',
    }),
    sourceRef: 'twilio:SM00000000000000000000000000000001',
    channelRef: 'twilio:+35699000111:+35699123456',
    contactName: '+35699123456',
    contactEmail: null,
    messageType: 'message',
    text: 'Ħello & goodbye = 100% + ünïcode 😀',
  },
  {
    title: 'the status of a message that was sent: one id, other statuses',
    contentType: FORM_TYPE,
    body: formBody({
      ...account,
      MessageSid: 'SM00000000000000000000000000000002',
      MessageStatus: 'delivered',
      From: '+35699000111',
      To: '+35699123456',
    }),
    sourceRef: 'twilio:SM00000000000000000000000000000002:delivered',
    channelRef: 'twilio:+35699000111:+35699123456',
    contactName: '+35699123456',
    contactEmail: null,
    messageType: 'status.delivered',
    text: null,
  },
  {
    title: 'a call with speech',
    contentType: FORM_TYPE,
    headers: { 'I-Twilio-Idempotency-Token': 'a1b2c3' },
    body: formBody({
      ...account,
      CallSid: 'CA00000000000000000000000000000001',
      CallStatus: 'in-progress',
      Direction: 'inbound',
      From: '+35699123456',
      To: '+35699000111',
      CallerName: 'LOVELACE ADA',
      SpeechResult: 'I want to speak to a person',
    }),
    sourceRef: 'twilio:a1b2c3',
    channelRef: 'twilio:+35699000111:+35699123456',
    contactName: 'LOVELACE ADA',
    contactEmail: null,
    messageType: 'call.in-progress',
    text: 'I want to speak to a person',
  },
  {
    title: 'an event stream with two events',
    contentType: JSON_TYPE,
    body: JSON.stringify([
      { specversion: '1.0', type: 'com.twilio.messaging.message.sent', id: 'EZ1', data: { messageStatus: 'SENT' } },
      { specversion: '1.0', type: 'com.twilio.messaging.message.sent', id: 'EZ2', data: { messageStatus: 'SENT' } },
    ]),
    sourceRef: SHA256,
    channelRef: null,
    contactName: null,
    contactEmail: null,
    messageType: 'com.twilio.messaging.message.sent',
    text: 'SENT',
    isBatch: true,
  },
]
