// Standard Webhooks (standardwebhooks.com), and Svix, whose headers have other names and the same content.

import type { BuiltInRecipe } from '../recipe.ts'

export const standardWebhooks: BuiltInRecipe = {
  name: 'standard-webhooks',
  version: '1',
  title: 'Standard Webhooks',
  bodies: ['json', 'form', 'xml', 'text'],
  signature: {
    kind: 'hmac',
    algorithm: 'sha256',
    encoding: 'base64',
    signature: { in: ['{header:webhook-signature}', '{header:svix-signature}'], separator: ' ', prefix: 'v1,' },
    timestamp: { in: ['{header:webhook-timestamp}', '{header:svix-timestamp}'], toleranceS: 300 },
    signs: ['{header:webhook-id}.{timestamp}.{body}', '{header:svix-id}.{timestamp}.{body}'],
    secret: 'base64',
    secretPrefix: 'whsec_',
  },
  sourceRef: ['wh:{header:webhook-id}', 'wh:{header:svix-id}'],
  channelRef: [],
  batch: [],
  index: {
    contactName: ['{/data/name}', '{/data/first_name} {/data/last_name}'],
    contactEmail: ['{/data/email}'],
    messageType: ['{/type}'],
    text: ['{/data/text}', '{/data/message}', '{strings:/data}', '{form}', '{body}'],
  },
  answer: null,
  guide: {
    secret: { from: 'vendor', name: 'Signing secret (whsec_…)' },
    steps: [
      'At the sender, add an endpoint with the address {url}.',
      'Copy the signing secret of the endpoint into the hook.',
    ],
  },
}
