// The parser of plain requests: what it accepts, what it leaves to Node, and that Node parses all accepted requests alike.

import assert from 'node:assert/strict'
import { createServer, type IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { duplexPair } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  createPlainReaders,
  MAX_PLAIN_BYTES,
  type PlainReading,
  type PlainRequest,
  type ReadPlainRequest,
} from '../../../../src/http/wire/plain-request.ts'
import { ROUTES } from '../../../../src/http/routes.ts'

const PATH = '/v1/inbox/events'
const MAX_HEADER_BYTES = 4096
const MAX_HEADERS = 100
const ROUTE = ROUTES.find(({ path }) => path === PATH)!
const SOCKET = {} as Socket
const newReader = createPlainReaders(new Map([[PATH, ROUTE]]), {
  maxHeaderBytes: MAX_HEADER_BYTES,
  maxHeaders: MAX_HEADERS,
})
const read = (bytes: Buffer) => newReader(SOCKET)(bytes)
const SMALL_LIMIT = 1024
const readerWith = (maxHeaderBytes: number) =>
  createPlainReaders(new Map([[PATH, ROUTE]]), { maxHeaderBytes, maxHeaders: MAX_HEADERS })(SOCKET)

const HEAD = ['Host: a.test', 'Authorization: Bearer x', 'Content-Type: application/json']

function request(lines: readonly string[], body = '{"a":1}', first = `POST ${PATH} HTTP/1.1`): Buffer {
  return Buffer.from(`${[first, ...lines].join('\r\n')}\r\n\r\n${body}`, 'latin1')
}

function good(body = '{"a":1}', ...more: readonly string[]): Buffer {
  return request([...HEAD, ...more, `Content-Length: ${body.length}`], body)
}

function wholeOf(bytes: Buffer): PlainRequest {
  const reading = read(bytes)
  if (typeof reading === 'string' || !reading.isComplete) assert.fail(`not taken: ${bytes}`)
  return reading
}

test('a request with as many header fields as allowed is read; with one more it is not plain', () => {
  const more = Array.from({ length: MAX_HEADERS - HEAD.length - 1 }, (_, n) => `X-${n}: x`)
  assert.equal(wholeOf(good('{}', ...more)).head.rawHeaders.length, 2 * MAX_HEADERS)
  assert.equal(read(good('{}', ...more, 'X-More: x')), 'not_plain')
})

test('a plain request is read: its head, its route and its body', () => {
  const { head, route, body } = wholeOf(good('{"b":2}', 'X-Odd:  two  words '))
  assert.equal(route, ROUTE)
  assert.equal(body.toString(), '{"b":2}')
  assert.deepEqual(
    { ...head.headers },
    {
      host: 'a.test',
      authorization: 'Bearer x',
      'content-type': 'application/json',
      'x-odd': 'two  words',
      'content-length': '7',
    },
  )
  assert.deepEqual(head.rawHeaders.slice(-4), ['X-Odd', 'two  words', 'Content-Length', '7'])
  assert.equal(`${head.method} ${head.url} ${head.httpVersionMajor}.${head.httpVersionMinor}`, `POST ${PATH} 1.1`)
  assert.equal(wholeOf(good('')).body.length, 0)
})

test('Connection: close makes a request the last one', () => {
  assert.equal(wholeOf(good()).isLast, false)
  assert.equal(wholeOf(good('{}', 'Connection: keep-alive')).isLast, false)
  assert.equal(wholeOf(good('{}', 'connection: Close')).isLast, true)
})

test('a part of a request is incomplete', () => {
  const bytes = good()
  const headEnd = bytes.indexOf('\r\n\r\n') + 4
  for (let length = 0; length < bytes.length; length += 1) {
    const reading = read(bytes.subarray(0, length))
    if (length < headEnd) assert.equal(reading, 'incomplete', `after ${length} bytes`)
    else assert.equal(typeof reading !== 'string' && reading.isComplete, false, `after ${length} bytes`)
  }
})

