// Twilio: messages, their status, calls, conversations (forms), and event streams (JSON, an array that may hold several).

import type { BuiltInRecipe } from '../recipe.ts'

export const twilio: BuiltInRecipe = {
  name: 'twilio',
  version: '1',
  title: 'Twilio',
  bodies: ['form', 'json'],
  signature: { kind: 'twilio' },
  sourceRef: [
    // A message has one id, and a request for each status or change.
    'twilio:{form:MessageSid}:{form:EventType}',
    'twilio:{form:MessageSid}:{form:MessageStatus}',
    'twilio:{form:MessageSid}',
    'twilio:{header:i-twilio-idempotency-token}',
    'twilio:{form:CallSid}:{form:CallStatus}:{form:SequenceNumber}',
    'twilio:{/0/id}',
    '{sha256}',
  ],
  channelRef: [
    'twilio:{form:ConversationSid}',
    // The status of a message that was sent: the person is the receiver.
    'twilio:{form:From}:{form:To}{?form:MessageStatus}',
    'twilio:{form:To}:{form:From}',
  ],
  batch: ['/1'],
  index: {
    contactName: [
      '{form:ProfileName}',
      '{form:CallerName}',
      '{form:To}{?form:MessageStatus}',
      '{form:From}',
      '{form:Author}',
    ],
    contactEmail: [],
    messageType: [
      '{form:EventType}',
      'status.{form:MessageStatus}',
      'call.{form:CallStatus}',
      'message{?form:MessageSid}',
      '{/0/type}',
    ],
    text: ['{form:Body}', '{form:SpeechResult}', '{form:TranscriptionText}', '{form:Digits}', '{strings:/0/data}'],
  },
  // TwiML without a verb: nothing is sent back, a call ends.
  answer: { contentType: 'text/xml', body: '<?xml version="1.0" encoding="UTF-8"?><Response/>' },
  guide: {
    secret: { from: 'vendor', name: 'Primary auth token' },
    steps: [
      'Set INTRAY_PUBLIC_URL to the address that Twilio calls: it is part of what Twilio signs.',
      'In the Twilio console, copy the primary auth token (Account, API keys & tokens) into the hook.',
      'Paste {url} where the number, sender or service has its webhook for incoming messages, with the method POST.',
    ],
  },
}
