// Reads a request for intake in its plainest form: POST on an intake path, HTTP/1.1, a Content-Length, everything there.
//
// It is stricter than any parser it may meet on the way: what could be read in two ways, what asks for more than an answer, and what
// is just unusual is none of its business ('other'), and node's parser reads it instead. So it never has to refuse anything.
// It decides where a request ends, and every line of it is here for that.

import type { Socket } from 'node:net'
import type { RequestHead } from './head.ts'
import { hostProblem } from './host.ts'
import type { Route } from './routes.ts'

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

/** All of `bytes` must be the request: a second one behind it is not plain. */
export type ReadPlainRequest = (bytes: Buffer, socket: Socket) => PlainReading

export function createReadPlainRequest(routes: ReadonlyMap<string, Route>, maxHeaderBytes: number): ReadPlainRequest {
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

  return (bytes, socket) => {
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
    if (length === undefined || !/^\d{1,6}$/.test(length)) return 'other'
    const bodyAt = headEnd + HEAD_END.length
    const total = bodyAt + Number(length)
    if (total > MAX_PLAIN_BYTES || bytes.length > total) return 'other'
    const head = { method: 'POST', url, httpVersionMajor: 1, httpVersionMinor: 1, headers, rawHeaders, socket }
    if (hostProblem(head)) return 'other'
    const body = bytes.subarray(bodyAt)
    return { head, route, body, isWhole: bytes.length === total, isLast: connection === 'close' }
  }
}

function mayBePlain(bytes: Buffer): boolean {
  return METHOD.startsWith(bytes.toString('latin1', 0, METHOD.length))
}
