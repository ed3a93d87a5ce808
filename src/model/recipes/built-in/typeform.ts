// Typeform: responses to a form.

import type { BuiltInRecipe } from '../recipe.ts'

const RESPONSE = '/form_response'
/** Questions of a form among which an e-mail address is looked for. */
const QUESTIONS = Array.from({ length: 40 }, (_, n) => n)

export const typeform: BuiltInRecipe = {
  name: 'typeform',
  version: '1',
  title: 'Typeform',
  bodies: ['json'],
  signature: {
    kind: 'hmac',
    algorithm: 'sha256',
    encoding: 'base64',
    signature: { in: ['{header:typeform-signature}'], prefix: 'sha256=' },
    signs: ['{body}'],
    secret: 'text',
  },
  // A response that was sent in part comes again once it is complete, with the same token.
  sourceRef: [`typeform:{/event_type}:{${RESPONSE}/token}`, 'typeform:{/event_id}'],
  channelRef: [],
  batch: [],
  index: {
    contactName: [`{${RESPONSE}/hidden/name}`],
    contactEmail: [...QUESTIONS.map((n) => `{${RESPONSE}/answers/${n}/email}`), `{${RESPONSE}/hidden/email}`],
    messageType: ['{/event_type}'],
    text: [`{strings:${RESPONSE}/answers|text,email,phone_number,url,date,label,labels,other}`],
  },
  answer: null,
  guide: {
    secret: { from: 'intray', name: 'Secret' },
    steps: [
      'In the form, under Connect, Webhooks, add a webhook with the endpoint {url}.',
      'Edit it, paste {secret} as secret, and switch it on.',
    ],
  },
}