const OTHERS: Record<string, Buffer> = {
  'another method': request([...HEAD, 'Content-Length: 0'], '', `GET ${PATH} HTTP/1.1`),
  'a method in small letters': request([...HEAD, 'Content-Length: 0'], '', `post ${PATH} HTTP/1.1`),
  'another path': request([...HEAD, 'Content-Length: 0'], '', 'POST /api/ping HTTP/1.1'),
  'a query': request([...HEAD, 'Content-Length: 0'], '', `POST ${PATH}?a=1 HTTP/1.1`),
  'a whole URL': request([...HEAD, 'Content-Length: 0'], '', `POST http://a.test${PATH} HTTP/1.1`),
  'HTTP/1.0': request([...HEAD, 'Content-Length: 0'], '', `POST ${PATH} HTTP/1.0`),
  'two spaces in the first line': request([...HEAD, 'Content-Length: 0'], '', `POST  ${PATH} HTTP/1.1`),
  'no length': request(HEAD, ''),
  'two lengths': good('{"a":1}', 'Content-Length: 7'),
  'a length with a sign': request([...HEAD, 'Content-Length: +7']),
  'a length in hex': request([...HEAD, 'Content-Length: 0x7']),
  'a list of lengths': request([...HEAD, 'Content-Length: 7, 7']),
  chunks: good('{"a":1}', 'Transfer-Encoding: chunked'),
  'an expectation': good('{"a":1}', 'Expect: 100-continue'),
  'another wish for the connection': good('{"a":1}', 'Connection: close, x-a'),
  'an upgrade': good('{"a":1}', 'Upgrade: h2c'),
  'no host': request(['Content-Length: 7']),
  'two hosts': good('{"a":1}', 'Host: b.test'),
  'a host that is none': request(['Host: a b', 'Content-Length: 7']),
  'a repeated header': good('{"a":1}', 'X-A: 1', 'x-a: 2'),
  'a space before the colon': good('{"a":1}', 'X-A : 1'),
  'a folded line': good('{"a":1}', 'X-A: 1', ' 2'),
  'a tab': good('{"a":1}', 'X-A:\t1'),
  'a header without a colon': good('{"a":1}', 'X-A'),
  'a header without a name': good('{"a":1}', ': 1'),
  'a name with an underscore': good('{"a":1}', '__proto__: 1'),
  'a bare line feed': good('{"a":1}', 'X-A: 1\nContent-Length: 3'),
  'a bare carriage return': good('{"a":1}', 'X-A: 1\rContent-Length: 3'),
  'a byte above ASCII': good('{"a":1}', 'X-A: \xe9'),
  'a null byte': good('{"a":1}', 'X-A: \0'),
  'a second request behind it': Buffer.concat([good(), good()]),
  'a line feed behind it': Buffer.concat([good(), Buffer.from('\n')]),
  'an empty line before it': Buffer.concat([Buffer.from('\r\n'), good()]),
  'a head that is too large': good('{"a":1}', `X-A: ${'a'.repeat(MAX_HEADER_BYTES)}`),
  'a body that is too large': request([...HEAD, `Content-Length: ${MAX_PLAIN_BYTES}`], ''),
  'a head that does not end': Buffer.from(`POST ${'a'.repeat(MAX_PLAIN_BYTES)}`),
}

for (const [what, bytes] of Object.entries(OTHERS)) {
  test(`${what} is left to node`, () => {
    assert.equal(read(bytes), 'not_plain')
  })
}

const PIECES = ['\r', '\n', '\r\n', '\r\n\r\n', ' ', '\t', ':', ',', '0', '7', '+', '\0', '\x7f', '\xe9', '/', '?']
const CONNECTION_LINES = [
  'Transfer-Encoding: chunked',
  'Connection: keep-alive',
  'Connection: close',
  'Te: trailers',
  'Host: b',
]
const LINES = [
  ...CONNECTION_LINES,
  'X-A: 1',
  'Content-Length: 3',
  'Content-Length: 07',
  'content-length: 7',
  'Cookie: a=b',
]

const mutation = fc.tuple(
  fc.integer({ min: 0, max: 1000 }),
  fc.integer({ min: 0, max: 3 }),
  fc.oneof(fc.constantFrom(...PIECES), fc.constantFrom(...LINES.map((line) => `\r\n${line}`))),
)

