import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { JsonScan } from '../../../../src/model/json/scan.ts'
import { CONTACT_NAME, MESSAGE_TEXT, scanMessage, scanWhole, warningsOf } from '../../../../src/model/message-scan.ts'

const ACCEPTED = [
  ...['{}', '[]', '""', '0', '-0', '1', 'null', 'true', 'false', ' {} ', '\t[\n]\r\n', '\ufeff{}', '[[],{},[{}]]'],
  ...[
    '1.5',
    '-1.5e10',
    '1E+2',
    '1e-2',
    '0e0',
    '0.0',
    '[0]',
    '[1,-1 , 1.0,1e1]',
    '123456789012345678901234567890',
    '1e400',
  ],
  ...['"\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\uD83D\\ude00"', '"\\ud800"', '"\\u0000"', '"\u007f\u2028é€😀"', '"/"', '" "'],
  ...[
    '{"":0}',
    '{"a":1,"a":2}',
    '{"a":{"a":{}},"b":[{"c":null}]}',
    '{"\\u0061":[]}',
    '[true,false,null,"",{}]',
    '"\ufeff"',
  ],
]
const REFUSED = [
  ...[
    '',
    ' ',
    '\ufeff',
    '\ufeff\ufeff{}',
    ' \ufeff{}',
    '{',
    '[',
    '}',
    ']',
    '{]',
    '[}',
    '[[]',
    '{"a":{}',
    '[]]',
    '{}}',
    '{}{}',
  ],
  ...[
    ',',
    '[,]',
    '[1,]',
    '[,1]',
    '[1,,2]',
    '[1 2]',
    '{,}',
    '{"a"}',
    '{"a":}',
    '{"a":1,}',
    '{,"a":1}',
    '{"a":1 "b":2}',
    '{"a",1}',
  ],
  ...['{a:1}', "{'a':1}", '{1:2}', '{null:1}', '{[]:1}', '{"a":1:2}', '["a":1]', ':', '{:1}', '[1:2]', '"a":1', '1,2'],
  ...[
    '01',
    '-',
    '-a',
    '+1',
    '.5',
    '1.',
    '1.e1',
    '1e',
    '1e+',
    '1E-',
    '--1',
    '0x1',
    '1_0',
    '00',
    '-01',
    '1.2.3',
    '1e1.5',
    '1e1e1',
  ],
  ...[
    'NaN',
    'Infinity',
    '-Infinity',
    'undefined',
    'nul',
    'nulll',
    'Null',
    'TRUE',
    'tru',
    'fals',
    'truefalse',
    'n',
    't',
    'f',
  ],
  ...[
    '"',
    '"a',
    '"\\',
    '"\\"',
    '"\\x"',
    '"\\u"',
    '"\\u12"',
    '"\\u12g4"',
    '"\\U0061"',
    '"\\\'"',
    '"a\nb"',
    '"\t"',
    '"\u0000"',
  ],
  ...[
    '{}x',
    '[]\u00a0',
    '\u00a0{}',
    '\u2028{}',
    '{}\f',
    '\v{}',
    '/**/{}',
    '{}//',
    '#',
    '{"a":1}/',
    '\0',
    '{}\0',
    '\u0001',
  ],
]
const NOT_UTF8 = [
  ...[
    [0x22, 0xff, 0x22],
    [0x22, 0xc0, 0x80, 0x22],
    [0x22, 0xed, 0xa0, 0x80, 0x22],
    [0x22, 0xe2, 0x82, 0x22],
  ],
  ...[
    [0x22, 0xf4, 0x90, 0x80, 0x80, 0x22],
    [0x22, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x22],
    [0xff, 0xfe, 0x7b, 0, 0x7d, 0],
  ],
].map((bytes) => Buffer.from(bytes))

function scanIn(bytes: Buffer, sliceBytes: number): JsonScan {
  const scan = scanMessage(bytes)
  while (!scan.isDone) scan.run(sliceBytes)
  return scan
}

/** In one go, and in the smallest slices. */
const bothWays = (text: string | Buffer) => [
  scanWhole(Buffer.from(text as string)),
  scanIn(Buffer.from(text as string), 4),
]

