import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { MAX_COMMAND_VALUES, MAX_REF_UNITS, parseJsonObject, readEnvelope } from '../../../src/intake/envelope.ts'
import { anyText } from '../../support/text.ts'

const read = (body: string | Uint8Array) => {
  const result = readEnvelope(Buffer.from(body))
  if ('envelope' in result) return [result.envelope.sourceRef, result.envelope.channelRef]
  return result.problem.fields?.map(({ path, code }) => `${path} ${code}`) ?? result.problem.code
}

test('references are taken as they are, decoded', () => {
  assert.deepEqual(read('{"source_ref":"cf:1:2","channel_ref":"\\u0063"}'), ['cf:1:2', 'c'])
  assert.deepEqual(read('{"source_ref":" a "}'), [' a ', null])
})

test('absent, null, empty and blank are all absent', () => {
  for (const value of ['null', '""', '" "', '"\\n\\t"', '"\\u3000\\ufeff"']) {
    assert.deepEqual(read(`{"source_ref":${value},"channel_ref":${value}}`), [null, null], value)
  }
  assert.deepEqual(read('{}'), [null, null])
})

test('a reference from a prototype is none', () => {
  assert.deepEqual(read('{"__proto__":{"source_ref":"x"},"constructor":{"channel_ref":1}}'), [null, null])
})

test('the last of repeated keys counts', () => {
  assert.deepEqual(read('{"source_ref":"a","source_ref":"b"}'), ['b', null])
})

test('each unusable reference is named with its reason, all at once', () => {
  assert.deepEqual(read('{"source_ref":true,"channel_ref":"\\u0000"}'), [
    '/source_ref not_a_string',
    '/channel_ref invalid_character',
  ])
  assert.deepEqual(read(`{"source_ref":"${'x'.repeat(MAX_REF_UNITS + 1)}"}`), ['/source_ref too_long'])
  assert.deepEqual(read('{"channel_ref":"\\ud800"}'), ['/channel_ref invalid_character'])
})

test('an integer counts as its digits as sent', () => {
  assert.deepEqual(read('{"source_ref":7,"channel_ref":-1001234567890123456789}'), ['7', '-1001234567890123456789'])
  assert.deepEqual(read('{"source_ref": 0 ,"channel_ref":0}'), ['0', '0'])
  const longest = '1'.repeat(MAX_REF_UNITS)
  assert.deepEqual(read(`{"source_ref":${longest}}`), [longest, null])
  assert.deepEqual(read(`{"source_ref":${longest}1}`), ['/source_ref too_long'])
})

test('other numbers are no reference', () => {
  for (const number of ['-0', '1.5', '1.0', '1e3', '-1E2', '0.0', '-0.0', '0e0']) {
    assert.deepEqual(read(`{"source_ref":${number}}`), ['/source_ref not_an_integer'], number)
  }
})

test('the longest reference has 512 UTF-16 units', () => {
  assert.equal(MAX_REF_UNITS, 512)
  const longest = '\u{1F600}'.repeat(256)
  assert.deepEqual(read(JSON.stringify({ source_ref: longest })), [longest, null])
  assert.deepEqual(read(JSON.stringify({ source_ref: `${longest}x` })), ['/source_ref too_long'])
})

test('what is not one JSON object in UTF-8 is invalid_json', () => {
  for (const body of [
    '',
    ' ',
    '\ufeff',
    '[]',
    '"a"',
    '1',
    'null',
    'true',
    '{',
    '{}x',
    "{'a':1}",
    Buffer.from([0x7b, 0xff, 0x7d]),
  ]) {
    assert.equal(read(body), 'invalid_json', String(body))
  }
})

test('a byte order mark is passed over', () => {
  assert.deepEqual(read('\ufeff{"source_ref":"a"}'), ['a', null])
})

test('the place of a mistake is told, what stands there is not', () => {
  const result = readEnvelope(Buffer.from('{"password":"hunter2" "x":1}'))
  assert.ok('problem' in result)
  assert.match(result.problem.message ?? '', / at line 1, column 23\./)
  assert.doesNotMatch(result.problem.message ?? '', /hunter2|password/)
})

test('nesting has no limit', () => {
  const deep = `{"a":${'['.repeat(200_000)}${']'.repeat(200_000)},"source_ref":"deep"}`
  assert.deepEqual(read(deep), ['deep', null])
})

test('a command is parsed if it has few values', () => {
  const codeOf = (text: string) => {
    const read = parseJsonObject(Buffer.from(text))
    return 'problem' in read ? read.problem.code : Object.keys(read.body).join()
  }
  assert.equal(codeOf(`\ufeff{"items":[${Array.from({ length: 1000 }, () => '{"id":1}').join()}]}`), 'items')
  // The object counts as one, and one is added for the value that no comma precedes.
  const most = MAX_COMMAND_VALUES - 2
  assert.equal(codeOf(`{"a":${'['.repeat(most)}${']'.repeat(most)}}`), 'a')
  assert.equal(codeOf(`{"a":${'['.repeat(most + 1)}${']'.repeat(most + 1)}}`), 'invalid_json')
  const keys = (count: number) =>
    JSON.stringify(Object.fromEntries(Array.from({ length: count }, (_, n) => [`k${n}`, 1])))
  assert.match(codeOf(keys(MAX_COMMAND_VALUES - 1)), /^k0,/)
  assert.equal(codeOf(keys(MAX_COMMAND_VALUES)), 'invalid_json')
  assert.equal(codeOf('[]'), 'invalid_json')
})

test('any bytes at all get an answer', () => {
  fc.assert(fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => void read(bytes)))
})

test('any JSON object gets an answer, and what is accepted can be stored', () => {
  fc.assert(
    fc.property(fc.oneof(anyText(600), fc.jsonValue()), fc.oneof(anyText(), fc.jsonValue()), (source, channel) => {
      const result = readEnvelope(Buffer.from(JSON.stringify({ source_ref: source, channel_ref: channel })))
      if ('problem' in result) {
        assert.equal(result.problem.code, 'invalid_payload')
        return
      }
      for (const ref of [result.envelope.sourceRef, result.envelope.channelRef]) {
        if (ref === null) continue
        assert.ok(ref.trim() !== '' && ref.length <= 512 && ref.isWellFormed() && !ref.includes('\0'))
      }
    }),
  )
})