function mutate(bytes: Buffer, [permille, cut, piece]: [number, number, string]): Buffer {
  const at = Math.floor((permille * bytes.length) / 1000)
  return Buffer.concat([bytes.subarray(0, at), Buffer.from(piece, 'latin1'), bytes.subarray(at + cut)])
}

type Read = (bytes: Buffer) => { readonly head: PlainRequest['head']; readonly body: Buffer } | null

/** How Node parses an accepted request differently; null if it agrees, or the request is not accepted. */
async function disagreement(readAll: Read, bytes: Buffer): Promise<string | null> {
  const taken = readAll(bytes)
  if (taken === null) return null
  const [seen] = await nodesReading(bytes)
  if (!seen) return 'node takes no request'
  const { req, body, count } = seen
  if (count !== 1) return `node takes ${count} requests`
  if (`${req.method} ${req.url}` !== `${taken.head.method} ${taken.head.url}`) return 'another request line'
  if (JSON.stringify(req.rawHeaders) !== JSON.stringify(taken.head.rawHeaders)) return 'other headers'
  return body.equals(taken.body) ? null : 'another body'
}

async function nodesReading(bytes: Buffer) {
  const requests: Promise<{ req: IncomingMessage; body: Buffer }>[] = []
  const { promise: closed, resolve: close } = Promise.withResolvers<void>()
  const server = createServer({ requireHostHeader: false }, (req, res) => {
    const read = buffer(req).catch(() => Buffer.from('cut off'))
    const answered = read.then((body) => {
      res.end()
      return { req, body }
    })
    requests.push(answered)
  })
  // As with ours: the client may close its side before it is answered.
  Object.assign(server, { httpAllowHalfOpen: true })
  server.on('clientError', (_error, socket) => socket.destroy())
  const [client, side] = duplexPair()
  side.on('close', close).on('error', close)
  client.on('error', () => {}).resume()
  server.emit('connection', side)
  client.end(bytes)
  await closed
  return (await Promise.all(requests)).map((seen) => ({ ...seen, count: requests.length }))
}

test('Node parses every accepted request alike, and the comparison detects a sloppy parser', async () => {
  let taken = 0
  let caught = 0
  const strict: Read = (bytes) => {
    const reading = read(bytes)
    return typeof reading === 'string' || !reading.isComplete ? null : reading
  }
  const template = good('{"a":1}', 'X-B: some words')
  const property = fc.asyncProperty(fc.array(mutation, { minLength: 1, maxLength: 3 }), async (mutations) => {
    const bytes = mutations.reduce(mutate, template)
    assert.deepEqual(comparable(readerThatKnows(template).reader(bytes)), comparable(read(bytes)))
    taken += strict(bytes) === null ? 0 : 1
    assert.equal(await disagreement(strict, bytes), null, JSON.stringify(bytes.toString('latin1')))
    caught += (await disagreement(sloppy, bytes)) === null ? 0 : 1
  })
  await fc.assert(property, { numRuns: 5000 })
  assert.ok(taken > 100, `taken: ${taken}`)
  assert.ok(caught > 100, `caught: ${caught}`)
})

/** All headers, own or inherited from a known head. */
function comparable(reading: PlainReading) {
  if (typeof reading === 'string') return reading
  const headers: Record<string, unknown> = {}
  for (const name in reading.head.headers) headers[name] = reading.head.headers[name]
  return { ...reading, head: { ...reading.head, headers } }
}

/** The reader of a connection that has sent this head before and no longer parses it. */
function readerThatKnows(bytes: Buffer): { reader: ReadPlainRequest; head: PlainRequest['head'] } {
  const reader = newReader(SOCKET)
  for (let times = 0; times < 2; times += 1) assert.notEqual(typeof reader(bytes), 'string')
  const again = reader(bytes)
  if (typeof again === 'string') assert.fail('not taken')
  return { reader, head: again.head }
}

test('a known head is read as before, for any length of the body', () => {
  const { reader, head } = readerThatKnows(good())
  for (const body of ['{"b":2}', '', '{}', `{"long":"${'x'.repeat(12_345)}"}`]) {
    const bytes = good(body)
    assert.deepEqual(comparable(reader(bytes)), comparable(read(bytes)), `a body of ${body.length}`)
  }
  const same = reader(good('{"c":3}'))
  assert.equal(typeof same !== 'string' && same.head, head, 'it was not taken apart again')
})

