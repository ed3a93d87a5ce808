// Reads a request for intake in its plainest form: POST on an intake path, HTTP/1.1, a Content-Length, everything there.
//
// It is stricter than any parser it may meet on the way: what could be read in two ways, what asks for more than an answer, and what
// is just unusual is none of its business ('other'), and node's parser reads it instead. So it never has to refuse anything.
// It decides where a request ends, and every line of it is here for that.
//
// Who keeps a connection sends the same head again and again, but for the length. Byte for byte the same, it is not taken apart
// again: 1 µs where reading takes 6. What was made of it is kept with it, also whom its token lets in (auth/principals.ts): so all of it
// is compared, but for the digits of the length.

import { timingSafeEqual } from 'node:crypto'
import type { Socket } from 'node:net'
import type { Route } from '../routes.ts'
import type { RequestHead } from './head.ts'
import { hostProblem } from './host.ts'

/** Larger ones are node's: it has the time limits for what takes a while. */
export const MAX_PLAIN_BYTES = 64 * 1024

export interface PlainRequest {
  readonly head: RequestHead
  readonly route: Route
  readonly body: Buffer
  /** Otherwise more of the body is to come. */
  readonly isWhole: boolean
  /** The client wants the connection closed after its answer. */
  readonly isLast: boolean
}

/** `more`: plain as far as it goes, which is not to the end of the head. */
export type PlainReading = PlainRequest | 'more' | 'other'

/** Lines of printable ASCII, each ended by CR LF: no folding, no tab, no bare CR or LF, no byte above. */
const LINES = /^(?:[\x20-\x7e]+\r\n)+$/
const HEAD_END = Buffer.from('\r\n\r\n')
const METHOD = 'POST '
const VERSION = ' HTTP/1.1'
const NAME = /^[a-z0-9-]+$/
const MAX_LENGTH_DIGITS = 6
const LENGTH = /^\d{1,6}$/
const LENGTH_LINE = /^.*?\r\ncontent-length: */is
const LENGTH_NAME = /^content-length$/i
const NO_BODY = Buffer.alloc(0)
const [ZERO, NINE] = [0x30, 0x39]
/** Shorter than a token. So few are compared sooner than node is asked to. */
const NO_TOKEN_BYTES = 32
/** What they ask for is not plain, whatever they say. */
const NOT_PLAIN: ReadonlySet<string> = new Set([
  'expect',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])
/** Of these there are a few, in a few spellings. The bound is for those who make some up. */
const MAX_NAMES = 500
const MAX_NAME_LENGTH = 64

/** The first head of a connection is not learned: most who connect for one message send no other. After so many new ones, none is. */
const MOST_NEWS = 10
/** It is kept as long as its connection, whoever sent it. */
const MOST_KEPT_BYTES = 2048
const MOST_KEPT_HEADERS = 32

/** All of `bytes` must be the request: a second one behind it is not plain. */
export type ReadPlainRequest = (bytes: Buffer) => PlainReading

/** A head that was read before on the connection: what stands before the digits of its length, and behind them. */
interface KnownHead {
  readonly before: Buffer
  readonly after: Buffer
  readonly length: number
  readonly digits: number
  readonly request: PlainRequest
  /** In the raw headers. */
  readonly lengthAt: number
}

/** One for each connection. */
export type NewPlainReader = (socket: Socket) => ReadPlainRequest

