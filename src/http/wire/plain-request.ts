// Parses an intake request in its plainest form: POST on an intake path, HTTP/1.1, a Content-Length, complete.
//
// It is stricter than other parsers: ambiguous, unusual or large requests are 'not_plain' and go to Node's parser, so this one
// never refuses a request. It decides where a request ends, which makes it critical for request smuggling.
//
// A sender that keeps its connection sends the same head again, except for its length. A head that is byte for byte the same is
// not parsed again, 1 µs instead of 6. The parsed head also memoizes the principal of its token (auth/principals.ts), so all
// bytes are compared.

import { timingSafeEqual } from 'node:crypto'
import type { Socket } from 'node:net'
import type { Route } from '../routes.ts'
import type { RequestHead } from './head.ts'
import { hostProblem } from './host.ts'

/** Larger requests go to Node, which has timeouts for slow ones. */
export const MAX_PLAIN_BYTES = 64 * 1024

export interface PlainRequest {
  readonly head: RequestHead
  readonly route: Route
  readonly body: Buffer
  /** Otherwise a part of the body is missing. */
  readonly isComplete: boolean
  /** The client wants the connection closed after its answer. */
  readonly isLast: boolean
}

/** `incomplete`: a part of the head is missing, and the rest is plain. */
export type PlainReading = PlainRequest | 'incomplete' | 'not_plain'

/** Lines of printable ASCII with CR LF: no folding, no tab, no bare CR or LF, no byte above. */
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
/** A shorter part cannot hold a token, and a loop compares it faster than timingSafeEqual. */
const TIMING_SAFE_ABOVE_BYTES = 32
/** Headers that make a request not plain, with any value. */
const NOT_PLAIN: ReadonlySet<string> = new Set([
  'expect',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])
/** Bounds the cache of header names against invented ones. */
const MAX_NAMES = 500
const MAX_NAME_LENGTH = 64

/** Unknown heads in a row after which none is remembered. Nor is the first: many connections send one message. */
const MAX_NEW_HEADS = 10
/** Bounds of a remembered head, which lives as long as its connection. */
const MAX_KNOWN_HEAD_BYTES = 2048
const MAX_KNOWN_HEADERS = 32

/** `bytes` must be one request: bytes after its end make it not plain. */
export type ReadPlainRequest = (bytes: Buffer) => PlainReading

/** A head that was parsed before on the connection: the bytes before and after the digits of its length. */
interface KnownHead {
  readonly before: Buffer
  readonly after: Buffer
  readonly length: number
  readonly digits: number
  readonly request: PlainRequest
  /** Index of the length in the raw headers. */
  readonly lengthAt: number
}

/** Each connection has its own reader. */
export type NewPlainReader = (socket: Socket) => ReadPlainRequest

export interface HeadLimits {
  readonly maxHeaderBytes: number
  readonly maxHeaders: number
}

