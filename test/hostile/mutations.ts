// Bodies that were good once: bytes cut out, put in, changed and doubled, judged by the oracle for JSON.

import fc from 'fast-check'
import { type HostileCase, refusal, wireOf } from './hostile-case.ts'
import { judgeJson } from './json-oracle.ts'

const GOOD = [
  '{"channel_ref":"c","contact":{"name":"Zo\u00eb","email":"a@b.test"},"message":{"type":"text","text":"Gr\u00fc\u00dfe \\ud83d\\ude00"}}',
  '{"a":[1,-0.5e+10,true,null,"x\\u0000"],"meta":{"form_id":12,"page_url":"https:\\/\\/a.test"},"b":{}}',
  '{ "source_ref" : null , "channel_ref" : "\u202e\u0000x" }'.replace('\0', '\\n'),
  '\ufeff{"a":""}',
]

const PIECES = [
  ...[
    '"',
    '\\',
    '{',
    '}',
    '[',
    ']',
    ',',
    ':',
    '0',
    '-',
    '.',
    'e',
    '1',
    ' ',
    '\n',
    '\t',
    '\0',
    '\x7f',
    '\u2028',
    '\ufeff',
    '\u00a0',
  ],
  ...[
    'null',
    'true',
    'NaN',
    '//',
    '/*',
    '\\u',
    '\\ud800',
    '\\u0000',
    '"source_ref":',
    '"channel_ref":',
    '"source_ref":1.5,',
    '"channel_ref":"\\u0000",',
  ],
  ...['"source_ref":"",', '"source_ref":{},', '[[[[', '}}', '{"a":', ',,', '1e999', '0x1', "'", '\ud83d\ude00'],
].map((text) => Buffer.from(text))
const BAD_BYTES = [[0xff], [0xc0, 0x80], [0xed, 0xa0, 0x80], [0x80], [0xf5], [0xe2, 0x80]].map((bytes) =>
  Buffer.from(bytes),
)

type Mutation = (body: Buffer) => Buffer

const place = fc.double({ min: 0, max: 1, noNaN: true })
const at = (body: Buffer, share: number): number => Math.floor(share * (body.length + 1))

const mutation: fc.Arbitrary<Mutation> = fc.oneof(
  fc.tuple(place, fc.nat(6)).map(([share, length]) => (body: Buffer) => {
    const from = at(body, share)
    return Buffer.concat([body.subarray(0, from), body.subarray(from + length)])
  }),
  fc.tuple(place, fc.constantFrom(...PIECES, ...PIECES, ...BAD_BYTES)).map(([share, piece]) => (body: Buffer) => {
    const from = at(body, share)
    return Buffer.concat([body.subarray(0, from), piece, body.subarray(from)])
  }),
  fc.tuple(place, fc.nat(255)).map(([share, byte]) => (body: Buffer) => {
    const from = at(body, share)
    return Buffer.concat([body.subarray(0, from), Buffer.from([byte]), body.subarray(from + 1)])
  }),
  fc.tuple(place, place).map(([share, other]) => (body: Buffer) => {
    const [from, to] = [at(body, share), at(body, other)].sort((a, b) => a - b) as [number, number]
    return Buffer.concat([body.subarray(0, to), body.subarray(from, to), body.subarray(to)])
  }),
)

export const anyBody: fc.Arbitrary<Buffer> = fc
  .tuple(fc.constantFrom(...GOOD), fc.array(mutation, { maxLength: 3 }))
  .map(([text, mutations]) => mutations.reduce<Buffer>((body, mutate) => mutate(body), Buffer.from(text)))

/** Null for a body with a source_ref: another may have had it, and what is then answered is the matter of other tests. */
export function bodyCase(body: Buffer, token: string): HostileCase | null {
  const { verdict, hasSourceRef } = judgeJson(body)
  if (hasSourceRef) return null
  const headers = [
    'Host: intray.test',
    `Authorization: Bearer ${token}`,
    'Content-Type: application/json',
    `Content-Length: ${body.length}`,
  ]
  const answer = {
    fine: { status: 200, error: null },
    invalid_json: refusal(400, 'invalid_json'),
    invalid_payload: refusal(422, 'invalid_payload'),
  }[verdict]
  return {
    name: `the body ${JSON.stringify(body.toString('latin1'))}`,
    pieces: [wireOf('POST /api/inbox HTTP/1.1', headers, body)],
    answers: [answer],
    stored: verdict === 'fine' ? [body] : [],
    connection: 'kept',
  }
}