export function createPlainReaders(routes: ReadonlyMap<string, Route>, maxHeaderBytes: number): NewPlainReader {
  /** Names as sent, to lower case; '' for what is no name or not plain. */
  const names = new Map<string, string>()

  function nameOf(sent: string): string {
    let name = names.get(sent)
    if (name === undefined) {
      // A copy: a slice would keep the whole head alive, and the token in it.
      const own = Buffer.from(sent, 'latin1').toString('latin1')
      const lower = own.toLowerCase()
      name = NAME.test(lower) && !NOT_PLAIN.has(lower) ? lower : ''
      if (names.size < MAX_NAMES && own.length <= MAX_NAME_LENGTH) names.set(own, name)
    }
    return name
  }

  return (socket) => {
    let known: KnownHead | null = null
    /** Heads in a row that were not known. */
    let news = 0
    return (bytes) => {
      const again = known && readAgain(known, bytes)
      if (again) {
        news = 0
        return again
      }
      const reading = readAnew(bytes, socket)
      if (typeof reading === 'string' || !reading.isWhole) return reading
      news += 1
      if (news > 1 && news <= MOST_NEWS && isSmall(bytes, reading)) known = knownHead(bytes, reading)
      return reading
    }
  }

  /** Null if it is another head. */
  function readAgain(known: KnownHead, bytes: Buffer): PlainReading | null {
    const { before, after, request } = known
    const digitsAt = before.length
    let digitsEnd = digitsAt
    let length = 0
    while (digitsEnd < bytes.length && isDigit(bytes[digitsEnd]!)) length = 10 * length + bytes[digitsEnd++]! - ZERO
    const digits = digitsEnd - digitsAt
    const bodyAt = digitsEnd + after.length
    if (digits === 0 || digits > MAX_LENGTH_DIGITS || bodyAt - HEAD_END.length > maxHeaderBytes) return null
    if (!standsAt(bytes, 0, before) || !standsAt(bytes, digitsEnd, after)) return null
    const isSame = digits === known.digits && length === known.length
    const head = isSame ? request.head : withLength(known, bytes.toString('latin1', digitsAt, digitsEnd))
    return readBody(bytes, bodyAt, length, request, head)
  }

  function readAnew(bytes: Buffer, socket: Socket): PlainReading {
    const headEnd = bytes.indexOf(HEAD_END)
    if (headEnd === -1) return bytes.length < MAX_PLAIN_BYTES && mayBePlain(bytes) ? 'more' : 'other'
    if (headEnd > maxHeaderBytes) return 'other'
    const text = bytes.toString('latin1', 0, headEnd + 2)
    const lineEnd = text.indexOf('\r\n')
    const url = text.slice(METHOD.length, lineEnd - VERSION.length)
    const route = routes.get(url)
    if (route === undefined || !text.startsWith(METHOD) || !text.startsWith(VERSION, lineEnd - VERSION.length))
      return 'other'
    if (!LINES.test(text)) return 'other'
    const headers: Record<string, string> = Object.create(null)
    const rawHeaders: string[] = []
    for (let at = lineEnd + 2; at < text.length; ) {
      const colon = text.indexOf(':', at)
      const end = text.indexOf('\r\n', at)
      if (colon === -1 || colon > end) return 'other'
      const sent = text.slice(at, colon)
      const name = nameOf(sent)
      if (name === '' || headers[name] !== undefined) return 'other'
      const value = text.slice(colon + 1, end).trim()
      headers[name] = value
      rawHeaders.push(sent, value)
      at = end + 2
    }
    const connection = headers.connection?.toLowerCase() ?? 'keep-alive'
    if (connection !== 'keep-alive' && connection !== 'close') return 'other'
    const length = headers['content-length']
    if (length === undefined || !LENGTH.test(length)) return 'other'
    const head = { method: 'POST', url, httpVersionMajor: 1, httpVersionMinor: 1, headers, rawHeaders, socket }
    if (hostProblem(head)) return 'other'
    return readBody(bytes, headEnd + HEAD_END.length, Number(length), { route, isLast: connection === 'close' }, head)
  }
}

function readBody(
  bytes: Buffer,
  bodyAt: number,
  length: number,
  { route, isLast }: Pick<PlainRequest, 'route' | 'isLast'>,
  head: RequestHead,
): PlainReading {
  const total = bodyAt + length
  if (total > MAX_PLAIN_BYTES || bytes.length > total) return 'other'
  return { head, route, body: bytes.subarray(bodyAt), isWhole: bytes.length === total, isLast }
}

function isSmall(bytes: Buffer, { head, body }: PlainRequest): boolean {
  return bytes.length - body.length <= MOST_KEPT_BYTES && head.rawHeaders.length <= 2 * MOST_KEPT_HEADERS
}

/** Copies, in memory of their own: what was sent with it is let go, and no pool of buffers is held for it. */
function knownHead(bytes: Buffer, request: PlainRequest): KnownHead {
  const own = Buffer.alloc(bytes.length - request.body.length)
  bytes.copy(own)
  const text = own.toString('latin1')
  const length = request.head.headers['content-length']!
  const digitsAt = LENGTH_LINE.exec(text)![0].length
  return {
    before: own.subarray(0, digitsAt),
    after: own.subarray(digitsAt + length.length),
    length: Number(length),
    digits: length.length,
    request: { ...request, body: NO_BODY },
    lengthAt: request.head.rawHeaders.findIndex((name, at) => at % 2 === 0 && LENGTH_NAME.test(name)) + 1,
  }
}

/** The same head with another length. What it has in common with the other is looked up there, and what was made of that goes with it. */
function withLength({ request: { head }, lengthAt }: KnownHead, length: string): RequestHead {
  const headers: RequestHead['headers'] = Object.create(head.headers)
  headers['content-length'] = length
  return { ...head, headers, rawHeaders: head.rawHeaders.with(lengthAt, length) }
}

function isDigit(byte: number): boolean {
  return byte >= ZERO && byte <= NINE
}

/** In a time that says nothing about a token in it: several people's requests may come over one connection. What is short has none. */
function standsAt(bytes: Buffer, at: number, part: Buffer): boolean {
  const { length } = part
  if (at + length > bytes.length) return false
  if (length > NO_TOKEN_BYTES) return timingSafeEqual(bytes.subarray(at, at + length), part)
  for (let i = 0; i < length; i++) if (bytes[at + i] !== part[i]) return false
  return true
}

function mayBePlain(bytes: Buffer): boolean {
  return METHOD.startsWith(bytes.toString('latin1', 0, METHOD.length))
}
