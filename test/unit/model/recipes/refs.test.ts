import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { describe, test } from 'node:test'
import { MAX_REF_UNITS } from '../../../../src/intake/envelope.ts'
import { parseCustomRecipe } from '../../../../src/hooks/custom-recipe.ts'
import { readHook } from '../../../../src/hooks/hook-reading.ts'
import { headerReader } from '../../../../src/hooks/request.ts'
import { MAX_HOOK_REF_UNITS } from '../../../../src/model/recipes/refs.ts'

function refsOf(recipe: object, body: string, headers: readonly string[] = []) {
  const parsed = parseCustomRecipe(JSON.stringify({ title: 'T', signature: { kind: 'none' }, ...recipe }))
  assert.ok('recipe' in parsed, JSON.stringify(parsed))
  const request = {
    hook: 'H1',
    target: '/',
    header: headerReader(headers),
    contentType: 'application/json',
    payload: Buffer.from(body),
  }
  const outcome = readHook(parsed.recipe, request, { secrets: [], publicUrl: null, now: 0 })
  assert.ok(outcome.kind === 'message', JSON.stringify(outcome))
  return outcome
}

describe('references of a hook', () => {
  test('the first complete template wins', () => {
    const recipe = { source_ref: ['a:{/x/id}', 'b:{header:x-id}', 'c:{/id}', '{sha256}'] }
    assert.equal(refsOf(recipe, '{"x":{"id":1},"id":2}').sourceRef, 'a:1')
    assert.equal(refsOf(recipe, '{"x":{"id":null},"id":2}', ['X-Id', '7']).sourceRef, 'b:7')
    assert.equal(refsOf(recipe, '{"x":[],"id":2}', ['X-Id', ' ']).sourceRef, 'c:2')
    assert.equal(refsOf(recipe, '{"id":""}').sourceRef, hash('sha256', '{"id":""}', 'hex'))
  })

  test('without a complete template there is none, with a warning', () => {
    const { sourceRef, channelRef, warnings } = refsOf({ source_ref: '{/id}' }, '{}')
    assert.deepEqual([sourceRef, channelRef], [null, null])
    assert.deepEqual(warnings, [{ path: '/source_ref', expected: 'a complete template', got: 'none of the recipe' }])
    assert.deepEqual(refsOf({}, '{}').warnings, [], 'a recipe that names none is no reason to warn')
  })

  test('that cannot be stored are replaced by their digest, with a warning: no message is refused for them', () => {
    assert.equal(MAX_HOOK_REF_UNITS, MAX_REF_UNITS)
    const seen = new Set<string>()
    for (const id of ['x'.repeat(513), `${'x'.repeat(512)}y`, 'a\\u0000', '\\ud800', '\\ud801', '\\udc00']) {
      const { sourceRef, warnings } = refsOf({ source_ref: '{/id}' }, `{"id":"${id}"}`)
      assert.match(sourceRef!, /^sha256:[0-9a-f]{64}$/)
      assert.equal(warnings.length, 1)
      assert.equal(warnings[0]!.path, '/source_ref')
      seen.add(sourceRef!)
    }
    assert.equal(seen.size, 6, 'different references have different digests')
    assert.equal(refsOf({ source_ref: '{/id}' }, `{"id":"${'x'.repeat(512)}"}`).sourceRef, 'x'.repeat(512))
  })

  test('values that are alike for longer than is read have different references', () => {
    const refs = ['a', 'b'].map(
      (end) => refsOf({ source_ref: '{/id}' }, `{"id":"${'x'.repeat(200_000)}${end}"}`).sourceRef,
    )
    assert.notEqual(refs[0], refs[1])
  })

  test('a batch is one event: its digest, and no channel', () => {
    const recipe = { source_ref: 'x:{/items/0/id}', channel_ref: 'c:{/items/0/from}', batch: ['/items/1'] }
    const one = refsOf(recipe, '{"items":[{"id":1,"from":2}]}')
    assert.deepEqual([one.sourceRef, one.channelRef, one.isBatch], ['x:1', 'c:2', false])
    const body = '{"items":[{"id":1,"from":2},{"id":3,"from":2}]}'
    const two = refsOf(recipe, body)
    assert.deepEqual([two.sourceRef, two.channelRef, two.isBatch], [hash('sha256', body, 'hex'), null, true])
  })

  test('tell hooks apart that use one recipe, if it says so', () => {
    const { sourceRef, channelRef } = refsOf({ source_ref: 's:{hook}:{/id}', channel_ref: '{hook}' }, '{"id":7}')
    assert.deepEqual([sourceRef, channelRef], ['s:H1:7', 'H1'])
    assert.equal(refsOf({ source_ref: '{hook}:{/id}' }, '{}').sourceRef, null, 'the id alone is no reference')
  })

  test('a place that must exist adds nothing', () => {
    const recipe = { source_ref: ['gone:{/id}{?/deleted}', '{/id}'] }
    assert.equal(refsOf(recipe, '{"id":1,"deleted":{}}').sourceRef, 'gone:1')
    assert.equal(refsOf(recipe, '{"id":1,"deleted":null}').sourceRef, '1')
  })
})
