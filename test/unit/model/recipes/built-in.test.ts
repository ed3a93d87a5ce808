// What the built-in recipes read from requests as their vendors send them.

import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { describe, test } from 'node:test'
import { type HookOutcome, HookReading, readHook } from '../../../../src/hooks/hook-reading.ts'
import { MAX_POINTERS } from '../../../../src/model/json/pointer.ts'
import { BUILT_IN_RECIPES, builtInRecipe, newestRecipe } from '../../../../src/model/recipes/built-in.ts'
import { compileRecipe } from '../../../../src/model/recipes/compiled.ts'
import { extractWhole } from '../../../../src/model/recipes/extract-with.ts'
import { type Recipe, recipeRef } from '../../../../src/model/recipes/recipe.ts'
import { contextOf, HOOK_SAMPLES, requestOf, secretFor, signSample } from '../../../support/hook-samples/all.ts'
import { type HookSample, SHA256 } from '../../../support/hook-samples/sample.ts'

const NOW = 1_763_500_000_000

async function requestFor(recipe: Recipe, sample: HookSample) {
  const options = { secret: secretFor(recipe.name), now: NOW, publicUrl: 'https://in.test', target: '/v1/hooks/h' }
  const signed = await signSample(recipe.name, sample, options)
  return { request: requestOf(signed, sample.contentType), context: contextOf(options) }
}

/** What a sample is to give. */
function expected(sample: HookSample, payload: Buffer) {
  return {
    sourceRef: sample.sourceRef === SHA256 ? hash('sha256', payload, 'hex') : sample.sourceRef,
    channelRef: sample.channelRef,
    isBatch: sample.isBatch ?? false,
    contactName: sample.contactName,
    contactEmail: sample.contactEmail,
    messageType: sample.messageType,
    text: sample.text,
  }
}

function found(recipe: Recipe, contentType: string, payload: Buffer, outcome: HookOutcome) {
  assert.equal(outcome.kind, 'message', JSON.stringify(outcome))
  assert.ok(outcome.kind === 'message')
  const { contactName, contactEmail, messageType, text } = extractWhole(recipe, contentType, payload)
  const { sourceRef, channelRef, isBatch } = outcome
  return { sourceRef, channelRef, isBatch, contactName, contactEmail, messageType, text }
}

for (const recipe of BUILT_IN_RECIPES) {
  describe(recipe.name, () => {
    const samples = HOOK_SAMPLES[recipe.name] ?? []

    test('has three samples or more', () => {
      assert.ok(samples.length >= 3, `${samples.length} samples`)
    })

    for (const sample of samples) {
      test(`${sample.title}: references, contact and text`, async () => {
        const { request, context } = await requestFor(recipe, sample)
        const { contentType, payload } = request
        const whole = readHook(recipe, request, context)
        assert.deepEqual(found(recipe, contentType, payload, whole), expected(sample, payload))
        const reading = new HookReading(recipe, request, context)
        for (let turns = 0; !reading.isDone; turns++) {
          reading.run(512)
          assert.ok(turns < 100, 'every turn makes progress')
        }
        assert.deepEqual(reading.outcome, whole, 'in slices')
      })
    }

    test('makes different references of different samples, or none', async () => {
      const refs = await Promise.all(
        samples.map(async (sample) => {
          const { request, context } = await requestFor(recipe, sample)
          const outcome = readHook(recipe, request, context)
          return outcome.kind === 'message' ? outcome.sourceRef : null
        }),
      )
      const alike = new Set(['typeform', 'slack', 'mailgun'])
      const stored = refs.filter((ref) => ref !== null)
      if (!alike.has(recipe.name)) assert.equal(new Set(stored).size, stored.length)
    })
  })
}

test('every recipe is found by its reference, and by its name in its newest version', () => {
  for (const recipe of BUILT_IN_RECIPES) {
    assert.equal(builtInRecipe(recipeRef(recipe)), recipe)
    assert.equal(newestRecipe(recipe.name), recipe)
  }
  assert.equal(builtInRecipe('telegram/0'), null)
  assert.equal(newestRecipe('nothing'), null)
  assert.equal(new Set(BUILT_IN_RECIPES.map(recipeRef)).size, BUILT_IN_RECIPES.length)
})

test('no recipe looks for more places than a custom one may, and its index reads nothing that is not stored', () => {
  for (const recipe of BUILT_IN_RECIPES) {
    const { request, shown, index } = compileRecipe(recipe)
    assert.ok(request.pointers.count + shown.pointers.count <= MAX_POINTERS, recipe.name)
    for (const part of Object.values(index).flat(2)) {
      assert.ok(typeof part === 'string' || !['header', 'hook', 'sha256', 'timestamp'].includes(part.from), recipe.name)
    }
  }
})

test('a guide has placeholders that are known, and a secret exactly if the recipe needs one', () => {
  for (const { name, guide, signature, challenge } of BUILT_IN_RECIPES) {
    assert.equal(guide.secret === null, signature.kind === 'none', name)
    const placeholders: readonly string[] = guide.steps.join(' ').match(/\{[^}]*\}/g) ?? []
    assert.ok(placeholders.includes('{url}'), name)
    for (const placeholder of placeholders) assert.match(placeholder, /^\{(?:url|secret|verify_token)\}$/, name)
    assert.equal(placeholders.includes('{secret}'), guide.secret?.from === 'intray', name)
    assert.equal(placeholders.includes('{verify_token}'), challenge?.kind === 'hub', name)
  }
})

test('two equal enquiries of a form without an id have no reference, and so are two leads', async () => {
  const recipe = newestRecipe('elementor')!
  for (const sample of HOOK_SAMPLES.elementor!) {
    const { request, context } = await requestFor(recipe, sample)
    const outcomes = [readHook(recipe, request, context), readHook(recipe, request, context)]
    for (const outcome of outcomes) assert.ok(outcome.kind === 'message' && outcome.sourceRef === null)
  }
})

test('ids that differ behind the digits of a double give different references', () => {
  const recipe = newestRecipe('telegram')!
  const refs = ['9007199254740992', '9007199254740993'].map((id) => {
    const payload = Buffer.from(`{"update_id":${id}}`)
    const request = requestOf({ target: '/', headers: {}, body: payload }, 'application/json')
    const outcome = readHook({ ...recipe, signature: { kind: 'none' } }, request, {
      secrets: [],
      publicUrl: null,
      now: 0,
    })
    return outcome.kind === 'message' ? outcome.sourceRef : null
  })
  assert.deepEqual(refs, ['tg:hook:9007199254740992', 'tg:hook:9007199254740993'])
})
