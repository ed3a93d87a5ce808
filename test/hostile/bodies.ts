// What a body is, says it is and is packed in, each with its verdict. Good bodies carry a number of their own, so that every
// one is another message.

import { gzipSync } from 'node:zlib'

export const MAX_BODY_BYTES = 262_144 + 1024

/** Commands of processors have a limit of their own. */
export const MAX_COMMAND_BYTES = 262_144

export interface BodyPart {
  readonly name: string
  readonly verdict: 'fine' | 'invalid_json' | 'invalid_payload'
  readonly hasSourceRef?: boolean
  make(n: number): Buffer
}

type Bytes = string | Uint8Array
const body = (name: string, verdict: BodyPart['verdict'], make: (n: number) => Bytes): BodyPart => ({
  name,
  verdict,
  make: (n) => Buffer.from(make(n) as string),
})
const fine = (name: string, make: (n: number) => Bytes): BodyPart => body(name, 'fine', make)
const bad = (name: string, text: Bytes): BodyPart => body(name, 'invalid_json', () => text)
const unusable = (name: string, fields: string): BodyPart =>
  body(name, 'invalid_payload', (n) => `{"n":${n},${fields}}`)
const bytes = (...parts: readonly (string | readonly number[])[]): Buffer =>
  Buffer.concat(parts.map((one) => Buffer.from(one as string)))

