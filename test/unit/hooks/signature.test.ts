// Signatures: what the vendors' own packages sign is accepted, what they refuse is refused, and a verdict repeats nothing secret.

import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { describe, test } from 'node:test'
import { verify as verifyGithub } from '@octokit/webhooks-methods'
import { verifySlackRequest } from '@slack/bolt'
import { Webhook } from 'standardwebhooks'
import Stripe from 'stripe'
import twilio from 'twilio'
import { readHook } from '../../../src/hooks/hook-reading.ts'
import type { HookRequest } from '../../../src/hooks/request.ts'
import type { SignatureContext, SignatureVerdict } from '../../../src/hooks/signature-verdict.ts'
import { checkSignature } from '../../../src/hooks/signature.ts'
import { MAX_SIGNED_FIELDS, MAX_SIGNED_FORM_BYTES } from '../../../src/hooks/twilio-check.ts'
import { bodyKindOf } from '../../../src/model/recipes/body-kind.ts'
import { BodyReader } from '../../../src/model/recipes/body-reader.ts'
import { BUILT_IN_RECIPES, newestRecipe } from '../../../src/model/recipes/built-in.ts'
import { compileRecipe } from '../../../src/model/recipes/compiled.ts'
import type { Recipe } from '../../../src/model/recipes/recipe.ts'
import {
  contextOf,
  HOOK_SAMPLES,
  requestOf,
  secretFor,
  type SignedSample,
  signSample,
} from '../../support/hook-samples/all.ts'
import { FORM_TYPE, formBody, type HookSample } from '../../support/hook-samples/sample.ts'

const NOW = Date.parse('2026-11-19T10:00:00Z')
const PUBLIC_URL = 'https://in.test'
const TARGET = '/v1/hooks/ith_made_up'

function verdictOf(recipe: Recipe, request: HookRequest, context: SignatureContext): SignatureVerdict {
  const compiled = compileRecipe(recipe)
  const { contentType, payload } = request
  const kind = bodyKindOf(contentType, recipe) ?? 'binary'
  const body = new BodyReader({ kind, contentType, payload }, compiled.request)
  while (!body.isDone) body.run(Number.MAX_SAFE_INTEGER)
  const check = checkSignature(compiled, request, body, context)
  for (let turns = 0; !check.isDone; turns++) {
    check.run(100)
    assert.ok(turns < 1000, 'every turn makes progress')
  }
  return check.verdict
}

const optionsFor = (recipe: string) => ({ secret: secretFor(recipe), now: NOW, publicUrl: PUBLIC_URL, target: TARGET })
const sign = (recipe: string, sample: HookSample) => signSample(recipe, sample, optionsFor(recipe))
const faultOf = (verdict: SignatureVerdict) => (verdict.ok ? 'accepted' : verdict.fault)
const header = (signed: SignedSample, name: string) =>
  Object.entries(signed.headers).find(([one]) => one.toLowerCase() === name.toLowerCase())![1]
const wrongSecret = (recipe: string) =>
  recipe === 'standard-webhooks' ? `whsec_${Buffer.alloc(24, 7).toString('base64')}` : 'another secret'

const SIGNED = BUILT_IN_RECIPES.filter(({ signature }) => signature.kind !== 'none')

