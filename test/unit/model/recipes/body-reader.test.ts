// Bodies of every kind: forms, parts, XML and text are read as far as a recipe asks, whatever is in them.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { bodyKindOf, mediaParameter } from '../../../../src/model/recipes/body-kind.ts'
import { BodyReader } from '../../../../src/model/recipes/body-reader.ts'
import { bodyText } from '../../../../src/model/recipes/body-text.ts'
import { compileRecipe } from '../../../../src/model/recipes/compiled.ts'
import { extractWhole } from '../../../../src/model/recipes/extract-with.ts'
import { MAX_VALUE_BYTES } from '../../../../src/model/recipes/form-fields.ts'
import { BODY_KINDS, type BodyKind, type Recipe } from '../../../../src/model/recipes/recipe.ts'
import { multipartBody } from '../../../support/hook-samples/sample.ts'

function recipeOf(templates: readonly string[], index: Partial<Recipe['index']> = {}): Recipe {
  return {
    name: 'custom',
    version: 'test',
    title: 'Test',
    bodies: BODY_KINDS,
    signature: { kind: 'none' },
    sourceRef: templates,
    channelRef: [],
    batch: [],
    index: { contactName: [], contactEmail: [], messageType: [], text: [], ...index },
    answer: null,
  }
}

function readerOf(
  kind: BodyKind,
  contentType: string,
  body: string | Buffer,
  templates: readonly string[],
  slice = 1e6,
) {
  const wanted = compileRecipe(recipeOf(templates)).request
  const reader = new BodyReader({ kind, contentType, payload: Buffer.from(body) }, wanted)
  for (let turns = 0; !reader.isDone; turns++) {
    reader.run(slice)
    assert.ok(turns <= body.length + 2, 'every slice makes progress')
  }
  return reader
}

const formField = (body: string | Buffer, name: string) =>
  readerOf('form', '', body, [`{form:${name.replaceAll('}', '}}')}}`]).field(name)

describe('a form', () => {
  test('is decoded as URLSearchParams decodes it', () => {
    for (const body of [
      'a=1',
      'a=%C3%A9+%2B',
      'b=2&a=x%26y%3Dz',
      '%61=%31',
      'a=',
      'a',
      '&&a=1&',
      'a=b=c',
      'a=%F0%9F%98%80',
    ]) {
      assert.equal(formField(body, 'a'), new URLSearchParams(body).get('a'), body)
    }
  })

  test('with wrong escapes is read all the same', () => {
    assert.equal(formField('a=%', 'a'), '%')
    assert.equal(formField('a=%4', 'a'), '%4')
    assert.equal(formField('a=%zz%41', 'a'), '%zzA')
    assert.equal(formField('a=%ff', 'a'), '\uFFFD')
    assert.equal(formField('a=%00', 'a'), '\0')
  })

  test('of a repeated name the last field counts', () => {
    assert.equal(formField('a=1&b=2&a=3', 'a'), '3')
  })

  test('a value is cut, a name that is too long is no name, and thousands of fields take slices', () => {
    assert.equal(formField(`a=${'x'.repeat(MAX_VALUE_BYTES + 10)}`, 'a')!.length, MAX_VALUE_BYTES)
    assert.equal(formField(`${'x'.repeat(3000)}=1&a=2`, 'a'), '2')
    const body = `${'x=1&'.repeat(50_000)}a=end`
    const wanted = compileRecipe(recipeOf(['{form:a}'])).request
    const reader = new BodyReader({ kind: 'form', contentType: '', payload: Buffer.from(body) }, wanted)
    let turns = 0
    for (; !reader.isDone; turns++) assert.ok(reader.run(16 * 1024) < 16 * 1024 + MAX_VALUE_BYTES)
    assert.ok(turns > 100, `${turns} turns`)
    assert.equal(reader.field('a'), 'end')
  })

  test('has a text of all its fields', () => {
    const reader = readerOf('form', '', 'Name=Ada&empty=&E-Mail=a%40b.test', ['{form}'])
    assert.equal(reader.fields(), 'Name: Ada\nE-Mail: a@b.test')
    const large = readerOf('form', '', 'a=x&'.repeat(100_000), ['{form}'])
    assert.ok(large.fields()!.length <= 33_000)
    assert.equal(readerOf('form', '', '', ['{form}']).fields(), null)
  })

  test('property: any bytes are read as URLSearchParams reads them, if they are UTF-8', () => {
    const byte = fc.constantFrom(...Array.from('ab%4+=&;zZ9 [é'))
    fc.assert(
      fc.property(fc.array(byte, { maxLength: 40 }), (chars) => {
        const body = chars.join('')
        const found = Array.from(new URLSearchParams(body).entries()).filter(([name]) => name === 'a')
        assert.equal(formField(body, 'a'), found.at(-1)?.[1] ?? null)
      }),
      { numRuns: 3000 },
    )
  })
})

