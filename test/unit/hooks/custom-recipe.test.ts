import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { MAX_RECIPE_BYTES, parseCustomRecipe } from '../../../src/hooks/custom-recipe.ts'
import { MAX_TEMPLATES } from '../../../src/hooks/recipe-fields.ts'
import { MAX_COLLECTORS, MAX_POINTERS } from '../../../src/model/json/pointer.ts'
import { BUILT_IN_RECIPES } from '../../../src/model/recipes/built-in.ts'
import { customDigest, recipeRef, storedRecipe } from '../../../src/model/recipes/recipe.ts'
import { redactText } from '../../../src/runtime/redact.ts'

const YAML = `
title: Boiler alarms          # comments are welcome
bodies: [json, text]
signature:
  kind: hmac
  algorithm: sha256
  encoding: hex
  signature: { in: '{header:x-boiler-signature}', prefix: 'sha256=' }
  timestamp: { in: ['{header:x-boiler-time}'], tolerance_s: 60 }
  signs: ['{timestamp}.{body}']
source_ref: 'boiler:{/alarm/id}'
channel_ref: ['boiler:{/plant}']
index:
  contact_name: '{/operator}'
  text: ['{/alarm/text}', '{body}']
answer: { content_type: text/plain, body: OK }
`

function recipeOf(text: string) {
  const parsed = parseCustomRecipe(text)
  assert.ok('recipe' in parsed, JSON.stringify(parsed))
  return parsed
}

function problemsOf(file: unknown): string[] {
  const parsed = parseCustomRecipe(typeof file === 'string' ? file : JSON.stringify(file))
  assert.ok('problems' in parsed, 'it was accepted')
  return parsed.problems.map(({ path, message }) => `${path} ${message}`)
}

const GOOD = { title: 'T', signature: { kind: 'none' } }
const HMAC = { kind: 'hmac', algorithm: 'sha256', encoding: 'hex', signature: { in: ['{header:x-s}'] } }