test('a known head with any byte changed or cut off is read like an unknown one', () => {
  const bytes = good('{"a":1}', 'X-B: some words')
  for (let at = 0; at < bytes.length; at += 1) {
    const cut = bytes.subarray(0, at)
    const changed = PIECES.map((piece) => Buffer.concat([cut, Buffer.from(piece, 'latin1'), bytes.subarray(at + 1)]))
    for (const one of [cut, ...changed]) {
      assert.deepEqual(comparable(readerThatKnows(bytes).reader(one)), comparable(read(one)), JSON.stringify(`${one}`))
    }
  }
})

test('another head is remembered when it comes twice, and none after many new ones', () => {
  const isKnown = (reader: ReadPlainRequest, bytes: Buffer): boolean => {
    const [first, second] = [reader(bytes), reader(bytes)]
    if (typeof first === 'string' || typeof second === 'string') assert.fail('not taken')
    return first.head === second.head
  }
  const { reader } = readerThatKnows(good())
  reader(good('{}', 'X-A: once'))
  assert.ok(isKnown(reader, good()), 'one that is new changes nothing')
  reader(good('{}', 'X-A: a'))
  reader(good('{}', 'X-A: a'))
  assert.ok(isKnown(reader, good('{}', 'X-A: a')))
  const many = newReader(SOCKET)
  for (let n = 0; n < 20; n += 1) many(good('{}', `X-A: ${n}`))
  assert.ok(!isKnown(many, good()))
  const lines = (count: number) => Array.from({ length: count }, (_, n) => `X-${n}: 1`)
  const sizes: [string, Buffer, boolean][] = [
    ['a head of 2 KiB', good('{}', `X-A: ${'a'.repeat(1900)}`), true],
    ['a larger one', good('{}', `X-A: ${'a'.repeat(2048)}`), false],
    ['32 headers', good('{}', ...lines(28)), true],
    ['one more', good('{}', ...lines(29)), false],
  ]
  for (const [what, bytes, isLearned] of sizes) {
    const fresh = newReader(SOCKET)
    fresh(bytes)
    fresh(bytes)
    assert.equal(isKnown(fresh, bytes), isLearned, what)
  }
})

test('the limits hold for known heads too', () => {
  const filler = SMALL_LIMIT - good('', 'X-A: ').indexOf('\r\n\r\n')
  const atLimit = (body: string) => good(body, `X-A: ${'a'.repeat(filler)}`)
  const known = readerWith(SMALL_LIMIT)
  for (let times = 0; times < 3; times += 1) known(atLimit(''))
  assert.notEqual(known(atLimit('123456789')), 'not_plain')
  assert.equal(known(atLimit('1234567890')), 'not_plain', 'a digit more is too much')
  const { reader: wide } = readerThatKnows(good())
  assert.equal(wide(request([...HEAD, `Content-Length: ${MAX_PLAIN_BYTES}`], '')), 'not_plain')
  assert.equal(wide(request([...HEAD, 'Content-Length: 0000007'])), 'not_plain')
  assert.equal(wide(Buffer.concat([good(), good()])), 'not_plain')
})

/** A naive parser. */
const sloppy: Read = (bytes) => {
  const text = bytes.toString('latin1')
  const [head = '', ...rest] = text.split(/\r?\n\r?\n/)
  const [first = '', ...lines] = head.split(/\r?\n/)
  const [method, url] = first.split(' ')
  const rawHeaders = lines.flatMap((line) => [line.split(':')[0]!, line.slice(line.indexOf(':') + 1).trim()])
  const length = Number(/content-length: *(\d+)/i.exec(head)?.[1] ?? 0)
  const body = Buffer.from(rest.join('\r\n\r\n').slice(0, length), 'latin1')
  const version = { httpVersionMajor: 1, httpVersionMinor: 1 }
  return { head: { method, url, ...version, headers: {}, rawHeaders, socket: SOCKET }, body }
}
