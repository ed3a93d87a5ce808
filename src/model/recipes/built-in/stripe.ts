// Stripe: events of an account, snapshots and thin ones.

import type { BuiltInRecipe } from '../recipe.ts'

const OBJECT = '/data/object'

export const stripe: BuiltInRecipe = {
  name: 'stripe',
  version: '1',
  title: 'Stripe',
  bodies: ['json'],
  signature: {
    kind: 'hmac',
    algorithm: 'sha256',
    encoding: 'hex',
    signature: { in: ['{header:stripe-signature}'], separator: ',', prefix: 'v1=' },
    timestamp: { in: ['{header:stripe-signature}'], separator: ',', prefix: 't=', toleranceS: 300 },
    signs: ['{timestamp}.{body}'],
    secret: 'text',
  },
  sourceRef: ['stripe:{/id}'],
  channelRef: [`stripe:{${OBJECT}/customer}`, `stripe:{${OBJECT}/id}`, 'stripe:{/related_object/id}'],
  batch: [],
  index: {
    contactName: [
      `{${OBJECT}/customer_details/name}`,
      `{${OBJECT}/billing_details/name}`,
      `{${OBJECT}/customer_name}`,
      `{${OBJECT}/shipping/name}`,
      `{${OBJECT}/name}`,
    ],
    contactEmail: [
      `{${OBJECT}/customer_details/email}`,
      `{${OBJECT}/customer_email}`,
      `{${OBJECT}/receipt_email}`,
      `{${OBJECT}/billing_details/email}`,
      `{${OBJECT}/email}`,
    ],
    messageType: ['{/type}'],
    text: [`{${OBJECT}/description}`, `{${OBJECT}/last_payment_error/message}`, `{${OBJECT}/failure_message}`],
  },
  answer: null,
  guide: {
    secret: { from: 'vendor', name: 'Signing secret of the endpoint (whsec_…)' },
    steps: [
      'In the Stripe dashboard, under Developers, Webhooks, add a destination with the address {url}.',
      'Choose the events, then copy the signing secret of the destination into the hook.',
    ],
  },
}
