// The intake lane: POST on the two intake paths, straight on node:http. It runs the checks in their order and the first
// failure answers: token, scope, rate, encoding, media type, size, JSON, refs, capacity. (Framing, path and method came before.)

import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Accept, AcceptResult } from '../intake/accept.ts'
import type { ErrorCode, Problem } from '../model/errors.ts'
import { REFUSAL_BODY_BYTES, type Refusal } from '../model/refusal.ts'
import type { Clock } from '../runtime/clock.ts'
import { createRedactor, redactBytes, redactText } from '../runtime/redact.ts'
import { JSON_CONTENT, sendAnswer, sendProblem } from './answer.ts'
import { authenticate, type Gate } from './authenticate.ts'
import { collectBeside, collectBody, declaredLength, gunzipBody } from './body.ts'
import type { Exchange } from './exchange.ts'
import { contentEncoding, mediaProblem } from './media.ts'
import type { Answer } from './problem.ts'
import { headerValues } from './raw-headers.ts'
import type { Receiving } from './receiving.ts'
import { remoteAddress } from './remote-address.ts'
import type { Route } from './routes.ts'

export interface IntakeLaneOptions {
  readonly gate: Gate
  readonly accept: Accept
  readonly recordRefusal: (refusal: Refusal) => void
  readonly clock: Clock
  readonly maxBodyBytes: number
  readonly receiving: Receiving
  readonly remoteAddr: 'full' | 'truncated' | 'off'
}

export type Lane = (route: Route, req: IncomingMessage, res: ServerResponse, exchange: Exchange) => Promise<void>

/** Refused for what they were: kept for the integrator. The others are our trouble or nobody's. */
const KEPT: ReadonlySet<ErrorCode> = new Set([
  'forbidden_scope',
  'payload_too_large',
  'unsupported_media_type',
  'unsupported_encoding',
  'invalid_json',
  'invalid_payload',
])
const KEPT_HEADERS = [
  'content-type',
  'content-encoding',
  'content-length',
  'transfer-encoding',
  'user-agent',
  'host',
] as const
const MAX_HEADER_KEPT = 512
const NOTHING = Buffer.alloc(0)
const redactAgent = createRedactor(MAX_HEADER_KEPT)
const redactType = createRedactor(MAX_HEADER_KEPT)

export function createIntakeLane(options: IntakeLaneOptions): Lane {
  const { gate, accept, maxBodyBytes, receiving } = options

  /** Answers with a problem and, if it is one to keep, keeps the request. */
  async function refuse(
    route: Route,
    req: IncomingMessage,
    res: ServerResponse,
    exchange: Exchange,
    problem: Problem,
    body?: Buffer,
  ): Promise<void> {
    if (exchange.principal === null || !KEPT.has(problem.code)) return sendProblem(req, res, exchange, problem)
    // What has not arrived yet is collected while the answer goes out: a sender does not wait for our notes.
    const head = body ?? (exchange.awaitsContinue ? NOTHING : collectBeside(req, REFUSAL_BODY_BYTES))
    sendProblem(req, res, exchange, problem)
    const bytes = Buffer.isBuffer(head) ? head : (await head).bytes
    options.recordRefusal(refusalOf(route, req, exchange, problem, bytes, options.clock.now()))
  }

  return async (route, req, res, exchange) => {
    // Without a pause where there is no need for one: the body is on its way.
    const admission = authenticate(gate, route, req, exchange)
    const refused = (admission instanceof Promise ? await admission : admission) ?? headProblem(req, maxBodyBytes)
    if (refused) return refuse(route, req, res, exchange, refused)
    if (exchange.awaitsContinue) {
      res.writeContinue()
      exchange.awaitsContinue = false
    }
    const collected = await collectBody(req, maxBodyBytes, receiving.begin())
    exchange.bytesIn = collected.bytes.length
    if (collected.state === 'gone') return
    if (collected.state === 'no_room') return sendProblem(req, res, exchange, { code: 'overloaded' })
    if (collected.state === 'more') {
      return refuse(route, req, res, exchange, { code: 'payload_too_large', maxBytes: maxBodyBytes }, collected.bytes)
    }
    const payload = contentEncoding(req) === 'gzip' ? await gunzipBody(collected.bytes, maxBodyBytes) : collected.bytes
    if (!Buffer.isBuffer(payload)) return refuse(route, req, res, exchange, payload, collected.bytes)
    const result = await accept({
      principal: exchange.principal!,
      route: route.path,
      requestId: exchange.requestId,
      payload,
      contentType: redactType(req.headers['content-type'] ?? ''),
      idempotencyKeys: headerValues(req.rawHeaders, 'idempotency-key'),
      traceparent: traceparent(req),
      userAgent: userAgent(req),
      remoteAddr: remoteAddress(exchange.address, options.remoteAddr),
    })
    if ('problem' in result) return refuse(route, req, res, exchange, result.problem, payload)
    exchange.eventId = result.id
    exchange.outcome = result.outcome
    sendAnswer(req, res, exchange, receiptAnswer(result))
  }
}

/** What the headers alone tell: encoding, media type, size. */
function headProblem(req: IncomingMessage, maxBodyBytes: number): Problem | null {
  const encoding = contentEncoding(req)
  if (typeof encoding !== 'string') return encoding
  const media = mediaProblem(req)
  if (media) return media
  return (declaredLength(req) ?? 0) > maxBodyBytes ? { code: 'payload_too_large', maxBytes: maxBodyBytes } : null
}

const RECEIPT_HEADERS = { 'Content-Type': JSON_CONTENT }
const REPLAYED_HEADERS = { 'Content-Type': JSON_CONTENT, 'Idempotent-Replayed': 'true' }

function receiptAnswer({ outcome, id }: Exclude<AcceptResult, { problem: Problem }>): Answer {
  const again =
    outcome === 'stored' ? '' : outcome === 'duplicate' ? ',"duplicate":true' : ',"duplicate":true,"conflict":true'
  return {
    status: 200,
    headers: outcome === 'duplicate' ? REPLAYED_HEADERS : RECEIPT_HEADERS,
    body: `{"ok":true,"id":${id}${again}}`,
  }
}

function refusalOf(
  route: Route,
  req: IncomingMessage,
  exchange: Exchange,
  problem: Problem,
  body: Buffer,
  receivedAt: number,
): Refusal {
  const principal = exchange.principal!
  const headers: Record<string, string> = {}
  for (const name of KEPT_HEADERS) {
    const value = req.headers[name]
    if (value !== undefined) headers[name] = redactText(value).slice(0, MAX_HEADER_KEPT)
  }
  return {
    accountId: principal.accountId,
    companyId: principal.companyId,
    receivedAt,
    keyId: principal.keyId,
    code: problem.code,
    route: route.path,
    requestId: exchange.requestId,
    headers,
    body: redactBytes(body.subarray(0, REFUSAL_BODY_BYTES)),
    bodySize: Math.max(body.length, declaredLength(req) ?? 0),
  }
}

/** Kept only in the form W3C gives it. */
function traceparent(req: IncomingMessage): string | null {
  const value = req.headers.traceparent
  return typeof value === 'string' && /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/.test(value) ? value : null
}

function userAgent(req: IncomingMessage): string | null {
  const value = req.headers['user-agent']
  return value === undefined ? null : redactAgent(value)
}
