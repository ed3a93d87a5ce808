// GET /v1/inbox/stream: server-sent events. Reads the start position, writes the head, and lets the stream hub write events.
// The connection closes with the stream. The first block names the start id, so that a client that disconnects before the
// first event resumes there.

import type { IncomingMessage, ServerResponse } from 'node:http'
import { sessionKey } from '../../auth/sessions.ts'
import type { Problem } from '../../model/errors.ts'
import { type FollowedEvent, followedEventView } from '../../model/followed-event.ts'
import type { StreamHub, StreamHandle } from '../../processing/stream-hub.ts'
import type { Sink } from '../../processing/tenant-feed.ts'
import { wholeNumber } from '../../runtime/parameter.ts'
import { authenticate, type AuthServices } from '../authenticate.ts'
import type { Exchange } from '../exchange.ts'
import type { Handler } from '../handler.ts'
import { readQuery } from '../query.ts'
import type { LoadShedder } from '../load-shedder.ts'
import { sendProblem } from '../wire/answer.ts'
import { closeAfterAnswer } from '../wire/open-answer.ts'
import { serialRequests } from '../wire/serial-requests.ts'
import { cursorProblem, type ResumePointOf } from './cursor-ahead.ts'

export interface StreamHandlerOptions {
  readonly auth: AuthServices
  readonly hub: StreamHub
  readonly loadShedder: LoadShedder
  readonly resumePointOf: ResumePointOf
  readonly onTrouble: (doing: string, error: unknown) => void
}

/** An SSE comment, which clients ignore. */
export const HEARTBEAT = ':\n\n'

/** Time that a client waits before it reconnects. */
const RETRY_MS = 3000
/** Time for a client to read the last block. */
const END_GRACE_MS = 1000
const NEWEST_POSSIBLE = 999_999_999_999_999

const QUERY = { after: wholeNumber(0, NEWEST_POSSIBLE) }
const UNREACHABLE: Problem = {
  code: 'storage_unavailable',
  message: 'The database does not answer. Open the stream again after Retry-After seconds.',
}

export function createStreamHandler({
  auth,
  hub,
  loadShedder,
  resumePointOf,
  onTrouble,
}: StreamHandlerOptions): Handler {
  return async (route, req, res, exchange) => {
    const refused = await authenticate(auth, route, req, exchange)
    if (refused) return sendProblem(req, res, exchange, refused)
    const from = readStart(req)
    if ('problem' in from) return sendProblem(req, res, exchange, from.problem)
    if (req.method === 'HEAD') return beginAnswer(req, res, exchange)
    let stream: StreamHandle | Problem
    const admitted = loadShedder.acquire(route, exchange)
    if (typeof admitted !== 'function') return sendProblem(req, res, exchange, admitted)
    try {
      const ahead = await cursorProblem(resumePointOf, exchange.principal!, from.after)
      stream = ahead ?? (await hub.enter({ ...followerOf(exchange), after: from.after }))
    } catch (error) {
      onTrouble('begin a stream', error)
      stream = UNREACHABLE
    }
    if ('code' in stream) sendProblem(req, res, exchange, stream)
    else follow(stream, req, res, exchange)
  }
}

/** The stream ends when its token or session does. */
function followerOf({ principal, operator }: Exchange) {
  const { accountId, companyId, keyId } = principal!
  return { accountId, companyId, keyId: operator ? sessionKey(operator) : keyId }
}

/** An event as an SSE block. JSON escapes line breaks, so the data stays on one line. */
export function renderEvent(event: FollowedEvent): string {
  return `id: ${event.id}\nevent: ${event.kind}\ndata: ${JSON.stringify(followedEventView(event))}\n\n`
}

/** Last-Event-ID takes precedence over the query: clients add it when they reconnect to the same URL. */
function readStart(req: IncomingMessage): { readonly after: number | null } | { readonly problem: Problem } {
  const query = readQuery(req, QUERY)
  if ('problem' in query) return query
  const header = req.headers['last-event-id']
  if (header === undefined || header === '') return { after: query.values.after ?? null }
  try {
    return { after: QUERY.after(String(header)) }
  } catch (error) {
    return { problem: { code: 'invalid_request', message: `The header Last-Event-ID ${(error as Error).message}.` } }
  }
}

function beginAnswer(req: IncomingMessage, res: ServerResponse, exchange: Exchange): void {
  res.writeHead(200, [
    ...['X-Request-Id', exchange.requestId],
    ...['Content-Type', 'text/event-stream'],
    ...['Cache-Control', 'no-store'],
    // Turns off the buffering of proxies.
    ...['X-Accel-Buffering', 'no'],
    ...['Connection', 'close'],
    ...(exchange.rateFields ?? []),
  ])
  closeAfterAnswer(req.socket)
  if (req.method === 'HEAD') res.end()
}

function follow(stream: StreamHandle, req: IncomingMessage, res: ServerResponse, exchange: Exchange): void {
  const { socket } = req
  // A half-closed connection has no reader, also if the client closed its side before the stream could begin.
  if (res.destroyed || socket.readableEnded) {
    stream.leave()
    res.destroy()
    return
  }
  // The heartbeat detects dead connections.
  socket.setTimeout(0)
  const onEnd = () => res.destroy()
  socket.once('end', onEnd)
  res.once('close', () => {
    socket.off('end', onEnd)
    stream.leave()
  })
  res.on('drain', () => stream.drained())
  req.resume()
  beginAnswer(req, res, exchange)
  serialRequests(socket)?.dropRest()
  res.write(`retry: ${RETRY_MS}\nid: ${stream.start}\n\n`)
  stream.begin(sinkOf(stream, res, exchange))
}

function sinkOf(stream: StreamHandle, res: ServerResponse, exchange: Exchange): Sink {
  return {
    write: (text) => {
      if (stream.reached > stream.start) exchange.eventId = stream.reached
      return res.write(text)
    },
    end: (reason) => {
      exchange.outcome = reason
      if (reason === 'slow_reader') {
        res.destroy()
        return
      }
      res.end(`: ${reason}\n\n`)
      // A client that does not read would delay the stop of the server.
      const late = setTimeout(() => res.destroy(), END_GRACE_MS)
      res.once('close', () => clearTimeout(late))
    },
  }
}