describe('the scanner', () => {
  test('accepts what JSON.parse accepts', () => {
    for (const text of ACCEPTED) {
      JSON.parse(text.replace(/^\ufeff/, ''))
      for (const scan of bothWays(text)) assert.equal(scan.problem, null, JSON.stringify(text))
    }
  })

  test('refuses what JSON.parse refuses', () => {
    for (const text of REFUSED) {
      assert.throws(() => JSON.parse(text.replace(/^\ufeff/, '')), SyntaxError, JSON.stringify(text))
      for (const scan of bothWays(text)) assert.notEqual(scan.problem, null, JSON.stringify(text))
    }
  })

  test('refuses bytes that are not UTF-8, wherever a slice ends', () => {
    for (const bytes of NOT_UTF8) {
      for (const before of ['', ' ', '  ', '   ']) {
        const text = Buffer.concat([Buffer.from(before), bytes])
        for (const scan of bothWays(text)) assert.notEqual(scan.problem, null, text.toString('latin1'))
      }
    }
  })

  test('says where the text is wrong, in the lines and columns of an editor', () => {
    const places: Record<string, unknown> = {
      '{"a":1,}': { line: 1, column: 8 },
      '{"é":1 x}': { line: 1, column: 8 },
      '{"😀":1 x}': { line: 1, column: 9 },
      '[1,\n2,\r\n3,\r4 5]': { line: 4, column: 3 },
      '\ufeff{]': { line: 1, column: 2 },
      '"\\u12g4"': { line: 1, column: 6 },
      '{"a":': 'ends_too_early',
      '"abc': 'ends_too_early',
    }
    for (const [text, place] of Object.entries(places)) {
      for (const scan of bothWays(text)) assert.deepEqual(scan.problem, place, text)
    }
  })

  test('matches brackets at any depth', () => {
    const nested = (open: string, inner: string, close: string, depth: number) =>
      `${open.repeat(depth)}${inner}${close.repeat(depth)}`
    const shapes = [
      nested('[', '', ']', 500_000),
      nested('{"a":', '1', '}', 200_000),
      nested('[{"a":', '0', '}]', 100_000),
    ]
    for (const shape of shapes) {
      assert.equal(scanWhole(Buffer.from(shape)).problem, null)
      assert.equal(scanWhole(Buffer.from(shape.slice(0, -1))).problem, 'ends_too_early')
      const swapped = shape.at(-1) === ']' ? '}' : ']'
      assert.equal(typeof scanWhole(Buffer.from(shape.slice(0, -1) + swapped)).problem, 'object')
    }
  })

  test('scans no more in one slice than was asked for, of any body', () => {
    const bodies = {
      nested: `{"a":${'['.repeat(200_000)}${']'.repeat(200_000)}}`,
      keys: `{${Array.from({ length: 60_000 }, (_, n) => `"k${n}":${n}`).join()}}`,
      text: `{"message":{"text":"${'x'.repeat(1_000_000)}"}}`,
      number: `{"a":${'1'.repeat(1_000_000)}}`,
      blank: `{${' '.repeat(1_000_000)}}`,
      wrong: `{${'\n'.repeat(1_000_000)}x`,
      key: `{"${'\\u0061'.repeat(100_000)}":1}`,
    }
    for (const [name, text] of Object.entries(bodies)) {
      const scan = scanMessage(Buffer.from(text))
      let slices = 0
      for (; !scan.isDone; slices++) assert.ok(scan.run(65_536) <= 65_536, name)
      assert.ok(slices >= Math.floor(text.length / 65_536), `${name}: ${slices} slices`)
    }
  })

  test('control: without slices the same body is scanned at once', () => {
    assert.ok(scanMessage(Buffer.from(`{"a":"${'x'.repeat(1_000_000)}"}`)).run(2_000_000) > 65_536)
  })
})

