// Mailgun: incoming e-mail of a route (a form, multipart with attachments), and events (JSON). The signature is in the body, and covers
// no more of it than a time and a token.

import type { BuiltInRecipe } from '../recipe.ts'

const EVENT = '/event-data'

export const mailgun: BuiltInRecipe = {
  name: 'mailgun',
  version: '1',
  title: 'Mailgun',
  bodies: ['form', 'multipart', 'json'],
  signature: {
    kind: 'hmac',
    algorithm: 'sha256',
    encoding: 'hex',
    signature: { in: ['{/signature/signature}', '{form:signature}'] },
    // Mailgun tries for eight hours.
    timestamp: { in: ['{/signature/timestamp}', '{form:timestamp}'], toleranceS: 9 * 3600 },
    signs: ['{/signature/timestamp}{/signature/token}', '{form:timestamp}{form:token}'],
    secret: 'text',
  },
  // One e-mail to two recipients comes twice.
  sourceRef: [`mailgun:{${EVENT}/id}`, 'mailgun:{form:recipient}:{form:Message-Id}', 'mailgun:{form:token}'],
  channelRef: ['mailgun:{form:recipient}:{form:sender}', `mailgun:{${EVENT}/recipient}`],
  batch: [],
  index: {
    contactName: ['{form:from}', '{form:sender}'],
    contactEmail: ['{form:sender}', `{${EVENT}/recipient}`],
    messageType: [`{${EVENT}/event}`, 'email{?form:sender}'],
    text: [
      '{form:subject}\n{form:stripped-text}',
      '{form:subject}\n{form:body-plain}',
      '{form:stripped-text}',
      '{form:subject}',
      `{${EVENT}/message/headers/subject}`,
      `{${EVENT}/delivery-status/message}`,
    ],
  },
  answer: null,
  guide: {
    secret: { from: 'vendor', name: 'HTTP webhook signing key' },
    steps: [
      'In Mailgun, copy the HTTP webhook signing key (Settings, API security) into the hook.',
      'For incoming e-mail, create a route with forward("{url}"); for events, add the address under Webhooks.',
    ],
  },
}
