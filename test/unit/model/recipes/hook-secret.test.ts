import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { test } from 'node:test'
import { MAX_SECRET_UNITS, secretProblem } from '../../../../src/model/recipes/hook-secret.ts'
import { readHook } from '../../../../src/hooks/hook-reading.ts'
import { BUILT_IN_RECIPES, newestRecipe } from '../../../../src/model/recipes/built-in.ts'
import { requestOf, secretFor } from '../../../support/hook-samples/all.ts'

test('a secret that cannot be used is refused, without repeating it', () => {
  const rule = (name: string) => newestRecipe(name)!.signature
  for (const { name, signature } of BUILT_IN_RECIPES) {
    if (signature.kind === 'none') assert.match(secretProblem(signature, 'anything-long')!, /has no secret/)
    else if (signature.kind !== 'header') assert.equal(secretProblem(signature, secretFor(name)), null, name)
  }
  assert.equal(secretProblem(rule('telegram'), 'A-Za-z0-9_-'), null)
  assert.match(secretProblem(rule('telegram'), 'two words')!, /header cannot hold/)
  const cases: readonly (readonly [name: string, secret: string, message: RegExp])[] = [
    ['github', 'canary ', /white space/],
    ['github', '', /fewer than 8/],
    ['github', 'canary7', /fewer than 8/],
    ['github', 'canary'.repeat(200), /more than 1024/],
    ['standard-webhooks', 'whsec_canary!!', /not base64/],
    ['standard-webhooks', 'whsec_Y2FuYXJ5', /fewer than 16 bytes/],
    ['standard-webhooks', 'whsec_', /fewer than 8/],
  ]
  for (const [name, secret, message] of cases) {
    const problem = secretProblem(rule(name), secret)!
    assert.match(problem, message)
    assert.doesNotMatch(problem, /canary|Y2Fu/)
  }
  assert.equal(secretProblem(rule('github'), 'x'.repeat(MAX_SECRET_UNITS)), null)
})

test('a secret without bytes lets nobody in', () => {
  const body = Buffer.from('{}')
  const context = { secrets: [''], publicUrl: 'https://in.test', now: 0 }
  const kindOf = (name: string, headers: Record<string, string>, secrets = context.secrets) =>
    readHook(newestRecipe(name)!, requestOf({ target: '/', headers, body }, 'application/json'), {
      ...context,
      secrets,
    }).kind
  const emptyKey = createHmac('sha256', '').update(body).digest('hex')
  assert.equal(kindOf('github', { 'x-hub-signature-256': `sha256=${emptyKey}` }), 'unauthenticated')
  assert.equal(kindOf('telegram', { 'x-telegram-bot-api-secret-token': '' }), 'unauthenticated')
  const key = createHmac('sha256', '')
    .update(Buffer.concat([Buffer.from('m.0.'), body]))
    .digest('base64')
  const svix = { 'webhook-id': 'm', 'webhook-timestamp': '0', 'webhook-signature': `v1,${key}` }
  assert.equal(kindOf('standard-webhooks', svix, ['whsec_']), 'unauthenticated')
  const form = {
    target: '/',
    headers: { 'x-twilio-signature': createHmac('sha1', '').update('https://in.test/').digest('base64') },
  }
  const outcome = readHook(
    newestRecipe('twilio')!,
    requestOf({ ...form, body: Buffer.alloc(0) }, 'application/x-www-form-urlencoded'),
    context,
  )
  assert.equal(outcome.kind, 'unauthenticated')
})
