// Samples of shopify requests: shaped as the documentation of the sender shows, with data that is made up.

import { type HookSample, JSON_TYPE } from './sample.ts'

const headers = (topic: string, id: string) => ({
  'X-Shopify-Topic': topic,
  'X-Shopify-Shop-Domain': 'gears.myshopify.test',
  'X-Shopify-Webhook-Id': id,
})

export const shopifySamples: readonly HookSample[] = [
  {
    title: 'an order, with ids beyond 2^53',
    contentType: JSON_TYPE,
    headers: headers('orders/create', 'b54557e4-bdd9-4b37-8a5f-bf7d70bcd043'),
    body: `{"id":820982911946154508,"admin_graphql_api_id":"gid://shopify/Order/820982911946154508","name":"#1001",
      "email":"ada@shop.test","note":"Leave at the door","customer":{"id":115310627314723954,"first_name":"Ada","last_name":"Lovelace"}}`,
    sourceRef: 'shopify:b54557e4-bdd9-4b37-8a5f-bf7d70bcd043',
    channelRef: 'shopify:customer:115310627314723954',
    contactName: 'Ada Lovelace',
    contactEmail: 'ada@shop.test',
    messageType: null,
    text: '#1001\nLeave at the door',
  },
  {
    title: 'a customer',
    contentType: JSON_TYPE,
    headers: headers('customers/create', 'b54557e4-bdd9-4b37-8a5f-bf7d70bcd044'),
    body: JSON.stringify({
      id: 7,
      admin_graphql_api_id: 'gid://shopify/Customer/7',
      email: 'grace@shop.test',
      first_name: 'Grace',
      last_name: 'Hopper',
      note: null,
    }),
    sourceRef: 'shopify:b54557e4-bdd9-4b37-8a5f-bf7d70bcd044',
    channelRef: 'shopify:gid://shopify/Customer/7',
    contactName: 'Grace Hopper',
    contactEmail: 'grace@shop.test',
    messageType: null,
    text: null,
  },
  {
    title: 'a product',
    contentType: JSON_TYPE,
    headers: headers('products/update', 'b54557e4-bdd9-4b37-8a5f-bf7d70bcd045'),
    body: JSON.stringify({
      id: 8,
      admin_graphql_api_id: 'gid://shopify/Product/8',
      title: 'Difference wheel',
      vendor: 'Gears',
    }),
    sourceRef: 'shopify:b54557e4-bdd9-4b37-8a5f-bf7d70bcd045',
    channelRef: 'shopify:gid://shopify/Product/8',
    contactName: null,
    contactEmail: null,
    messageType: null,
    text: 'Difference wheel',
  },
]
