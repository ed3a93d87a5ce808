// Samples of stripe requests: shaped as the documentation of the sender shows, with data that is made up.

import { type HookSample, JSON_TYPE } from './sample.ts'

const eventBody = (id: string, type: string, object: object): string =>
  JSON.stringify(
    { id, object: 'event', api_version: '2026-09-30', created: 1_763_500_000, data: { object }, livemode: false, type },
    null,
    2,
  )
const TYPE = 'application/json; charset=utf-8'

export const stripeSamples: readonly HookSample[] = [
  {
    title: 'a checkout that was paid, with a customer',
    contentType: TYPE,
    body: eventBody('evt_1QaBcD', 'checkout.session.completed', {
      id: 'cs_test_a1',
      object: 'checkout.session',
      customer: 'cus_Nff',
      customer_details: { email: 'ada@shop.test', name: 'Ada Lovelace' },
      amount_total: 4200,
    }),
    sourceRef: 'stripe:evt_1QaBcD',
    channelRef: 'stripe:cus_Nff',
    contactName: 'Ada Lovelace',
    contactEmail: 'ada@shop.test',
    messageType: 'checkout.session.completed',
    text: null,
  },
  {
    title: 'a payment that failed, of a guest',
    contentType: TYPE,
    body: eventBody('evt_2', 'payment_intent.payment_failed', {
      id: 'pi_3',
      object: 'payment_intent',
      customer: null,
      receipt_email: 'guest@shop.test',
      description: 'Order 1009',
      last_payment_error: { message: 'Your card was declined.' },
    }),
    sourceRef: 'stripe:evt_2',
    channelRef: 'stripe:pi_3',
    contactName: null,
    contactEmail: 'guest@shop.test',
    messageType: 'payment_intent.payment_failed',
    text: 'Order 1009',
  },
  {
    title: 'a thin event',
    contentType: JSON_TYPE,
    body: JSON.stringify({
      id: 'evt_test_65R',
      object: 'v2.core.event',
      type: 'v2.core.account.updated',
      created: '2026-11-19T10:00:00.000Z',
      related_object: { id: 'acct_1', type: 'v2.core.account', url: '/v2/core/accounts/acct_1' },
    }),
    sourceRef: 'stripe:evt_test_65R',
    channelRef: 'stripe:acct_1',
    contactName: null,
    contactEmail: null,
    messageType: 'v2.core.account.updated',
    text: null,
  },
]