describe('a scan with a limit', () => {
  const LIMIT = 65_536
  const scannedBytes = (text: string, limit?: number) => {
    const scan = scanMessage(Buffer.from(text), limit)
    let bytes = 0
    while (!scan.isDone) bytes += scan.run(10_000)
    return { bytes, scan }
  }
  const nameOf = (scan: JsonScan) => (scan.typeOf(CONTACT_NAME) === 'string' ? scan.stringOf(CONTACT_NAME) : null)

  test('looks at no more bytes of a body, whatever is in it', () => {
    const bodies = {
      nested: `{"meta":${'['.repeat(500_000)}${']'.repeat(500_000)}}`,
      keys: `{${Array.from({ length: 60_000 }, (_, n) => `"k${n}":${n}`).join()}}`,
      'long keys': `{"${'x'.repeat(1_000_000)}":1}`,
      'escaped keys': `{${new Array(20_000).fill('"\\u0073ource\\u005fref":1').join()}}`,
      'empty strings': `{"a":[${new Array(300_000).fill('""').join()}]}`,
      number: `{"a":1${'0'.repeat(1_000_000)}}`,
      blank: `${' '.repeat(1_000_000)}{}`,
    }
    for (const [name, text] of Object.entries(bodies)) {
      const { bytes, scan } = scannedBytes(text, LIMIT)
      assert.deepEqual([scan.isCut, scan.problem], [true, null], name)
      // The last string is ended.
      assert.ok(bytes === LIMIT || bytes === LIMIT + 1, `${name}: ${bytes} bytes`)
      const control = scannedBytes(text)
      assert.deepEqual([control.bytes, control.scan.isCut], [text.length, false], `the control, ${name}`)
    }
  })

  test('counts no string values, and finds what is behind them', () => {
    const texts = {
      plain: 'x'.repeat(1_000_000),
      escaped: '\\"\\u00e9'.repeat(100_000),
      'not ASCII': 'ключ'.repeat(100_000),
    }
    for (const [kind, text] of Object.entries(texts)) {
      const behind = scannedBytes(`{"file":"${text}","contact":{"name":"Ada"}}`, 64)
      assert.deepEqual([nameOf(behind.scan), behind.scan.isCut], ['Ada', false], kind)
      const control = scannedBytes(`{"${text}":1,"contact":{"name":"Ada"}}`, 64)
      assert.deepEqual([nameOf(control.scan), control.scan.isCut], [null, true], `the control, ${kind} as a key`)
    }
  })

  test('finds the same wherever slices end, and a string whole or not at all', () => {
    const text =
      '\ufeff {"a": [1, {"b": "\\"x\\u00e9"}], "contact": {"name": "Ad\\u0061 é"}, "message": {"text": "a\\\\"} }'
    const found = (scan: JsonScan) => [nameOf(scan), scan.typeOf(MESSAGE_TEXT), scan.isCut, scan.isObject]
    const seen = new Set<string>()
    for (let limit = 1; limit <= text.length + 2; limit++) {
      const bytes = Buffer.from(text)
      const [whole, ...sliced] = [bytes.length, 4, 5, 7, 30].map((sliceBytes) => {
        const scan = scanMessage(bytes, limit)
        while (!scan.isDone) scan.run(sliceBytes)
        return found(scan)
      })
      for (const one of sliced) assert.deepEqual(one, whole, `limit ${limit}`)
      seen.add(JSON.stringify(whole))
    }
    assert.deepEqual(Array.from(seen), [
      '[null,null,true,false]',
      '[null,null,true,true]',
      '["Ada é",null,true,true]',
      '["Ada é","string",true,true]',
      '["Ada é","string",false,true]',
    ])
  })
})

describe('warnings', () => {
  const warnings = (text: string) =>
    warningsOf(scanWhole(Buffer.from(text))).map(({ path, expected, got }) => `${path} ${expected} ${got}`)

  test('name the field, the type expected and the type found', () => {
    assert.deepEqual(warnings('{"contact":[],"message":{"text":1,"type":"text"},"meta":{"form_id":"12"}}'), [
      '/contact object array',
      '/message/text string number',
      '/meta/form_id integer string',
    ])
  })

  test('are about the last of repeated keys, and about the top-level fields alone', () => {
    assert.deepEqual(
      warnings('{"contact":{"name":1},"contact":{"email":"a"},"a":{"contact":1},"meta":{"contact":1}}'),
      [],
    )
    assert.deepEqual(warnings('[{"contact":1}]'), [])
  })

  test('take every way to write an integer for one', () => {
    for (const number of ['12', '12.0', '1e3', '-0', '1e300'])
      assert.deepEqual(warnings(`{"meta":{"form_id":${number}}}`), [])
    for (const number of ['1.5', '1e-1', '1e400'])
      assert.equal(warnings(`{"meta":{"form_id":${number}}}`).length, 1, number)
  })

  test('tell of names that look like those of the references', () => {
    for (const name of ['sourceRef', 'source-ref', 'SourceRef', 'SOURCE_REF', 'sourceref', 'source\\u0052ef']) {
      const key = JSON.parse(`"${name}"`) as string
      assert.deepEqual(warnings(`{"${name}":"a"}`), [`/${key} source_ref ${key}`])
    }
    assert.deepEqual(warnings('{"channelRef":null}'), ['/channelRef channel_ref channelRef'])
    for (const name of ['source_reference', 'source ref', 'ref', 'sourceRéf', 'sourse_ref', 'source_ref']) {
      assert.deepEqual(warnings(`{"${name}":"a"}`), [], name)
    }
    assert.deepEqual(warnings('{"meta":{"sourceRef":"a"}}'), [])
  })
})