for (const recipe of SIGNED) {
  describe(recipe.name, () => {
    for (const sample of HOOK_SAMPLES[recipe.name]!) {
      test(`${sample.title}: accepted as signed, refused with another secret`, async () => {
        const signed = await sign(recipe.name, sample)
        const request = requestOf(signed, sample.contentType)
        const context = contextOf(optionsFor(recipe.name))
        assert.deepEqual(verdictOf(recipe, request, context), { ok: true, secret: 0 })
        const wrong = verdictOf(recipe, request, { ...context, secrets: [wrongSecret(recipe.name)] })
        assert.equal(faultOf(wrong), 'wrong_signature')
        assert.equal(faultOf(verdictOf(recipe, request, { ...context, secrets: [] })), 'no_secret')
        const unsigned = requestOf({ ...signed, headers: {}, body: Buffer.from(sample.body) }, sample.contentType)
        assert.equal(faultOf(verdictOf(recipe, unsigned, context)), 'missing_signature')
      })

      test(`${sample.title}: a secret that is being replaced is accepted beside the new one`, async () => {
        const request = requestOf(await sign(recipe.name, sample), sample.contentType)
        const secrets = [wrongSecret(recipe.name), secretFor(recipe.name)]
        assert.deepEqual(verdictOf(recipe, request, { ...contextOf(optionsFor(recipe.name)), secrets }), {
          ok: true,
          secret: 1,
        })
      })

      // Telegram signs nothing, and Mailgun a time and a token alone.
      if (recipe.name === 'telegram' || recipe.name === 'mailgun') continue
      test(`${sample.title}: refused with any byte of the body flipped`, async () => {
        const signed = await sign(recipe.name, sample)
        const context = contextOf(optionsFor(recipe.name))
        const step = Math.max(1, Math.floor(signed.body.length / 40))
        let refused = 0
        for (let at = 0; at < signed.body.length; at += step) {
          const body = Buffer.from(signed.body)
          body[at]! ^= 1
          const verdict = verdictOf(recipe, requestOf({ ...signed, body }, sample.contentType), context)
          assert.equal(faultOf(verdict), 'wrong_signature', `byte ${at}`)
          refused += 1
        }
        assert.ok(refused >= Math.min(20, sample.body.length))
      })
    }

    const { signature } = recipe
    if (signature.kind !== 'hmac' || signature.timestamp === undefined) return
    const toleranceMs = signature.timestamp.toleranceS * 1000
    test(`accepts a time that is ${toleranceMs / 1000} s away and refuses one that is further`, async () => {
      const sample = HOOK_SAMPLES[recipe.name]![0]!
      const request = requestOf(await sign(recipe.name, sample), sample.contentType)
      const at = (now: number) => faultOf(verdictOf(recipe, request, { ...contextOf(optionsFor(recipe.name)), now }))
      assert.equal(at(NOW + toleranceMs), 'accepted')
      assert.equal(at(NOW + toleranceMs + 1000), 'old_timestamp')
      assert.equal(at(NOW - toleranceMs), 'accepted')
      assert.equal(at(NOW - toleranceMs - 1000), 'future_timestamp')
    })
  })
}

describe("what the vendors' packages say", () => {
  test('Stripe: its library accepts what its library signed, and so do we; another version of the scheme does not count', async () => {
    const recipe = newestRecipe('stripe')!
    const secret = secretFor('stripe')
    const context = contextOf(optionsFor('stripe'))
    for (const sample of HOOK_SAMPLES.stripe!) {
      const signed = await sign('stripe', sample)
      const given = header(signed, 'stripe-signature')
      const verify = (headers: string) =>
        Stripe.webhooks.signature!.verifyHeader(signed.body, headers, secret, 300, undefined, NOW)
      const old = given.replace('v1=', 'v0=')
      assert.ok(verify(given))
      assert.throws(() => verify(old))
      const v0 = requestOf({ ...signed, headers: { 'stripe-signature': old } }, sample.contentType)
      assert.equal(faultOf(verdictOf(recipe, v0, context)), 'missing_signature')
      const two = given.replace('v1=', `v1=${'0'.repeat(64)},v1=`)
      assert.ok(
        verdictOf(recipe, requestOf({ ...signed, headers: { 'stripe-signature': two } }, sample.contentType), context)
          .ok,
      )
    }
  })

  test('GitHub: its library verifies what we accept', async () => {
    for (const sample of HOOK_SAMPLES.github!) {
      const signed = await sign('github', sample)
      assert.ok(await verifyGithub(secretFor('github'), sample.body, header(signed, 'x-hub-signature-256')))
      assert.ok(!(await verifyGithub(secretFor('github'), `${sample.body} `, header(signed, 'x-hub-signature-256'))))
    }
  })

  test('Slack: its library verifies what we accept, and refuses what we refuse', async () => {
    for (const sample of HOOK_SAMPLES.slack!) {
      const signed = await sign('slack', sample)
      const verify = (body: string, nowMilliseconds: number) =>
        verifySlackRequest({
          signingSecret: secretFor('slack'),
          body,
          headers: {
            'x-slack-signature': header(signed, 'x-slack-signature'),
            'x-slack-request-timestamp': Number(header(signed, 'x-slack-request-timestamp')),
          },
          nowMilliseconds,
        })
      verify(sample.body, NOW)
      assert.throws(() => verify(`${sample.body} `, NOW))
      assert.throws(() => verify(sample.body, NOW + 301_000))
    }
  })

  test('Standard Webhooks: several signatures in one header, and the headers of Svix', async () => {
    const recipe = newestRecipe('standard-webhooks')!
    const sample = HOOK_SAMPLES['standard-webhooks']![0]!
    const signed = await sign('standard-webhooks', sample)
    const context = contextOf(optionsFor('standard-webhooks'))
    const given = header(signed, 'webhook-signature')
    const other = new Webhook(wrongSecret('standard-webhooks')).sign('msg', new Date(NOW), sample.body)
    const verdictFor = (headers: Record<string, string>) =>
      faultOf(verdictOf(recipe, requestOf({ ...signed, headers }, sample.contentType), context))
    const more = { ...signed.headers, 'webhook-signature': `v1a,AAAA ${other} ${given}` }
    assert.equal(verdictFor(more), 'accepted')
    assert.equal(verdictFor({ ...more, 'webhook-signature': `v1a,AAAA ${other}` }), 'wrong_signature')
    const svix = Object.fromEntries(
      Object.entries(signed.headers).map(([name, value]) => [name.replace('webhook', 'svix'), value]),
    )
    assert.equal(verdictFor(svix), 'accepted')
    assert.equal(verdictFor({ ...svix, 'webhook-id': 'another' }), 'wrong_signature', 'an id that was not signed')
  })

  test('Twilio: its library validates what we accept; the port may be there or not; a repeated field counts as in its library', async () => {
    const recipe = newestRecipe('twilio')!
    const secret = secretFor('twilio')
    for (const sample of HOOK_SAMPLES.twilio!) {
      const signed = await sign('twilio', sample)
      const signature = header(signed, 'x-twilio-signature')
      const url = PUBLIC_URL + signed.target
      assert.ok(
        sample.contentType === FORM_TYPE
          ? twilio.validateRequest(secret, signature, url, Object.fromEntries(new URLSearchParams(sample.body)))
          : twilio.validateRequestWithBody(secret, signature, url, sample.body),
      )
    }
    const fields = { To: '+1', MediaUrl: ['b', 'a', 'b'] }
    const body = Buffer.from('MediaUrl=b&To=%2B1&MediaUrl=a&MediaUrl=b')
    const urls = [
      'https://in.test',
      'https://in.test:443',
      'https://in.test:8443',
      'http://in.test:80',
      'https://in.test/intray',
    ]
    for (const publicUrl of urls) {
      for (const configured of [publicUrl, `${publicUrl}/`, publicUrl.replace(':443', '').replace(':80', '')]) {
        const signature = twilio.getExpectedTwilioSignature(secret, publicUrl + TARGET, fields)
        const request = requestOf({ target: TARGET, headers: { 'x-twilio-signature': signature }, body }, FORM_TYPE)
        const accepted = verdictOf(recipe, request, { secrets: [secret], now: NOW, publicUrl: configured })
        // :8443 is no usual port: only the address with it fits.
        assert.equal(
          accepted.ok,
          !(publicUrl.includes('8443') && !configured.includes('8443')),
          `${publicUrl} ${configured}`,
        )
      }
    }
  })
})