export const BODIES: readonly BodyPart[] = [
  { ...fine('a message', (n) => `{"source_ref":"hostile:${n}","channel_ref":"c"}`), hasSourceRef: true },
  fine('no refs', (n) => `{"n":${n}}`),
  fine('refs that count as absent', (n) => `{"n":${n},"source_ref":" \\t\\n\u2003","channel_ref":null}`),
  fine('a BOM', (n) => `\ufeff{"n":${n}}`),
  fine('white space around', (n) => ` \t\r\n{ "n" : ${n} }\r\n `),
  fine('every form of number', (n) => `{"n":${n},"a":[-0,0,1e400,-1E-400,1.5e+3,0.1,123456789012345678901234567890]}`),
  fine('lone surrogates', (n) => `{"n":${n},"message":{"text":"\\ud800 \\udc00 \\uDBFF\\uD800"},"\\udfff":1}`),
  fine(
    'U+0000 in texts',
    (n) => `{"n":${n},"message":{"text":"\\u0000","type":"\\u0000"},"contact":{"email":"\\u0000"}}`,
  ),
  fine('the prototype', (n) => `{"n":${n},"__proto__":{"source_ref":1},"constructor":{"prototype":1},"toString":null}`),
  {
    ...fine('a repeated key, the last of which is good', (n) => `{"source_ref":1,"source_ref":"r:${n}"}`),
    hasSourceRef: true,
  },
  { ...fine('integers as refs', (n) => `{"source_ref":9000${n},"channel_ref":-100${n}}`), hasSourceRef: true },
  fine('refs further down', (n) => `{"n":${n},"meta":{"source_ref":1,"channel_ref":[]},"a":[{"source_ref":{}}]}`),
  fine('a key that only looks like one', (n) => `{"n":${n},"Source_ref":1,"source_ref ":2,"source\u200b_ref":3}`),
  { ...fine('a key in escapes', (n) => `{"\\u0073ource_ref":"e:${n}"}`), hasSourceRef: true },
  fine('another message inside', (n) => `{"n":${n},"a":"\\r\\n\\r\\nPOST /v1/inbox/events HTTP/1.1\\r\\n"}`),
  fine('raw bytes that look like a request', (n) => `\r\n\r\n{"n":${n}}\r\n\r\n`),
  fine('depth of 5,000', (n) => `{"n":${n},"a":${'[{"a":'.repeat(2500)}1${'}]'.repeat(2500)}}`),
  fine('2,000 keys', (n) => `{"n":${n}${Array.from({ length: 2000 }, (_, k) => `,"k${k}":${k}`).join('')}}`),
  {
    ...fine(
      'texts of every kind',
      (n) => `{"source_ref":"'; drop table events; --${n}","channel_ref":"\u202e\\r\\n../../"}`,
    ),
    hasSourceRef: true,
  },
  { ...fine('a ref of 512 units', (n) => `{"source_ref":"${String(n).padEnd(512, '\u00e4')}"}`), hasSourceRef: true },
  fine('as large as may be', (n) => `{"n":${n},"a":"`.padEnd(MAX_BODY_BYTES - 2, 'x').concat('"}')),

  bad('nothing', ''),
  bad('white space alone', ' \r\n'),
  bad('a BOM alone', '\ufeff'),
  bad('two BOMs', '\ufeff\ufeff{}'),
  bad('a BOM at the end', '{}\ufeff'),
  bad('UTF-16', Buffer.from('\ufeff{"a":1}', 'utf16le')),
  bad('UTF-32', bytes([0x7b, 0, 0, 0, 0x7d, 0, 0, 0])),
  bad('latin1', bytes('{"a":"', [0xe4], '"}')),
  bad('an overlong slash', bytes('{"a":"', [0xc0, 0xaf], '"}')),
  bad('an overlong U+0000', bytes('{"a":"', [0xc0, 0x80], '"}')),
  bad('a surrogate in UTF-8', bytes('{"a":"', [0xed, 0xa0, 0x80], '"}')),
  bad('above U+10FFFF', bytes('{"a":"', [0xf4, 0x90, 0x80, 0x80], '"}')),
  bad('half a character', bytes('{"a":"', [0xf0, 0x9f, 0x98], '"}')),
  bad('a byte of nothing', bytes('{"a":"', [0xff], '"}')),
  bad('a continuation alone', bytes([0x80], '{}')),
  bad('half an object', '{"a":1'),
  bad('two objects', '{}{}'),
  bad('two lines of objects', '{}\n{}'),
  bad('an object and U+0000', '{}\0'),
  bad('U+0000 and an object', '\0{}'),
  bad('a list', '[{"a":1}]'),
  bad('a text', '"{}"'),
  bad('a number', '12'),
  bad('null', 'null'),
  bad('true', 'true'),
  bad('NaN', '{"a":NaN}'),
  bad('Infinity', '{"a":-Infinity}'),
  bad('a number with a plus', '{"a":+1}'),
  bad('a number with a zero before', '{"a":01}'),
  bad('a number with a dot at its end', '{"a":1.}'),
  bad('a number with a dot before', '{"a":.1}'),
  bad('an empty exponent', '{"a":1e}'),
  bad('a hexadecimal number', '{"a":0x1}'),
  bad('a minus alone', '{"a":-}'),
  bad('a number with an underscore', '{"a":1_0}'),
  bad('a big integer', '{"a":1n}'),
  bad('a comma at the end', '{"a":1,}'),
  bad('two commas', '{"a":1,,"b":2}'),
  bad('a comment', '{/* */}'),
  bad('single quotes', "{'a':1}"),
  bad('no quotes', '{a:1}'),
  bad('a raw line break in a text', '{"a":"\n"}'),
  bad('raw U+0000 in a text', '{"a":"\0"}'),
  bad('a raw tab in a text', '{"a":"\t"}'),
  bad('an unknown escape', '{"a":"\\x41"}'),
  bad('half an escape', '{"a":"\\u00"}'),
  bad('no-break space around', '\u00a0{}'),
  bad('U+000B around', '\x0b{}'),
  bad('U+2028 around', '{}\u2028'),
  bad('a form', 'a=1&b=2'),
  bad('XML', '<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>'),
  bad('unclosed depth', '['.repeat(100_000)),
  bad('unclosed objects', '{"a":'.repeat(40_000)),

  unusable('a fraction as a ref', '"source_ref":1.5'),
  unusable('an exponent as a ref', '"source_ref":1e3'),
  unusable('minus zero as a ref', '"channel_ref":-0'),
  unusable('an object as a ref', '"channel_ref":{"$ne":null}'),
  unusable('a list as a ref', '"source_ref":["a"]'),
  unusable('false as a ref', '"source_ref":false'),
  unusable('a ref of 513 units', `"source_ref":"${'x'.repeat(513)}"`),
  unusable('U+0000 in a ref', '"source_ref":"a\\u0000"'),
  unusable('a lone surrogate in a ref', '"channel_ref":"\\ud83d"'),
  unusable('a repeated key, the last of which is bad', '"source_ref":"a","source_ref":1.5'),
]

export interface MediaPart {
  readonly name: string
  readonly takenFor: 'all' | 'messages' | 'nothing'
  readonly lines: readonly string[]
}

const media = (takenFor: MediaPart['takenFor'], ...values: string[]): MediaPart[] =>
  values.map((value) => ({ name: JSON.stringify(value), takenFor, lines: [`Content-Type: ${value}`] }))

export const MEDIA: readonly MediaPart[] = [
  ...media(
    'all',
    'application/json',
    'APPLICATION/json ; charset="UTF-8"',
    'application/json;charset=utf8;a=b',
    'application/json;',
  ),
  ...media(
    'messages',
    '',
    'text/plain',
    'application/octet-stream ;',
    'APPLICATION/vnd.a+JSON',
    'text/plain; a="application/json"',
  ),
  ...media(
    'nothing',
    'text/plain; charset=latin1',
    'a/b+json; charset=utf-8; charset=utf-16',
    'application/x-www-form-urlencoded',
    'application/json, text/plain',
    'application/json; charset=utf-16',
    'application/jsonx',
  ),
  ...media(
    'nothing',
    'application/json; charset=utf-8; charset=latin1',
    'application/json\xa0',
    'application/*',
    '*/*',
    'application/json a',
  ),
  ...media('nothing', 'multipart/form-data; boundary="application/json"', 'application/json; charset="utf-8'),
  ...media(
    'nothing',
    'application/json; a="\\"; charset=latin1"',
    `application/json${';'.repeat(3000)}x`,
    `application/${'json'.repeat(2000)}`,
  ),
  { name: 'no Content-Type', takenFor: 'messages', lines: [] },
  {
    name: 'two Content-Types',
    takenFor: 'nothing',
    lines: ['Content-Type: application/json', 'Content-Type: application/json'],
  },
]