describe('multipart/form-data', () => {
  const TYPE = 'multipart/form-data; boundary="x y"'
  const field = (body: string, name: string, type = TYPE) =>
    readerOf('multipart', type, body, [`{form:${name}}`, '{form}'])

  test('has fields and files; a file is no text', () => {
    const body = multipartBody('x y', { a: 'one', b: 'two\r\nlines' }, '--x ybut not at the start of a line')
    assert.equal(field(body, 'a').field('a'), 'one')
    assert.equal(field(body, 'b').field('b'), 'two\r\nlines')
    assert.equal(field(body, 'attachment-1').field('attachment-1'), null)
    assert.equal(field(body, 'a').fields(), 'a: one\nb: two\r\nlines')
  })

  test('in any way that clients write it', () => {
    const bodies = [
      '--x y\r\ncontent-disposition: form-data; name=a\r\n\r\n1\r\n--x y--',
      'preamble\r\n--x y\r\nContent-Type: text/plain\r\nContent-Disposition: form-data; charset=utf-8; name="a"\r\n\r\n1\r\n--x y--\r\n',
      '--x y \r\nContent-Disposition: form-data; name="a"\r\n\r\n1',
    ]
    for (const body of bodies) assert.equal(field(body, 'a').field('a'), '1', body)
    assert.equal(
      readerOf('multipart', TYPE, '--x y\r\nContent-Disposition: form-data; name="q\\"%22"\r\n\r\n1\r\n--x y--', [
        '{form:q""}',
      ]).field('q""'),
      '1',
    )
  })

  test('that is none is read without an end', () => {
    for (const body of ['', '--', '--x y', '--x y--', '--x y\r\n', '--x y\r\n\r\n', `--x y\r\n${'a'.repeat(20_000)}`]) {
      assert.equal(field(body, 'a').fields(), null, body.slice(0, 20))
    }
    for (const type of [
      'multipart/form-data',
      'multipart/form-data; boundary=',
      `multipart/form-data; boundary=${'b'.repeat(71)}`,
    ]) {
      assert.equal(field(multipartBody('x y', { a: '1' }), 'a', type).field('a'), null)
    }
  })
})

describe('XML and text', () => {
  const xml = (text: string) => bodyText('xml', 'text/xml', Buffer.from(text))

  test('of XML the text between tags', () => {
    assert.equal(
      xml('<?xml version="1.0"?><a x="1">One<b>two &amp; &#233;&#x1F600;</b><!-- no --><![CDATA[<raw>]]></a>'),
      'One two & é😀 <raw>',
    )
    assert.equal(xml('<a>&nbsp;&#9999999;&lt;</a>'), '&nbsp;&#9999999;<')
    assert.equal(xml('<a>open <b'), 'open')
    assert.equal(xml('<![CDATA[cut'), 'cut')
  })

  test('a hundred thousand opening brackets take no time', () => {
    assert.equal(xml('<'.repeat(90_000)), '')
    assert.equal(xml('<!--'.repeat(20_000)), '')
  })

  test('in their charset, if it is known', () => {
    const latin1 = Buffer.from('caf\xe9', 'latin1')
    assert.equal(bodyText('text', 'text/plain; charset=ISO-8859-1', latin1), 'café')
    assert.equal(bodyText('text', 'text/plain; charset="utf-16le"', Buffer.from('é', 'utf16le')), 'é')
    assert.equal(bodyText('text', 'text/plain; charset=none-such', Buffer.from('é')), 'é')
    assert.equal(bodyText('text', '', latin1), 'caf\uFFFD')
    assert.equal(bodyText('binary', 'image/png', latin1), '')
  })
})