describe('Twilio', () => {
  const recipe = newestRecipe('twilio')!
  const sample = HOOK_SAMPLES.twilio![0]!

  test('needs the public URL, and refuses another one', async () => {
    const request = requestOf(await sign('twilio', sample), sample.contentType)
    const context = contextOf(optionsFor('twilio'))
    assert.equal(faultOf(verdictOf(recipe, request, { ...context, publicUrl: null })), 'no_public_url')
    assert.equal(faultOf(verdictOf(recipe, request, { ...context, publicUrl: 'https://out.test' })), 'wrong_signature')
    assert.equal(faultOf(verdictOf(recipe, { ...request, target: `${TARGET}x` }, context)), 'wrong_signature')
  })

  test('refuses a form that is larger than Twilio sends', () => {
    const secret = secretFor('twilio')
    const verdictFor = (body: string) => {
      const signature = twilio.getExpectedTwilioSignature(
        secret,
        PUBLIC_URL + TARGET,
        Object.fromEntries(new URLSearchParams(body)),
      )
      const signed = { target: TARGET, headers: { 'x-twilio-signature': signature }, body: Buffer.from(body) }
      return faultOf(verdictOf(recipe, requestOf(signed, FORM_TYPE), contextOf(optionsFor('twilio'))))
    }
    const body = formBody({ Body: 'x'.repeat(MAX_SIGNED_FORM_BYTES - 5) })
    assert.equal(body.length, MAX_SIGNED_FORM_BYTES)
    assert.equal(verdictFor(body), 'accepted')
    assert.equal(verdictFor(`${body}x`), 'too_large')
    const fields = Array.from({ length: MAX_SIGNED_FIELDS }, (_, n) => `f${n}=`).join('&')
    assert.equal(verdictFor(fields), 'accepted')
    assert.equal(verdictFor(`${fields}&g=`), 'too_large')
  })

  test('refuses JSON whose digest is not in the URL', async () => {
    const json = HOOK_SAMPLES.twilio!.find(({ contentType }) => contentType !== FORM_TYPE)!
    const signed = await sign('twilio', json)
    const context = contextOf(optionsFor('twilio'))
    const without = requestOf({ ...signed, target: TARGET }, json.contentType)
    assert.equal(faultOf(verdictOf(recipe, without, context)), 'wrong_signature')
  })
})

