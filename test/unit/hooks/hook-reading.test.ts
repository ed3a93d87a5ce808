// A request is read in slices: whatever a sender sends, one turn of the main thread does little, and the outcome is the same.

import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { describe, test } from 'node:test'
import { HookReading, readHook } from '../../../src/hooks/hook-reading.ts'
import { headerReader } from '../../../src/hooks/request.ts'
import { newestRecipe } from '../../../src/model/recipes/built-in.ts'
import { BODY_KINDS, type Recipe } from '../../../src/model/recipes/recipe.ts'
import { SCANNED_BYTES, SlicedWork } from '../../../src/runtime/sliced-work.ts'

const SECRETS = ['first secret', 'second secret']
const CONTEXT = { secrets: SECRETS, publicUrl: 'https://in.test', now: 0 }

function signedRequest(body: Buffer, contentType = 'application/json') {
  const signature = `sha256=${createHmac('sha256', SECRETS[1]!).update(body).digest('hex')}`
  const headers = ['X-Hub-Signature-256', signature, 'X-GitHub-Delivery', 'd-1']
  return { hook: 'hook', target: '/', header: headerReader(headers), contentType, payload: body }
}

describe('slices', () => {
  const large: Record<string, readonly [contentType: string, body: string]> = {
    'one long string': ['application/json', `{"zen":"${'x'.repeat(3_000_000)}"}`],
    'many brackets': ['application/json', `{"a":${'['.repeat(1_000_000)}${']'.repeat(1_000_000)}}`],
    'many keys': ['application/json', `{${Array.from({ length: 200_000 }, (_, n) => `"k${n}":1`).join()}}`],
    'many fields': ['application/x-www-form-urlencoded', 'a=%41&'.repeat(300_000)],
    'one long field': ['application/x-www-form-urlencoded', `payload=${'%41'.repeat(900_000)}`],
  }
  for (const [title, [contentType, text]] of Object.entries(large)) {
    test(`${title}: no slice does more than it may, but for one field`, () => {
      const recipe = newestRecipe('github')!
      const request = signedRequest(Buffer.from(text), contentType)
      const reading = new HookReading(recipe, request, CONTEXT)
      let [turns, most] = [0, 0]
      for (; !reading.isDone; turns++) most = Math.max(most, reading.run(SCANNED_BYTES.unitsPerSlice))
      const { outcome } = reading
      assert.ok(outcome.kind === 'message', JSON.stringify(outcome))
      assert.equal(outcome.secret, 1)
      assert.equal(outcome.sourceRef, 'github:d-1')
      assert.ok(turns > 50, `${turns} turns`)
      assert.ok(most <= 128 * 1024, `${most} in one turn`)
    })
  }

  test('the work ends among the work of others', async () => {
    const work = new SlicedWork(SCANNED_BYTES)
    const recipe = newestRecipe('github')!
    const readings = Array.from(
      { length: 5 },
      (_, n) => new HookReading(recipe, signedRequest(Buffer.from(`{"zen":"${'x'.repeat(200_000 * n)}"}`)), CONTEXT),
    )
    for (const waiting of readings.map((reading, n) => work.finish(`tenant ${n % 2}`, reading)))
      if (waiting) await waiting
    for (const { outcome } of readings) assert.equal(outcome.kind, 'message')
  })
})

describe('bodies', () => {
  const recipe: Recipe = {
    name: 'custom',
    version: 'test',
    title: 'Test',
    bodies: BODY_KINDS,
    signature: { kind: 'none' },
    sourceRef: ['x:{/id}', 'y:{form:id}', '{sha256}'],
    channelRef: [],
    batch: [],
    index: { contactName: [], contactEmail: [], messageType: [], text: [] },
    answer: null,
  }
  const outcomeOf = (contentType: string, body: string, one = recipe) =>
    readHook(one, { hook: 'hook', target: '/', header: () => null, contentType, payload: Buffer.from(body) }, CONTEXT)

  test('of any kind are messages, and only JSON is JSON', () => {
    const bodies: Record<string, readonly [body: string, ref: RegExp, isJson: boolean]> = {
      'application/json': ['{"id":1}', /^x:1$/, true],
      'application/vnd.api+json': ['[{"id":1}]', /^[0-9a-f]{64}$/, true],
      'application/x-www-form-urlencoded': ['id=2', /^y:2$/, false],
      'text/xml': ['<id>3</id>', /^[0-9a-f]{64}$/, false],
      'image/png': ['\u0089PNG', /^[0-9a-f]{64}$/, false],
      '': ['', /^[0-9a-f]{64}$/, false],
    }
    for (const [contentType, [body, ref, isJson]] of Object.entries(bodies)) {
      const outcome = outcomeOf(contentType, body)
      assert.ok(outcome.kind === 'message', contentType)
      assert.match(outcome.sourceRef!, ref)
      assert.equal(outcome.isJson, isJson, contentType)
    }
  })

  test('that the recipe does not take, or that are no JSON, are refused with what to do', () => {
    const outcome = outcomeOf('text/html', '<p>', { ...recipe, bodies: ['json', 'form'] })
    assert.deepEqual(outcome, {
      kind: 'unsupported',
      message: 'The recipe custom takes json, form; the Content-Type says something else.',
    })
    assert.deepEqual(outcomeOf('application/json', '{"id":'), { kind: 'not_json', problem: 'ends_too_early' })
    assert.deepEqual(outcomeOf('application/json', ''), { kind: 'not_json', problem: 'ends_too_early' })
  })

  test('a header that is there twice is a list', () => {
    const header = headerReader(['X-A', '1', 'x-a', '2', 'B', '3'])
    assert.deepEqual([header('x-a'), header('b'), header('c')], ['1, 2', '3', null])
  })
})