describe('a custom recipe', () => {
  test('does not have a key twice', () => {
    const twice = ' The file has the key "kind" twice in one place.'
    assert.deepEqual(problemsOf('title: T\nsignature: { kind: none, kind: hmac }\n'), [twice])
    assert.deepEqual(problemsOf('{"title":"T","signature":{"kind":"none","kind":"hmac"}}'), [twice])
  })

  test('is read from YAML', () => {
    const { recipe } = recipeOf(YAML)
    assert.deepEqual(recipe, {
      name: 'custom',
      version: recipe.version,
      title: 'Boiler alarms',
      bodies: ['json', 'text'],
      signature: {
        kind: 'hmac',
        algorithm: 'sha256',
        encoding: 'hex',
        signature: { in: ['{header:x-boiler-signature}'], prefix: 'sha256=' },
        timestamp: { in: ['{header:x-boiler-time}'], toleranceS: 60 },
        signs: ['{timestamp}.{body}'],
        secret: 'text',
      },
      sourceRef: ['boiler:{/alarm/id}'],
      channelRef: ['boiler:{/plant}'],
      batch: [],
      index: { contactName: ['{/operator}'], contactEmail: [], messageType: [], text: ['{/alarm/text}', '{body}'] },
      answer: { contentType: 'text/plain', body: 'OK' },
    })
  })

  test('is the same from what is stored, and its digest depends on its meaning alone', () => {
    const { recipe, definition } = recipeOf(YAML)
    assert.match(recipe.version, /^[0-9a-f]{24}$/)
    assert.equal(customDigest(recipeRef(recipe)), recipe.version)
    assert.equal(customDigest('telegram/1'), null)
    assert.deepEqual(storedRecipe(recipe.version, definition), recipe)
    const again = recipeOf(YAML.replace(/ +# .*/, '').replace("'{/operator}'", "['{/operator}']"))
    assert.equal(again.recipe.version, recipe.version)
    assert.notEqual(recipeOf(YAML.replace('60', '61')).recipe.version, recipe.version)
    assert.equal(redactText(recipeRef(recipe)), recipeRef(recipe), 'logs show it')
  })

  test('in JSON may be as small as a title and a signature', () => {
    const { recipe } = recipeOf(JSON.stringify(GOOD))
    assert.deepEqual(recipe.bodies, ['json'])
    assert.deepEqual([recipe.sourceRef, recipe.channelRef, recipe.batch, recipe.answer], [[], [], [], null])
  })

  test('every kind of signature and challenge is read', () => {
    const twilio = recipeOf(
      JSON.stringify({ ...GOOD, signature: { kind: 'twilio' }, challenge: { kind: 'hub' } }),
    ).recipe
    assert.deepEqual([twilio.signature, twilio.challenge], [{ kind: 'twilio' }, { kind: 'hub' }])
    const header = { kind: 'header', header: 'Authorization', prefix: 'Bearer ' }
    const echo = { kind: 'echo', when: '/type', equals: 'check', echo: '/token' }
    const other = recipeOf(JSON.stringify({ ...GOOD, signature: header, challenge: echo })).recipe
    assert.deepEqual([other.signature, other.challenge], [{ ...header, header: 'authorization' }, echo])
    const base64 = { ...HMAC, secret: 'base64', secret_prefix: 'whsec_' }
    const { signature } = recipeOf(JSON.stringify({ ...GOOD, signature: base64 })).recipe
    assert.ok(signature.kind === 'hmac' && signature.secretPrefix === 'whsec_' && signature.signs[0] === '{body}')
  })

  test('says all that is wrong with it, with places', () => {
    const problems = problemsOf({
      titel: 'x',
      bodies: ['json', 'yaml'],
      signature: {
        kind: 'hmac',
        algorithm: 'md5',
        encoding: 'hex',
        signature: { in: ['{body}'], prefx: 'x' },
        timestamp: { in: ['{header:t}'] },
        signs: ['{hook}{body}'],
      },
      source_ref: ['{id}', '{timestamp}', 7],
      channel_ref: { a: 1 },
      batch: ['items/1'],
      index: { text: ['{header:x}', '{hook}'], contact_name: '{/a' },
      answer: { content_type: 'plain', body: 'OK' },
      challenge: { kind: 'ring' },
    })
    const expected = [
      /^\/title It is missing/,
      /^\/bodies Write a list of json, form,/,
      /^\/signature\/algorithm It is unknown\. Write sha256, sha1 or sha512/,
      /^\/signature\/signature\/in\/0 \{body\} cannot stand here/,
      /^\/signature\/signature\/prefx The field is unknown\. Did you mean prefix\?/,
      /^\/signature\/timestamp\/tolerance_s Write a whole number from 1 to 86400/,
      /^\/signature\/signs\/0 \{hook\} cannot stand here/,
      /^\/challenge\/kind It is unknown/,
      /^\/source_ref\/0 \{id\} is no place/,
      /^\/source_ref\/1 \{timestamp\} cannot stand here/,
      /^\/source_ref\/2 It is no text/,
      /^\/channel_ref It is no text/,
      /^\/batch\/0 .* does not begin with a slash/,
      /^\/index\/contact_name The brace at character 1 is not closed/,
      /^\/index\/text\/0 \{header:x\} cannot stand here\. Headers are not stored/,
      /^\/index\/text\/1 \{hook\} cannot stand here\. It stands in source_ref and channel_ref/,
      /^\/answer\/content_type Write a media type/,
      /^\/titel The field is unknown\. Did you mean title\?/,
    ]
    for (const pattern of expected)
      assert.ok(
        problems.some((problem) => pattern.test(problem)),
        `${pattern}: ${problems.join('\n')}`,
      )
    assert.equal(problems.length, expected.length, problems.join('\n'))
  })

  test('a template that YAML reads as an object is explained', () => {
    assert.match(
      problemsOf('title: T\nsignature: {kind: none}\nsource_ref: {/id}\n').join(),
      /\/source_ref It is no text\. Put it in quotes/,
    )
  })

  test('a file that is none is explained: syntax, aliases, depth, size, other values', () => {
    assert.match(problemsOf('title: [')[0]!, /neither JSON nor YAML/)
    assert.match(problemsOf('a: &a [x]\nb: *a')[0]!, /aliases/)
    assert.ok(problemsOf(`a: ${'['.repeat(16_000)}`).length === 1)
    assert.match(problemsOf(`# ${'x'.repeat(MAX_RECIPE_BYTES)}`)[0]!, /more than 16384 bytes/)
    for (const none of ['', '[]', 'text', '7', 'null']) assert.match(problemsOf(none)[0]!, /holds no object/)
  })

  test('limits hold, and what is just below them is accepted', () => {
    const templates = (count: number, prefix: string) => Array.from({ length: count }, (_, n) => `{/${prefix}${n}}`)
    recipeOf(JSON.stringify({ ...GOOD, source_ref: templates(MAX_TEMPLATES, 'a') }))
    assert.match(problemsOf({ ...GOOD, source_ref: templates(MAX_TEMPLATES + 1, 'a') })[0]!, /more than 64 entries/)
    const lists = (more: number) => ({
      ...GOOD,
      source_ref: templates(64, 'a'),
      channel_ref: templates(64, 'b'),
      batch: Array.from({ length: 64 }, (_, n) => `/c${n}`),
      index: { text: templates(63 + more, 'd') },
    })
    recipeOf(JSON.stringify(lists(1)))
    assert.equal(64 * 4, MAX_POINTERS)
    const over = { ...lists(1), index: { text: templates(64, 'd'), contact_name: ['{/e}'] } }
    assert.match(problemsOf(over)[0]!, /more than 256 different JSON Pointers/)
    const collecting = (count: number) => Array.from({ length: count }, (_, n) => `{strings:/a|k${n}}`)
    recipeOf(JSON.stringify({ ...GOOD, source_ref: collecting(MAX_COLLECTORS - 1), index: { text: ['{strings:}'] } }))
    const beyond = { ...GOOD, source_ref: collecting(MAX_COLLECTORS), index: { text: ['{strings:}'] } }
    assert.match(problemsOf(beyond)[0]!, /more than 8 different places {strings:…}/)
    assert.match(problemsOf({ ...GOOD, title: 'x'.repeat(101) })[0]!, /longer than 100/)
    assert.match(
      problemsOf({ ...GOOD, answer: { content_type: 'text/plain', body: 'x'.repeat(4097) } })[0]!,
      /longer than 4096/,
    )
  })

  test('names of the prototype are fields like others', () => {
    assert.match(
      problemsOf('{"title":"T","signature":{"kind":"none"},"__proto__":{"x":1},"constructor":1}').join(),
      /\/constructor The field is unknown/,
    )
  })
})

test('every built-in recipe can be written as a file, with the same meaning', () => {
  for (const { name: _name, version: _version, guide: _guide, ...definition } of BUILT_IN_RECIPES) {
    const { signature, challenge } = definition
    const hmac = signature.kind === 'hmac'
    const { recipe } = recipeOf(
      JSON.stringify({
        title: definition.title,
        bodies: definition.bodies,
        signature: hmac
          ? {
              kind: 'hmac',
              algorithm: signature.algorithm,
              encoding: signature.encoding,
              signature: signature.signature,
              timestamp: signature.timestamp && {
                in: signature.timestamp.in,
                separator: signature.timestamp.separator,
                prefix: signature.timestamp.prefix,
                tolerance_s: signature.timestamp.toleranceS,
              },
              signs: signature.signs,
              secret: signature.secret,
              secret_prefix: signature.secretPrefix,
            }
          : signature,
        challenge,
        source_ref: definition.sourceRef,
        channel_ref: definition.channelRef,
        batch: definition.batch,
        index: {
          contact_name: definition.index.contactName,
          contact_email: definition.index.contactEmail,
          message_type: definition.index.messageType,
          text: definition.index.text,
        },
        answer: definition.answer && { content_type: definition.answer.contentType, body: definition.answer.body },
      }),
    )
    const { name: _custom, version: _digest, ...read } = recipe
    assert.deepEqual(
      { ...read, bodies: read.bodies.toSorted() },
      { ...definition, bodies: definition.bodies.toSorted() },
    )
  }
})
