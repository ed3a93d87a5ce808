import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { EXTRACT_LIMITS, extract, storable } from '../../../src/model/extract.ts'
import { scanWhole } from '../../../src/model/message-scan.ts'
import { anyText } from '../../support/text.ts'

const of = (body: unknown) => extract(Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)))
const warningsOf = (body: unknown) => of(body).warnings.map(({ path, expected, got }) => `${path} ${expected} ${got}`)

/** What every database can hold. */
function assertStorable(text: string | null, maxUnits: number): void {
  if (text === null) return
  assert.ok(text.length <= maxUnits)
  assert.ok(text.isWellFormed())
  assert.ok(!text.includes('\0'))
}

describe('extraction', () => {
  test('finds the fields that the interface names', () => {
    const found = of({
      contact: { name: 'Ada', email: 'ada@a.test' },
      message: { type: 'text', text: ' Hello,\r\n\t world ' },
      meta: { form_id: 12, page_url: 'https://a.test' },
    })
    assert.deepEqual(found, {
      contactName: 'Ada',
      contactEmail: 'ada@a.test',
      messageType: 'text',
      text: ' Hello,\r\n\t world ',
      snippet: 'Hello, world',
      warnings: [],
    })
  })

  test('takes absent and null for nothing', () => {
    const nothing = {
      contactName: null,
      contactEmail: null,
      messageType: null,
      text: null,
      snippet: null,
      warnings: [],
    }
    assert.deepEqual(of({}), nothing)
    assert.deepEqual(of({ contact: null, message: { text: null }, meta: { form_id: null } }), nothing)
  })

  test('warns of every field of another type, with both types', () => {
    assert.deepEqual(warningsOf({ contact: [], message: 'x', meta: 1 }), [
      '/contact object array',
      '/message object string',
      '/meta object number',
    ])
    assert.deepEqual(warningsOf({ contact: { name: {}, email: false } }).toSorted(), [
      '/contact/email string boolean',
      '/contact/name string object',
    ])
    assert.deepEqual(warningsOf({ meta: { form_id: '12', page_url: [] } }), [
      '/meta/form_id integer string',
      '/meta/page_url string array',
    ])
    assert.deepEqual(warningsOf('{"meta":{"form_id":1.5}}'), ['/meta/form_id integer number'])
  })

  test('takes the last of repeated keys and nothing from a prototype', () => {
    assert.equal(of('{"contact":{"name":"a"},"contact":{"name":"b"}}').contactName, 'b')
    assert.equal(of('{"contact":{"__proto__":{"name":"a"}}}').contactName, null)
    assert.equal(of('{"__proto__":{"contact":{"name":"a"}}}').contactName, null)
  })

  test('of a scan with a limit takes what begins before it, and nothing if that is white space', () => {
    const start = (text: string) => extract(Buffer.from(text), scanWhole(Buffer.from(text), 100))
    const contact = '"contact":{"name":"Ada"}'
    assert.equal(start(`{${contact},"a":[${'1,'.repeat(1000)}1],"message":{"text":"b"}}`).contactName, 'Ada')
    assert.equal(start(`{${contact},"a":[${'1,'.repeat(1000)}1],"message":{"text":"b"}}`).text, null)
    assert.deepEqual(start(`${' '.repeat(1000)}{${contact}}`), of({}))
    assert.equal(of(`${' '.repeat(1000)}{${contact}}`).contactName, 'Ada')
    assert.throws(() => start('{"a":}'), SyntaxError)
  })

  test('passes over a byte order mark', () => {
    assert.equal(of('\ufeff{"contact":{"name":"a"}}').contactName, 'a')
  })

  test('walks nesting of any depth', () => {
    const deep = '['.repeat(200_000) + ']'.repeat(200_000)
    assert.deepEqual(warningsOf(`{"contact":{"name":${deep}},"message":${deep}}`).toSorted(), [
      '/contact/name string array',
      '/message object array',
    ])
  })

  test('cuts every field to its limit', () => {
    const long = '\u{1F600}'.repeat(20_000)
    const found = of({ contact: { name: long, email: long }, message: { type: long, text: long } })
    assert.equal(found.contactName?.length, EXTRACT_LIMITS.name)
    assert.equal(found.contactEmail?.length, EXTRACT_LIMITS.email)
    assert.equal(found.messageType?.length, EXTRACT_LIMITS.type)
    assert.equal(found.snippet?.length, EXTRACT_LIMITS.snippet)
  })

  test('is total: any object comes out as something storable', () => {
    const text = anyText(400)
    const value = fc.oneof(text, fc.jsonValue({ maxDepth: 3 }), fc.constantFrom(null, [], {}, 12, '12', true))
    const object = fc.record(
      {
        source_ref: value,
        contact: fc.oneof(value, fc.record({ name: value, email: value }, { requiredKeys: [] })),
        message: fc.oneof(value, fc.record({ type: value, text: value }, { requiredKeys: [] })),
        meta: fc.oneof(value, fc.record({ form_id: value, page_url: value }, { requiredKeys: [] })),
        __proto__: value,
        constructor: value,
      },
      { requiredKeys: [] },
    )
    fc.assert(
      fc.property(object, (body) => {
        const found = of(body)
        assertStorable(found.contactName, EXTRACT_LIMITS.name)
        assertStorable(found.contactEmail, EXTRACT_LIMITS.email)
        assertStorable(found.messageType, EXTRACT_LIMITS.type)
        assertStorable(found.snippet, EXTRACT_LIMITS.snippet)
        for (const { path, expected, got } of found.warnings) {
          assert.match(path, /^\/(contact|message|meta)(\/(name|email|type|text|form_id|page_url))?$/)
          assert.notEqual(expected, got === 'number' ? 'number' : got)
        }
      }),
      { numRuns: 500 },
    )
  })

  test('is total for any JSON object at all', () => {
    fc.assert(fc.property(fc.dictionary(anyText(8), fc.jsonValue()), (body) => void of(body)))
  })
})

describe('storable text', () => {
  test('has U+FFFD for U+0000 and for lone surrogates', () => {
    assert.equal(storable('a\0b\ud800c\udc00', 100), 'a\ufffdb\ufffdc\ufffd')
    assert.equal(storable('\u{1F600}', 100), '\u{1F600}')
  })

  test('is cut without splitting a pair', () => {
    assert.equal(storable('\u{1F600}\u{1F600}', 3), '\u{1F600}')
    assert.equal(storable('\u{1F600}\u{1F600}', 4), '\u{1F600}\u{1F600}')
    assert.equal(storable('a\u{1F600}', 1), 'a')
    assert.equal(storable('\u{1F600}', 1), '')
  })

  test('is always storable and never longer than asked', () => {
    fc.assert(fc.property(anyText(50), fc.nat({ max: 60 }), (text, max) => assertStorable(storable(text, max), max)))
  })

  test('is the text itself where nothing is wrong with it', () => {
    fc.assert(
      fc.property(anyText(50), (text) => {
        if (text.isWellFormed() && !text.includes('\0')) assert.equal(storable(text, 50), text)
      }),
    )
  })
})
