import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { answerGet, MAX_CHALLENGE_UNITS, verifyTokenOf } from '../../../src/hooks/challenge.ts'
import { readHook } from '../../../src/hooks/hook-reading.ts'
import { BUILT_IN_RECIPES, newestRecipe } from '../../../src/model/recipes/built-in.ts'
import { contextOf, requestOf, secretFor, signSample } from '../../support/hook-samples/all.ts'
import { HOOK_SAMPLES } from '../../support/hook-samples/all.ts'

const HOOK = 'ith_0123456789_made-up'

function metaTarget(parameters: Record<string, string>): string {
  return `/v1/hooks/${HOOK}?${new URLSearchParams(parameters)}`
}

describe("Meta's challenge", () => {
  const right = { 'hub.mode': 'subscribe', 'hub.verify_token': verifyTokenOf(HOOK), 'hub.challenge': '1158201444' }

  test('is answered to someone who knows the verify token', () => {
    for (const name of ['whatsapp', 'messenger'])
      assert.deepEqual(answerGet(newestRecipe(name)!, metaTarget(right), HOOK), {
        contentType: 'text/plain',
        body: '1158201444',
      })
  })

  test('is not answered otherwise', () => {
    const recipe = newestRecipe('whatsapp')!
    const wrong = [
      { ...right, 'hub.verify_token': verifyTokenOf(`${HOOK}x`) },
      { ...right, 'hub.verify_token': '' },
      { ...right, 'hub.mode': 'unsubscribe' },
      { ...right, 'hub.challenge': '' },
      { ...right, 'hub.challenge': 'x'.repeat(MAX_CHALLENGE_UNITS + 1) },
    ]
    for (const parameters of wrong) assert.equal(answerGet(recipe, metaTarget(parameters), HOOK), null)
    assert.equal(answerGet(recipe, `/v1/hooks/${HOOK}`, HOOK), null)
    for (const other of BUILT_IN_RECIPES.filter(({ challenge }) => challenge?.kind !== 'hub'))
      assert.equal(answerGet(other, metaTarget(right), HOOK), null, other.name)
  })

  test('a verify token is one of its hook, and says nothing of the hook id', () => {
    assert.match(verifyTokenOf(HOOK), /^[0-9a-f]{32}$/)
    assert.notEqual(verifyTokenOf(HOOK), verifyTokenOf(`${HOOK}x`))
    assert.ok(!verifyTokenOf(HOOK).includes('0123456789'))
  })
})

describe("Slack's challenge", () => {
  const recipe = newestRecipe('slack')!
  const options = {
    secret: secretFor('slack'),
    now: 1_763_500_000_000,
    publicUrl: 'https://in.test',
    target: '/v1/hooks/h',
  }
  const sample = {
    ...HOOK_SAMPLES.slack![0]!,
    body: JSON.stringify({
      token: 't',
      challenge: '3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P',
      type: 'url_verification',
    }),
  }

  test('is answered, and not stored, if it is signed', async () => {
    const request = requestOf(await signSample('slack', sample, options), sample.contentType)
    assert.deepEqual(readHook(recipe, request, contextOf(options)), {
      kind: 'challenge',
      answer: { contentType: 'text/plain', body: '3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P' },
    })
    const wrong = readHook(recipe, request, { ...contextOf(options), secrets: ['another'] })
    assert.equal(wrong.kind, 'unauthenticated')
  })

  test('without a challenge it is a message', async () => {
    const without = { ...sample, body: '{"type":"url_verification"}' }
    const request = requestOf(await signSample('slack', without, options), sample.contentType)
    assert.equal(readHook(recipe, request, contextOf(options)).kind, 'message')
  })
})