export function createPlainReaders(
  routes: ReadonlyMap<string, Route>,
  { maxHeaderBytes, maxHeaders }: HeadLimits,
): NewPlainReader {
  /** Names as sent, to lower case; '' for an invalid or not plain name. */
  const names = new Map<string, string>()

  function nameOf(sent: string): string {
    let name = names.get(sent)
    if (name === undefined) {
      // A copy, because a slice would keep the whole head and its token in memory.
      const own = Buffer.from(sent, 'latin1').toString('latin1')
      const lower = own.toLowerCase()
      name = NAME.test(lower) && !NOT_PLAIN.has(lower) ? lower : ''
      if (names.size < MAX_NAMES && own.length <= MAX_NAME_LENGTH) names.set(own, name)
    }
    return name
  }

  return (socket) => {
    let known: KnownHead | null = null
    /** Consecutive heads that were not known. */
    let newHeads = 0
    return (bytes) => {
      const repeated = known && readKnownHead(known, bytes)
      if (repeated) {
        newHeads = 0
        return repeated
      }
      const reading = parse(bytes, socket)
      if (typeof reading === 'string' || !reading.isComplete) return reading
      newHeads += 1
      if (newHeads > 1 && newHeads <= MAX_NEW_HEADS && isSmall(bytes, reading)) known = knownHead(bytes, reading)
      return reading
    }
  }

  /** Null if the head differs. */
  function readKnownHead(known: KnownHead, bytes: Buffer): PlainReading | null {
    const { before, after, request } = known
    const digitsAt = before.length
    let digitsEnd = digitsAt
    let length = 0
    while (digitsEnd < bytes.length && isDigit(bytes[digitsEnd]!)) length = 10 * length + bytes[digitsEnd++]! - ZERO
    const digits = digitsEnd - digitsAt
    const bodyAt = digitsEnd + after.length
    if (digits === 0 || digits > MAX_LENGTH_DIGITS || bodyAt - HEAD_END.length > maxHeaderBytes) return null
    if (!equalsAt(bytes, 0, before) || !equalsAt(bytes, digitsEnd, after)) return null
    const isSame = digits === known.digits && length === known.length
    const head = isSame ? request.head : withLength(known, bytes.toString('latin1', digitsAt, digitsEnd))
    return readBody(bytes, bodyAt, length, request, head)
  }

  function parse(bytes: Buffer, socket: Socket): PlainReading {
    const headEnd = bytes.indexOf(HEAD_END)
    if (headEnd === -1) return bytes.length < MAX_PLAIN_BYTES && mayBePlain(bytes) ? 'incomplete' : 'not_plain'
    if (headEnd > maxHeaderBytes) return 'not_plain'
    const text = bytes.toString('latin1', 0, headEnd + 2)
    const lineEnd = text.indexOf('\r\n')
    const url = text.slice(METHOD.length, lineEnd - VERSION.length)
    const route = routes.get(url)
    if (route === undefined || !text.startsWith(METHOD) || !text.startsWith(VERSION, lineEnd - VERSION.length))
      return 'not_plain'
    if (!LINES.test(text)) return 'not_plain'
    const headers: Record<string, string> = Object.create(null)
    const rawHeaders: string[] = []
    for (let at = lineEnd + 2; at < text.length; ) {
      const colon = text.indexOf(':', at)
      const end = text.indexOf('\r\n', at)
      if (colon === -1 || colon > end) return 'not_plain'
      const sent = text.slice(at, colon)
      const name = nameOf(sent)
      if (name === '' || headers[name] !== undefined || rawHeaders.length === 2 * maxHeaders) return 'not_plain'
      const value = text.slice(colon + 1, end).trim()
      headers[name] = value
      rawHeaders.push(sent, value)
      at = end + 2
    }
    const connection = headers.connection?.toLowerCase() ?? 'keep-alive'
    if (connection !== 'keep-alive' && connection !== 'close') return 'not_plain'
    const length = headers['content-length']
    if (length === undefined || !LENGTH.test(length)) return 'not_plain'
    const head = { method: 'POST', url, httpVersionMajor: 1, httpVersionMinor: 1, headers, rawHeaders, socket }
    if (hostProblem(head)) return 'not_plain'
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
  if (total > MAX_PLAIN_BYTES || bytes.length > total) return 'not_plain'
  return { head, route, body: bytes.subarray(bodyAt), isComplete: bytes.length === total, isLast }
}

function isSmall(bytes: Buffer, { head, body }: PlainRequest): boolean {
  return bytes.length - body.length <= MAX_KNOWN_HEAD_BYTES && head.rawHeaders.length <= 2 * MAX_KNOWN_HEADERS
}

/** Copies the head into its own memory, so that it keeps neither the body nor a pooled buffer alive. */
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

/** The same head with another length; its headers inherit from the known ones. */
function withLength({ request: { head }, lengthAt }: KnownHead, length: string): RequestHead {
  const headers: RequestHead['headers'] = Object.create(head.headers)
  headers['content-length'] = length
  return { ...head, headers, rawHeaders: head.rawHeaders.with(lengthAt, length) }
}

function isDigit(byte: number): boolean {
  return byte >= ZERO && byte <= NINE
}

/** Constant time for parts that may hold a token: a proxy may send requests of several senders over one connection. */
function equalsAt(bytes: Buffer, at: number, part: Buffer): boolean {
  const { length } = part
  if (at + length > bytes.length) return false
  if (length > TIMING_SAFE_ABOVE_BYTES) return timingSafeEqual(bytes.subarray(at, at + length), part)
  for (let i = 0; i < length; i++) if (bytes[at + i] !== part[i]) return false
  return true
}

function mayBePlain(bytes: Buffer): boolean {
  return METHOD.startsWith(bytes.toString('latin1', 0, METHOD.length))
}
