import assert from 'node:assert/strict'
import { test } from 'node:test'
import { explain, explanationLines } from '../../../src/hooks/explanation.ts'
import { headerReader } from '../../../src/hooks/request.ts'
import { newestRecipe } from '../../../src/model/recipes/built-in.ts'
import { contextOf, HOOK_SAMPLES, requestOf, secretFor, signSample } from '../../support/hook-samples/all.ts'

const OPTIONS = { secret: secretFor('github'), now: 0, publicUrl: 'https://in.test', target: '/' }
const recipe = newestRecipe('github')!
const sample = HOOK_SAMPLES.github![1]!
const request = async () => requestOf(await signSample('github', sample, OPTIONS), sample.contentType)

test('an explanation names the verdict of the signature and of each template, and what would be stored', async () => {
  const lines = explanationLines(recipe, explain(recipe, await request(), contextOf(OPTIONS)))
  assert.ok(lines.includes('signature: right'), lines.join('\n'))
  assert.ok(lines.includes('channel_ref     github:{/repository/full_name}#{/issue/number}  (not complete)'))
  assert.ok(
    lines.includes(
      'channel_ref  => github:{/repository/full_name}#{/pull_request/number}  "github:lovelace/engine#13"',
    ),
  )
  assert.ok(
    lines.includes('channel_ref   = github:{/repository/full_name}  "github:lovelace/engine"'),
    'complete, and not used',
  )
  assert.ok(lines.includes('message type: "pull_request.opened"'))
  assert.ok(lines.includes('contact e-mail: (none)'))
})

test('without a secret the signature is not checked, and the rest is explained all the same', async () => {
  const explanation = explain(recipe, await request(), { ...contextOf(OPTIONS), secrets: [] })
  assert.equal(explanation.signature, 'not_checked')
  assert.equal(explanation.outcome.kind, 'message')
  const wrong = explain(recipe, await request(), { ...contextOf(OPTIONS), secrets: ['another'] })
  assert.ok(explanationLines(recipe, wrong).some((line) => /^signature: refused \(wrong_signature\)/.test(line)))
  assert.equal(wrong.outcome.kind, 'message')
})

test('a sample that is no JSON, of another kind, or a challenge is explained', () => {
  const linesFor = (name: string, contentType: string, body: string) => {
    const one = newestRecipe(name)!
    const sent = { hook: 'hook', target: '/', header: headerReader([]), contentType, payload: Buffer.from(body) }
    return explanationLines(one, explain(one, sent, { secrets: [], publicUrl: null, now: 0 })).at(-1)!
  }
  assert.match(linesFor('github', 'application/json', '{\n"a":x}'), /not JSON at line 2, column 5/)
  assert.match(linesFor('github', 'application/json', '{'), /ends too early/)
  assert.match(linesFor('github', 'image/png', '{}'), /takes json, form/)
  assert.match(
    linesFor('slack', 'application/json', '{"type":"url_verification","challenge":"c"}'),
    /a challenge, answered with "c"/,
  )
})
