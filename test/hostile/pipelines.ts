// Several requests in one write: good ones, refused ones and, at the end, one that breaks the connection or is closed on.
// Everything before the end is answered in order; nothing behind it is looked at.

import fc from 'fast-check'
import { BROKEN, type Expected, type HostileCase, refusal, wireOf } from './hostile-case.ts'
import type { Tokens } from './senders.ts'

interface Link {
  readonly name: string
  readonly answer: Expected
  readonly isStored?: boolean
  bytes(tokens: Tokens, body: Buffer): Buffer
}

interface End {
  readonly name: string
  /** Null: the connection ends here without an answer of its own, or with 400. */
  readonly answer: Expected | null
  bytes(tokens: Tokens): Buffer
}

const HOST = 'Host: intray.test'
const head = (token: string): string[] => [HOST, `Authorization: Bearer ${token}`, 'Content-Type: application/json']
const post = (token: string, body: Buffer, ...further: string[]): Buffer =>
  wireOf('POST /v1/inbox/events HTTP/1.1', [...head(token), ...further, `Content-Length: ${body.length}`], body)
const chunked = (token: string, body: string): Buffer =>
  wireOf('POST /api/inbox HTTP/1.1', [...head(token), 'Transfer-Encoding: chunked'], Buffer.from(body))

const LINKS: readonly Link[] = [
  {
    name: 'a message',
    answer: { status: 200, error: null },
    isStored: true,
    bytes: ({ sender }, body) => post(sender, body),
  },
  {
    name: 'a message in chunks',
    answer: { status: 200, error: null },
    isStored: true,
    bytes: ({ sender }, body) => chunked(sender, `${body.length.toString(16)}\r\n${body.toString()}\r\n0\r\n\r\n`),
  },
  { name: 'no JSON', answer: refusal(400, 'invalid_json'), bytes: ({ sender }) => post(sender, Buffer.from('{')) },
  {
    name: 'a processor',
    answer: refusal(403, 'forbidden_scope'),
    bytes: ({ processor }, body) => post(processor, body),
  },
  {
    name: 'nobody',
    answer: refusal(401, 'missing_token'),
    bytes: (_tokens, body) => wireOf('POST /api/inbox HTTP/1.1', [HOST, `Content-Length: ${body.length}`], body),
  },
  {
    name: 'nowhere',
    answer: refusal(404, 'not_found'),
    bytes: (_tokens, body) => wireOf('PUT /nowhere HTTP/1.1', [HOST, `Content-Length: ${body.length}`], body),
  },
  {
    name: 'a list for a host',
    answer: BROKEN,
    bytes: (_tokens, body) =>
      wireOf('POST /api/inbox HTTP/1.1', ['Host: a, b', `Content-Length: ${body.length}`], body),
  },
  {
    name: 'GET with a body',
    answer: { status: 200, error: null },
    bytes: ({ sender }, body) =>
      wireOf(
        'GET /api/ping HTTP/1.1',
        [HOST, `Authorization: Bearer ${sender}`, `Content-Length: ${body.length}`],
        body,
      ),
  },
  {
    name: 'HEAD',
    answer: { status: 200, error: null, bodiless: true },
    bytes: () => wireOf('HEAD /livez HTTP/1.1', [HOST]),
  },
  {
    name: 'OPTIONS',
    answer: { status: 204, error: null, bodiless: true },
    bytes: () => wireOf('OPTIONS * HTTP/1.1', [HOST]),
  },
]

const ENDS: readonly End[] = [
  { name: 'garbage', answer: null, bytes: () => Buffer.from('GARBAGE\r\n\r\n') },
  { name: 'zeros', answer: null, bytes: () => Buffer.alloc(9) },
  { name: 'another protocol', answer: null, bytes: () => Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n') },
  { name: 'a tunnel', answer: null, bytes: () => wireOf('CONNECT a.test:443 HTTP/1.1', ['Host: a.test:443']) },
  { name: 'two lengths', answer: null, bytes: ({ sender }) => post(sender, Buffer.from('{}'), 'Content-Length: 0') },
  {
    name: 'CL.TE',
    answer: null,
    bytes: ({ sender }) => post(sender, Buffer.from('0\r\n\r\n'), 'Transfer-Encoding: chunked'),
  },
  { name: 'a bad chunk', answer: null, bytes: ({ sender }) => chunked(sender, '2\r\n{}0\r\n\r\n') },
  {
    name: 'a wish to close',
    answer: { status: 200, error: null },
    bytes: ({ sender }) =>
      wireOf('GET /api/ping HTTP/1.1', [HOST, `Authorization: Bearer ${sender}`, 'Connection: close']),
  },
  { name: 'HTTP/1.0', answer: { status: 200, error: null }, bytes: () => wireOf('GET /livez HTTP/1.0', []) },
  {
    name: 'nobody in chunks',
    answer: refusal(401, 'missing_token'),
    bytes: () =>
      wireOf('POST /api/inbox HTTP/1.1', [HOST, 'Transfer-Encoding: chunked'], Buffer.from('2\r\n{}\r\n0\r\n\r\n')),
  },
  {
    name: 'an unknown coding',
    answer: BROKEN,
    bytes: ({ sender }) =>
      wireOf(
        'POST /api/inbox HTTP/1.1',
        [...head(sender), 'Transfer-Encoding: identity', 'Transfer-Encoding: chunked'],
        Buffer.from('2\r\n{}\r\n0\r\n\r\n'),
      ),
  },
  {
    name: 'an unknown Expect',
    answer: refusal(417, 'expectation_failed'),
    bytes: ({ sender }) => post(sender, Buffer.from('{}'), 'Expect: tea'),
  },
]

export interface Pipeline {
  readonly links: readonly Link[]
  readonly end: End | null
}

/** One that is refused and closed on, with a whole message behind it. */
export const SEVERAL: Pipeline = { links: [LINKS[0]!], end: ENDS.find(({ name }) => name === 'nobody in chunks')! }

export const anyPipeline: fc.Arbitrary<Pipeline> = fc.record({
  links: fc.array(fc.constantFrom(...LINKS), { minLength: 1, maxLength: 8 }),
  end: fc.option(fc.constantFrom(...ENDS), { freq: 4 }),
})

let count = 0

export function pipelineCase({ links, end }: Pipeline, tokens: Tokens): HostileCase {
  const stored: Buffer[] = []
  const parts = links.map((link) => {
    count += 1
    const body = Buffer.from(`{"source_ref":"pipelined:${count}"}`)
    if (link.isStored) stored.push(body)
    return link.bytes(tokens, body)
  })
  const smuggled = post(tokens.sender, Buffer.from('{"source_ref":"smuggled"}'))
  const answers = [...links.map(({ answer }) => answer), ...(end?.answer ? [end.answer] : [])]
  return {
    name: [...links, ...(end ? [end] : [])].map(({ name }) => name).join(' · '),
    pieces: [Buffer.concat([...parts, ...(end ? [end.bytes(tokens), smuggled] : [])])],
    answers,
    stored,
    connection: end ? 'either' : 'kept',
    ...(end ? { mayAddBroken: true } : {}),
  }
}