export interface PackingPart {
  readonly name: string
  /** `decoded`: as the body says. `broken`: invalid_json. `bomb`: 413. `unsupported`: 415. */
  readonly verdict: 'decoded' | 'broken' | 'bomb' | 'unsupported'
  readonly lines: readonly string[]
  pack(body: Buffer): Buffer
}

const GZIP = ['Content-Encoding: gzip']
const zip = (bytesIn: Buffer): Buffer => gzipSync(bytesIn, { level: 1 })
const packing = (
  name: string,
  verdict: PackingPart['verdict'],
  lines: readonly string[],
  pack: PackingPart['pack'],
) => ({
  name,
  verdict,
  lines,
  pack,
})
/** Members follow each other in one gzip file: 40 MB of nothing in 40 kB. */
const MEMBER = gzipSync(Buffer.alloc(1_048_576, ' '))
const BOMB = Buffer.concat(Array<Buffer>(40).fill(MEMBER))
const as = (value: string) => [`Content-Encoding: ${value}`]
const unpacked = (bytesIn: Buffer): Buffer => bytesIn

export const PACKINGS: readonly PackingPart[] = [
  packing('no encoding', 'decoded', [], unpacked),
  packing('identity', 'decoded', as('Identity'), unpacked),
  packing('gzip', 'decoded', GZIP, zip),
  packing('X-GZIP', 'decoded', as('X-GZIP'), zip),
  packing('gzip in two members', 'decoded', GZIP, (raw) =>
    Buffer.concat([zip(raw.subarray(0, 3)), zip(raw.subarray(3))]),
  ),
  packing('gzip after 300 empty members', 'decoded', GZIP, (raw) =>
    Buffer.concat([...Array<Buffer>(300).fill(zip(Buffer.alloc(0))), zip(raw)]),
  ),
  packing('half of gzip', 'broken', GZIP, (raw) => zip(raw).subarray(0, -9)),
  packing('the head of gzip', 'broken', GZIP, (raw) => zip(raw).subarray(0, 10)),
  packing('gzip and garbage', 'broken', GZIP, (raw) => Buffer.concat([zip(raw), Buffer.from('garbage')])),
  packing('gzip and half a member', 'broken', GZIP, (raw) => Buffer.concat([zip(raw), zip(raw).subarray(0, 12)])),
  packing(
    'gzip with a wrong checksum',
    'broken',
    GZIP,
    (raw) => zip(raw).map((byte, n, all) => (n === all.length - 6 ? byte ^ 1 : byte)) as Buffer,
  ),
  packing('gzip that is none', 'broken', GZIP, (raw) => Buffer.concat([Buffer.from('x'), raw])),
  packing('gzip twice', 'broken', GZIP, (raw) => zip(zip(raw))),
  packing('a bomb', 'bomb', GZIP, () => BOMB),
  packing('br', 'unsupported', as('br'), unpacked),
  packing('deflate', 'unsupported', as('deflate'), unpacked),
  packing('gzip, gzip', 'unsupported', as('gzip, gzip'), (raw) => zip(zip(raw))),
  packing('two encodings', 'unsupported', [...GZIP, ...as('identity')], zip),
  packing('gzip;q=1', 'unsupported', as('gzip;q=1'), zip),
  packing('"gzip"', 'unsupported', as('"gzip"'), zip),
]

export interface KeyPart {
  readonly name: string
  readonly isUsable: boolean
  lines(n: number): readonly string[]
}

export const KEYS: readonly KeyPart[] = [
  { name: 'no key', isUsable: true, lines: () => [] },
  { name: 'a key', isUsable: true, lines: (n) => [`Idempotency-Key: key-${n}`] },
  { name: 'a quoted key', isUsable: true, lines: (n) => [`Idempotency-Key: "a\\"b'; --${n}"`] },
  { name: 'an empty key', isUsable: true, lines: () => ['Idempotency-Key: ""'] },
  { name: 'a key of 256', isUsable: false, lines: () => [`Idempotency-Key: ${'x'.repeat(256)}`] },
  { name: 'a key above ASCII', isUsable: false, lines: () => ['Idempotency-Key: \xe4'] },
  { name: 'two keys', isUsable: false, lines: (n) => [`Idempotency-Key: a${n}`, `Idempotency-Key: b${n}`] },
]
