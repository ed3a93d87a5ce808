// Shopify: webhooks of a shop.

import type { BuiltInRecipe } from '../recipe.ts'

export const shopify: BuiltInRecipe = {
  name: 'shopify',
  version: '1',
  title: 'Shopify',
  bodies: ['json'],
  signature: {
    kind: 'hmac',
    algorithm: 'sha256',
    encoding: 'base64',
    signature: { in: ['{header:x-shopify-hmac-sha256}'] },
    signs: ['{body}'],
    secret: 'text',
  },
  sourceRef: ['shopify:{header:x-shopify-webhook-id}'],
  channelRef: ['shopify:customer:{/customer/id}', 'shopify:{/admin_graphql_api_id}'],
  batch: [],
  index: {
    contactName: [
      '{/customer/first_name} {/customer/last_name}',
      '{/billing_address/name}',
      '{/shipping_address/name}',
      '{/first_name} {/last_name}',
      '{/customer/first_name}',
      '{/first_name}',
    ],
    contactEmail: ['{/email}', '{/contact_email}', '{/customer/email}'],
    // The topic is in a header, which is not stored; the id names what it is about.
    messageType: [],
    text: ['{/name}\n{/note}', '{/note}', '{/title}', '{/name}'],
  },
  answer: null,
  guide: {
    secret: { from: 'vendor', name: 'Client secret of the app, or the signing secret of the shop' },
    steps: [
      'In the admin of the shop, under Settings, Notifications, Webhooks, create a webhook in JSON with the address {url}.',
      'Copy the signing secret that is shown there into the hook; of a webhook that an app made, the client secret of the app.',
    ],
  },
}