describe('every verdict', () => {
  test('of a malformed signature or time says so, and never throws', () => {
    const cases: readonly (readonly [recipe: string, headers: Record<string, string>, fault: string])[] = [
      ['github', { 'x-hub-signature-256': 'sha256=' }, 'malformed_signature'],
      ['github', { 'x-hub-signature-256': `sha1=${'0'.repeat(40)}` }, 'missing_signature'],
      ['github', { 'x-hub-signature-256': `sha256=${'z'.repeat(64)}` }, 'malformed_signature'],
      ['github', { 'x-hub-signature-256': `sha256=${'0'.repeat(63)}` }, 'malformed_signature'],
      ['github', { 'x-hub-signature-256': `sha256=${'0'.repeat(100_000)}` }, 'malformed_signature'],
      ['shopify', { 'x-shopify-hmac-sha256': 'not base64!' }, 'malformed_signature'],
      ['stripe', { 'stripe-signature': `v1=${'0'.repeat(64)}` }, 'missing_timestamp'],
      ['stripe', { 'stripe-signature': `t=,v1=${'0'.repeat(64)}` }, 'missing_timestamp'],
      ['stripe', { 'stripe-signature': `t=-5,v1=${'0'.repeat(64)}` }, 'missing_timestamp'],
      ['stripe', { 'stripe-signature': `t=1e9,v1=${'0'.repeat(64)}` }, 'missing_timestamp'],
      ['stripe', { 'stripe-signature': `${',v1='.repeat(10_000)}` }, 'malformed_signature'],
      [
        'standard-webhooks',
        { 'webhook-signature': `v1,${Buffer.alloc(32).toString('base64')}`, 'webhook-timestamp': String(NOW / 1000) },
        'malformed_signature',
      ],
      ['telegram', { 'x-telegram-bot-api-secret-token': '' }, 'wrong_signature'],
      ['twilio', { 'x-twilio-signature': 'short' }, 'malformed_signature'],
    ]
    for (const [name, headers, fault] of cases) {
      const request = requestOf({ target: TARGET, headers, body: Buffer.from('{}') }, 'application/json')
      const verdict = verdictOf(newestRecipe(name)!, request, contextOf(optionsFor(name)))
      assert.equal(faultOf(verdict), fault, JSON.stringify(headers).slice(0, 100))
    }
  })

  test('repeats no secret, no signature and nothing of the request', async () => {
    let messages = 0
    for (const recipe of SIGNED) {
      const sample = HOOK_SAMPLES[recipe.name]![0]!
      const signed = await sign(recipe.name, sample)
      const body = Buffer.from(signed.body)
      body[0]! ^= 1
      for (const context of [
        { ...contextOf(optionsFor(recipe.name)), secrets: ['canary-of-a-secret'] },
        { ...contextOf(optionsFor(recipe.name)), secrets: ['canary-of-a-secret'], now: NOW + 1e9 },
        { ...contextOf(optionsFor(recipe.name)), secrets: ['canary-of-a-secret'], publicUrl: null },
      ]) {
        const outcome = readHook(recipe, requestOf({ ...signed, body }, sample.contentType), context)
        assert.ok(outcome.kind === 'unauthenticated' || outcome.kind === 'not_json', recipe.name)
        const shown = JSON.stringify(outcome)
        const secrets = [secretFor(recipe.name), 'canary-of-a-secret', ...Object.values(signed.headers)]
        for (const one of secrets) assert.ok(one.length < 8 || !shown.includes(one), `${recipe.name}: ${shown}`)
        messages += 1
      }
    }
    assert.ok(messages > 30)
  })

  test('comes without reading a body that is not signed', () => {
    const recipe = newestRecipe('github')!
    const body = Buffer.from('not json')
    const headers = { 'x-hub-signature-256': `sha256=${createHmac('sha256', 'other').update(body).digest('hex')}` }
    const request = requestOf({ target: TARGET, headers, body }, 'application/json')
    assert.equal(readHook(recipe, request, contextOf(optionsFor('github'))).kind, 'unauthenticated')
    const right = {
      'x-hub-signature-256': `sha256=${createHmac('sha256', secretFor('github')).update(body).digest('hex')}`,
    }
    const signed = requestOf({ target: TARGET, headers: right, body }, 'application/json')
    assert.equal(readHook(recipe, signed, contextOf(optionsFor('github'))).kind, 'not_json')
  })
})
