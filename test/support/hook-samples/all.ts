// All samples by recipe, and requests made of them: signed as the vendor signs, by the vendor's own package where it can.

import { createHmac } from 'node:crypto'
import { sign as signGithub } from '@octokit/webhooks-methods'
import { Webhook } from 'standardwebhooks'
import Stripe from 'stripe'
import twilio from 'twilio'
import type { SignatureContext } from '../../../src/hooks/signature-verdict.ts'
import { headerReader, HOOK_STAND_IN, type HookRequest } from '../../../src/hooks/request.ts'
import { elementorSamples, gravityFormsSamples, mailgunSamples, typeformSamples } from './forms.ts'
import { githubSamples } from './github.ts'
import { messengerSamples, whatsappSamples } from './meta.ts'
import { FORM_TYPE, type HookSample, JSON_TYPE } from './sample.ts'
import { shopifySamples } from './shopify.ts'
import { slackSamples } from './slack.ts'
import { standardWebhooksSamples } from './standard-webhooks.ts'
import { stripeSamples } from './stripe.ts'
import { telegramSamples } from './telegram.ts'
import { twilioSamples } from './twilio.ts'

export const HOOK_SAMPLES: Readonly<Record<string, readonly HookSample[]>> = {
  telegram: telegramSamples,
  whatsapp: whatsappSamples,
  messenger: messengerSamples,
  slack: slackSamples,
  stripe: stripeSamples,
  github: githubSamples,
  'standard-webhooks': standardWebhooksSamples,
  twilio: twilioSamples,
  shopify: shopifySamples,
  typeform: typeformSamples,
  elementor: elementorSamples,
  'gravity-forms': gravityFormsSamples,
  mailgun: mailgunSamples,
}

export interface SigningOptions {
  readonly secret: string
  /** In ms. */
  readonly now: number
  readonly publicUrl: string
  /** Path and query. */
  readonly target: string
}

export interface SignedSample {
  readonly target: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
}

/** A secret of the kind that the vendor has. */
export function secretFor(recipe: string): string {
  return recipe === 'standard-webhooks'
    ? `whsec_${Buffer.from('0123456789abcdef01234567').toString('base64')}`
    : 'q7H-secret of a hook'
}

const hmac = (secret: string, body: string, encoding: 'hex' | 'base64') =>
  createHmac('sha256', secret).update(body).digest(encoding)

type Sign = (sample: HookSample, options: SigningOptions) => Promise<SignedSample>

const withHeaders =
  (
    headersOf: (
      sample: HookSample,
      options: SigningOptions,
    ) => Record<string, string> | Promise<Record<string, string>>,
  ): Sign =>
  async (sample, options) => ({
    target: options.target,
    headers: { ...sample.headers, ...(await headersOf(sample, options)) },
    body: Buffer.from(sample.body),
  })

const signMeta = withHeaders(async ({ body }, { secret }) => ({
  'X-Hub-Signature-256': await signGithub(secret, body),
}))

/** No package of these vendors signs, or none is published: by their documentation. */
const SIGN: Readonly<Record<string, Sign>> = {
  telegram: withHeaders((_sample, { secret }) => ({ 'X-Telegram-Bot-Api-Secret-Token': secret })),
  whatsapp: signMeta,
  messenger: signMeta,
  github: signMeta,
  slack: withHeaders(({ body }, { secret, now }) => {
    const seconds = String(Math.floor(now / 1000))
    return {
      'X-Slack-Request-Timestamp': seconds,
      'X-Slack-Signature': `v0=${hmac(secret, `v0:${seconds}:${body}`, 'hex')}`,
    }
  }),
  stripe: withHeaders(({ body }, { secret, now }) => ({
    'Stripe-Signature': Stripe.webhooks.generateTestHeaderString({
      payload: body,
      secret,
      timestamp: Math.floor(now / 1000),
    }),
  })),
  'standard-webhooks': withHeaders(({ body, headers }, { secret, now }) => ({
    'webhook-timestamp': String(Math.floor(now / 1000)),
    'webhook-signature': new Webhook(secret).sign(headers!['webhook-id']!, new Date(now), body),
  })),
  shopify: withHeaders(({ body }, { secret }) => ({ 'X-Shopify-Hmac-SHA256': hmac(secret, body, 'base64') })),
  typeform: withHeaders(({ body }, { secret }) => ({ 'Typeform-Signature': `sha256=${hmac(secret, body, 'base64')}` })),
  twilio: (sample, { secret, publicUrl, target }) => {
    const isForm = sample.contentType === FORM_TYPE
    const digest = isForm ? '' : `?bodySHA256=${twilio.getExpectedBodyHash(sample.body)}`
    const fields = isForm ? Object.fromEntries(new URLSearchParams(sample.body)) : {}
    const signature = twilio.getExpectedTwilioSignature(secret, publicUrl + target + digest, fields)
    const headers = { ...sample.headers, 'X-Twilio-Signature': signature }
    return Promise.resolve({ target: target + digest, headers, body: Buffer.from(sample.body) })
  },
  mailgun: (sample, { secret, now, target }) => {
    const timestamp = String(Math.floor(now / 1000))
    const token = 'f1b2'.repeat(12)
    const signature = { timestamp, token, signature: hmac(secret, timestamp + token, 'hex') }
    return Promise.resolve({ target, headers: {}, body: Buffer.from(withFields(sample, signature)) })
  },
}

/** In the body's own way. */
function withFields({ contentType, body }: HookSample, fields: Readonly<Record<string, string>>): string {
  if (contentType === JSON_TYPE) return `{"signature":${JSON.stringify(fields)},${body.slice(1)}`
  if (contentType === FORM_TYPE) return `${body}&${new URLSearchParams(fields)}`
  const boundary = body.slice(0, body.indexOf('\r\n'))
  const parts = Object.entries(fields).map(
    ([name, value]) => `${boundary}\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`,
  )
  return parts.join('') + body
}

export function signSample(recipe: string, sample: HookSample, options: SigningOptions): Promise<SignedSample> {
  const sign = SIGN[recipe]
  if (sign) return sign(sample, options)
  return Promise.resolve({ target: options.target, headers: sample.headers ?? {}, body: Buffer.from(sample.body) })
}

/** As the HTTP route has it. */
export function requestOf({ target, headers, body }: SignedSample, contentType: string): HookRequest {
  const header = headerReader(Object.entries(headers).flat())
  return { hook: HOOK_STAND_IN, target, header, contentType, payload: body }
}

export function contextOf({ secret, now, publicUrl }: SigningOptions): SignatureContext {
  return { secrets: [secret], now, publicUrl }
}
