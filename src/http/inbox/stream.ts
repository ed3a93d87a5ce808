// GET /v1/inbox/stream: server-sent events. It parses where to go on from, writes the head, and then lets the hub write, as
// long as the connection takes it. A stream has its connection to itself.
//
// The first block names the id it begins after: a client that is cut off before its first event goes on from there, not
// from whenever it is back.

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
import { closeAfterAnswer } from '../wire/pending-answers.ts'

export interface StreamHandlerOptions {
  readonly auth: AuthServices
  readonly hub: StreamHub
  readonly loadShedder: LoadShedder
  readonly onTrouble: (doing: string, error: unknown) => void
}

/** A comment, which clients leave out. */
export const HEARTBEAT = ':\n\n'

/** How long a client waits before it comes back. */
const RETRY_MS = 3000
/** An end that nobody takes is cut short. */
const END_GRACE_MS = 1000
const NEWEST_POSSIBLE = 999_999_999_999_999

const QUERY = { after: wholeNumber(0, NEWEST_POSSIBLE) }
const UNREACHABLE: Problem = {
  code: 'storage_unavailable',
  message: 'The database does not answer. Open the stream again after Retry-After seconds.',
}

export function createStreamHandler({ auth, hub, loadShedder, onTrouble }: StreamHandlerOptions): Handler {
  return async (route, req, res, exchange) => {
    const refused = await authenticate(auth, route, req, exchange)
    if (refused) return sendProblem(req, res, exchange, refused)
    const from = readStart(req)
    if ('problem' in from) return sendProblem(req, res, exchange, from.problem)
    if (req.method === 'HEAD') return beginAnswer(req, res, exchange)
    let place: StreamHandle | Problem
    // An open stream has a place of its own kind, and takes none of these.
    const admitted = loadShedder.acquire(route, req, exchange)
    if (typeof admitted !== 'function') return sendProblem(req, res, exchange, admitted)
    try {
      place = await hub.enter({ ...followerOf(exchange), after: from.after })
    } catch (error) {
      onTrouble('begin a stream', error)
      place = UNREACHABLE
    }
    if ('code' in place) sendProblem(req, res, exchange, place)
    else follow(place, req, res, exchange)
  }
}

/** A stream ends with what it was opened with: the token, or the session. */
function followerOf({ principal, operator }: Exchange) {
  const { accountId, companyId, keyId } = principal!
  return { accountId, companyId, keyId: operator ? sessionKey(operator) : keyId }
}

/** An event as a block of the stream. JSON has no line breaks of its own: whatever is in the data stays in its line. */
export function renderEvent(event: FollowedEvent): string {
  return `id: ${event.id}\nevent: ${event.kind}\ndata: ${JSON.stringify(followedEventView(event))}\n\n`
}

/** The header wins: it is what a client adds by itself when it comes back to the address it began with. */
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
    // A proxy that collects an answer before it passes it on would hold everything back.
    ...['X-Accel-Buffering', 'no'],
    ...['Connection', 'close'],
    ...(exchange.rateFields ?? []),
  ])
  closeAfterAnswer(req.socket)
  if (req.method === 'HEAD') res.end()
}

function follow(place: StreamHandle, req: IncomingMessage, res: ServerResponse, exchange: Exchange): void {
  if (res.destroyed) {
    place.leave()
    return
  }
  const { socket } = req
  // The heartbeat tells a connection that is dead from one that is quiet.
  socket.setTimeout(0)
  // Whoever closes its side here has gone: there is no answer to wait for.
  const onGone = () => res.destroy()
  socket.once('end', onGone)
  res.once('close', () => {
    socket.off('end', onGone)
    place.leave()
  })
  res.on('drain', () => place.drained())
  req.resume()
  beginAnswer(req, res, exchange)
  res.write(`retry: ${RETRY_MS}\nid: ${place.start}\n\n`)
  place.begin(sinkOf(place, res, exchange))
}

function sinkOf(place: StreamHandle, res: ServerResponse, exchange: Exchange): Sink {
  return {
    write: (text) => {
      if (place.reached > place.start) exchange.eventId = place.reached
      return res.write(text)
    },
    end: (reason) => {
      exchange.outcome = reason
      if (reason === 'slow_reader') {
        res.destroy()
        return
      }
      res.end(`: ${reason}\n\n`)
      // What waits for a reader that does not read would hold up a stop.
      const late = setTimeout(() => res.destroy(), END_GRACE_MS)
      res.once('close', () => clearTimeout(late))
    },
  }
}
