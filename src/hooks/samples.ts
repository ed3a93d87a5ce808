// A sample request of each built-in recipe, made up: what "send a sample" stores as a test event, to see what a recipe reads.

import type { RecipeRef } from '../model/recipes/recipe.ts'
import { HOOK_STAND_IN, type HookRequest, headerReader } from './request.ts'

export interface HookSample {
  readonly contentType: string
  readonly body: string
  /** Beside Content-Type. */
  readonly headers: Readonly<Record<string, string>>
}

export function sampleOf(ref: RecipeRef): HookSample | null {
  return Object.hasOwn(SAMPLES, ref) ? SAMPLES[ref]! : null
}

/** As it would come in at a hook. */
export function sampleRequest({ contentType, body, headers }: HookSample, path: string): HookRequest {
  const raw = Object.entries({ ...headers, 'content-type': contentType }).flat()
  return { hook: HOOK_STAND_IN, target: path, header: headerReader(raw), contentType, payload: Buffer.from(body) }
}

function json(value: unknown, headers: Readonly<Record<string, string>> = {}): HookSample {
  return { contentType: 'application/json', body: JSON.stringify(value), headers }
}

function form(fields: Readonly<Record<string, string>>): HookSample {
  return { contentType: 'application/x-www-form-urlencoded', body: String(new URLSearchParams(fields)), headers: {} }
}

const ADA = { id: 1815, first_name: 'Ada', last_name: 'Lovelace' }
const SECONDS = 1_800_000_000

const SAMPLES: Readonly<Record<RecipeRef, HookSample>> = {
  'telegram/1': json({
    update_id: 100_001,
    message: { message_id: 7, from: ADA, chat: { ...ADA, type: 'private' }, date: SECONDS, text: 'Is it still there?' },
  }),
  'whatsapp/1': json({
    object: 'whatsapp_business_account',
    entry: [
      {
        id: '1001',
        changes: [
          {
            field: 'messages',
            value: {
              messaging_product: 'whatsapp',
              metadata: { display_phone_number: '15550001111', phone_number_id: '2002' },
              contacts: [{ profile: { name: 'Ada Lovelace' }, wa_id: '15550002222' }],
              messages: [
                {
                  from: '15550002222',
                  id: 'wamid.SAMPLE',
                  timestamp: String(SECONDS),
                  type: 'text',
                  text: { body: 'Is it still there?' },
                },
              ],
            },
          },
        ],
      },
    ],
  }),
  'messenger/1': json({
    object: 'page',
    entry: [
      {
        id: '3003',
        time: SECONDS * 1000,
        messaging: [
          {
            sender: { id: '4004' },
            recipient: { id: '3003' },
            timestamp: SECONDS * 1000,
            message: { mid: 'm_SAMPLE', text: 'Is it still there?' },
          },
        ],
      },
    ],
  }),
  'slack/1': json({
    type: 'event_callback',
    team_id: 'T0SAMPLE',
    event_id: 'Ev0SAMPLE',
    event_time: SECONDS,
    event: {
      type: 'message',
      channel: 'C0SAMPLE',
      user: 'U0SAMPLE',
      text: 'Is it still there?',
      ts: `${SECONDS}.000100`,
    },
  }),
  'stripe/1': json({
    id: 'evt_sample',
    object: 'event',
    type: 'checkout.session.completed',
    created: SECONDS,
    data: {
      object: {
        id: 'cs_sample',
        object: 'checkout.session',
        customer: 'cus_sample',
        customer_details: { email: 'ada@example.com', name: 'Ada Lovelace' },
      },
    },
  }),
  'github/1': json(
    {
      action: 'opened',
      issue: {
        id: 5005,
        number: 12,
        title: 'Is it still there?',
        body: 'It was there yesterday.',
        user: { login: 'ada' },
      },
      repository: { id: 6006, full_name: 'ada/engine' },
      sender: { id: 1815, login: 'ada' },
    },
    { 'x-github-delivery': '11111111-2222-3333-4444-555555555555', 'x-github-event': 'issues' },
  ),
  'standard-webhooks/1': json(
    {
      type: 'contact.created',
      timestamp: '2027-01-15T08:00:00Z',
      data: { id: 'c_1', email: 'ada@example.com', name: 'Ada' },
    },
    { 'webhook-id': 'msg_sample', 'webhook-timestamp': String(SECONDS) },
  ),
  'twilio/1': form({
    MessageSid: 'SMsample',
    AccountSid: 'ACsample',
    From: '+15550002222',
    To: '+15550001111',
    Body: 'Is it still there?',
    NumMedia: '0',
  }),
  'shopify/1': json(
    {
      id: 7007,
      email: 'ada@example.com',
      name: '#1001',
      customer: { id: 1815, first_name: 'Ada', last_name: 'Lovelace', email: 'ada@example.com' },
    },
    {
      'x-shopify-webhook-id': '22222222-3333-4444-5555-666666666666',
      'x-shopify-topic': 'orders/create',
      'x-shopify-shop-domain': 'example.myshopify.com',
    },
  ),
  'typeform/1': json({
    event_id: 'ev_sample',
    event_type: 'form_response',
    form_response: {
      form_id: 'f_sample',
      token: 't_sample',
      submitted_at: '2027-01-15T08:00:00Z',
      answers: [
        { type: 'email', email: 'ada@example.com', field: { id: '1', type: 'email' } },
        { type: 'text', text: 'Is it still there?', field: { id: '2', type: 'long_text' } },
      ],
    },
  }),
  'elementor/1': form({ name: 'Ada Lovelace', email: 'ada@example.com', message: 'Is it still there?' }),
  'gravity-forms/1': json({
    id: '8008',
    form_id: '3',
    date_created: '2027-01-15 08:00:00',
    1: 'Ada Lovelace',
    2: 'ada@example.com',
    3: 'Is it still there?',
  }),
  'mailgun/1': form({
    recipient: 'in@example.org',
    sender: 'ada@example.com',
    from: 'Ada Lovelace <ada@example.com>',
    subject: 'Is it still there?',
    'body-plain': 'It was there yesterday.',
    'Message-Id': '<sample@example.com>',
    timestamp: String(SECONDS),
  }),
}