describe('the kind of a body', () => {
  const any = { bodies: BODY_KINDS }
  test('is by its Content-Type', () => {
    const kinds: Record<string, BodyKind> = {
      'application/json': 'json',
      'application/vnd.api+json; charset=utf-8': 'json',
      'Application/X-WWW-Form-Urlencoded': 'form',
      'multipart/form-data; boundary=x': 'multipart',
      'text/xml': 'xml',
      'application/soap+xml': 'xml',
      'text/plain': 'text',
      'image/png': 'binary',
      '': 'binary',
    }
    for (const [type, kind] of Object.entries(kinds)) assert.equal(bodyKindOf(type, any), kind, type)
  })

  test('is JSON if nothing else is said and the recipe takes no such thing', () => {
    for (const type of ['', 'text/plain', 'application/octet-stream']) {
      assert.equal(bodyKindOf(type, { bodies: ['json'] }), 'json')
      assert.equal(bodyKindOf(type, { bodies: ['form'] }), null)
    }
    for (const type of ['text/html', 'image/png', 'application/x-www-form-urlencoded'])
      assert.equal(bodyKindOf(type, { bodies: ['json'] }), null)
  })

  test('parameters may be quoted', () => {
    assert.equal(mediaParameter('a/b; Boundary="x=y"', 'boundary'), 'x=y')
    assert.equal(mediaParameter('a/b', 'boundary'), null)
  })
})

describe('extraction by a recipe', () => {
  const places = ['{/a}', '{form:a}', '{strings:}', '{form}', '{body}']
  const index = { contactName: places, contactEmail: places, messageType: places, text: places }

  test('property: is total and storable for bytes of any kind', () => {
    const types = [
      'application/json',
      'application/x-www-form-urlencoded',
      'multipart/form-data; boundary=x',
      'text/xml',
      'text/plain',
      'image/png',
      '',
    ]
    const recipe = recipeOf([], index)
    const bytes = fc.oneof(
      fc.uint8Array({ maxLength: 80 }),
      fc
        .string({ maxLength: 80, unit: fc.constantFrom(...Array.from('{}[]",:a\\u0d8<>&=%x\r\n- ')) })
        .map((text) => Buffer.from(text)),
    )
    let extracted = 0
    fc.assert(
      fc.property(fc.constantFrom(...types), bytes, (type, payload) => {
        // A hook accepts JSON alone where JSON is said.
        if (bodyKindOf(type, recipe) === 'json' && !isJson(payload)) return
        const fields = extractWhole(recipe, type, payload)
        for (const text of [fields.contactName, fields.contactEmail, fields.messageType, fields.text, fields.snippet]) {
          if (text === null) continue
          assert.ok(text.isWellFormed() && !text.includes('\0') && text.length <= 16_384)
          extracted += 1
        }
      }),
      { numRuns: 5000 },
    )
    assert.ok(extracted > 1000, `${extracted}`)
  })

  test('cuts each field, and warns of what is no text', () => {
    const recipe = recipeOf([], {
      ...index,
      contactName: ['{/name}'],
      contactEmail: [],
      messageType: ['{/type}'],
      text: ['{/text}'],
    })
    const payload = Buffer.from(
      JSON.stringify({ name: ['Ada'], type: 't'.repeat(100), text: `${'x'.repeat(16_383)}😀\0` }),
    )
    const fields = extractWhole(recipe, 'application/json', payload)
    assert.deepEqual(fields.warnings, [{ path: '/name', expected: 'string', got: 'array' }])
    assert.equal(fields.contactName, null)
    assert.equal(fields.messageType!.length, 64)
    assert.equal(fields.text!.length, 16_383, 'a pair is not split')
    assert.equal(fields.snippet!.length, 200)
  })
})

function isJson(bytes: Uint8Array): boolean {
  try {
    JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
    return true
  } catch {
    return false
  }
}
