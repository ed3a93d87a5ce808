// The intake handler: POST on the two intake paths, past every framework. It runs the checks in their order and the first
// failure answers: token, scope, rate, encoding, media type, size, JSON, refs, capacity. (Framing, path and method came before.)

import type { Accept, AcceptResult } from '../intake/accept.ts'
import type { ErrorCode, Problem } from '../model/errors.ts'
import { REFUSAL_BODY_BYTES, type Refusal } from '../model/refusal.ts'
import type { Clock } from '../runtime/clock.ts'
import { redactBytes, redactText } from '../runtime/redact.ts'
import { admitBearer, type AuthServices } from './authenticate.ts'
import type { Exchange } from './exchange.ts'
import type { Handler } from './handler.ts'
import { renderProblem, type TextAnswer } from './problem.ts'
import { remoteAddress } from './remote-address.ts'
import type { Route } from './routes.ts'
import { JSON_CONTENT, sendAnswer } from './wire/answer.ts'
import { type Collected, collectBeside, collectBody, gunzipBody } from './wire/body.ts'
import { declaredLength, type RequestHead } from './wire/head.ts'
import { credentialsOf, type IntakeHead, intakeHead, MAX_HEADER_KEPT } from './wire/intake-head.ts'
import type { BodyMemory } from './wire/body-memory.ts'

export interface IntakeHandlerOptions {
  readonly auth: AuthServices
  readonly accept: Accept
  readonly recordRefusal: (refusal: Refusal) => void
  readonly clock: Clock
  readonly maxBodyBytes: number
  readonly remoteAddr: 'full' | 'truncated' | 'off'
}

/** A message on its way in, whoever reads it from the wire. */
export interface IntakeCall {
  readonly route: Route
  readonly head: RequestHead
  readonly exchange: Exchange
  /** Asked for once. At once where it has arrived. */
  readBody(maxBytes: number): Collected | Promise<Collected>
  /** The beginning of a body that was not asked for, as far as it comes. */
  peekBody(maxBytes: number): Buffer | Promise<Buffer>
  answer(answer: TextAnswer): void
}

export type IntakeHandler = (call: IntakeCall) => Promise<void>

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

const NOTHING = Buffer.alloc(0)

export function createIntakeHandler(options: IntakeHandlerOptions): IntakeHandler {
  const { auth, accept, maxBodyBytes } = options

  /** Answers with a problem and, if it is one to keep, keeps the request. */
  async function refuse(call: IntakeCall, problem: Problem, body?: Buffer): Promise<void> {
    if (call.exchange.principal === null || !KEPT.has(problem.code)) return answerProblem(call, problem)
    // What has not arrived yet is collected while the answer goes out: a sender does not wait for our notes.
    const head = body ?? call.peekBody(REFUSAL_BODY_BYTES)
    answerProblem(call, problem)
    const bytes = Buffer.isBuffer(head) ? head : await head
    options.recordRefusal(refusalOf(call, problem, bytes, options.clock.now()))
  }

  return async (call) => {
    const { route, head, exchange } = call
    // Without a pause where there is no need for one: the body is on its way, or here.
    const admission = admitBearer(auth, route, head, credentialsOf(head), exchange)
    const notAdmitted = admission instanceof Promise ? await admission : admission
    if (notAdmitted) return refuse(call, notAdmitted)
    const read = intakeHead(head)
    const refused = headProblem(read, head, maxBodyBytes)
    if (refused) return refuse(call, refused)
    const reading = call.readBody(maxBodyBytes)
    const collected = reading instanceof Promise ? await reading : reading
    exchange.bytesIn = collected.bytes.length
    if (collected.state === 'gone') return
    if (collected.state === 'no_room') return answerProblem(call, { code: 'overloaded' })
    if (collected.state === 'more') {
      return refuse(call, { code: 'payload_too_large', maxBytes: maxBodyBytes }, collected.bytes)
    }
    const payload = read.encoding === 'gzip' ? await gunzipBody(collected.bytes, maxBodyBytes) : collected.bytes
    if (!Buffer.isBuffer(payload)) return refuse(call, payload, collected.bytes)
    const result = await accept({
      principal: exchange.principal!,
      route: route.path,
      requestId: exchange.requestId,
      payload,
      contentType: read.contentType,
      idempotencyKeys: read.idempotencyKeys,
      traceparent: read.traceparent,
      userAgent: read.userAgent,
      remoteAddr: remoteAddress(exchange.address, options.remoteAddr),
    })
    if ('problem' in result) return refuse(call, result.problem, payload)
    exchange.eventId = result.id
    exchange.outcome = result.outcome
    call.answer(receiptAnswer(result))
  }
}

/** The intake handler for requests that node reads. */
export function createNodeIntakeHandler(handler: IntakeHandler, bodyMemory: BodyMemory): Handler {
  return (route, req, res, exchange) =>
    handler({
      route,
      head: req,
      exchange,
      readBody: (maxBytes) => {
        if (exchange.awaitsContinue) {
          res.writeContinue()
          exchange.awaitsContinue = false
        }
        return collectBody(req, maxBytes, bodyMemory.begin())
      },
      peekBody: (maxBytes) =>
        exchange.awaitsContinue ? NOTHING : collectBeside(req, maxBytes).then(({ bytes }) => bytes),
      answer: (answer) => sendAnswer(req, res, exchange, answer),
    })
}

export function answerProblem(call: IntakeCall, problem: Problem): void {
  call.exchange.error = problem.code
  call.answer(renderProblem(problem, call.exchange.requestId))
}

/** What the headers alone tell: encoding, media type, size. */
function headProblem({ encoding, mediaProblem }: IntakeHead, head: RequestHead, maxBodyBytes: number): Problem | null {
  if (typeof encoding !== 'string') return encoding
  if (mediaProblem) return mediaProblem
  return (declaredLength(head) ?? 0) > maxBodyBytes ? { code: 'payload_too_large', maxBytes: maxBodyBytes } : null
}

const RECEIPT_HEADERS = Object.freeze({ 'Content-Type': JSON_CONTENT })
const REPLAYED_HEADERS = Object.freeze({ 'Content-Type': JSON_CONTENT, 'Idempotent-Replayed': 'true' })

function receiptAnswer({ outcome, id }: Exclude<AcceptResult, { problem: Problem }>): TextAnswer {
  const again =
    outcome === 'stored' ? '' : outcome === 'duplicate' ? ',"duplicate":true' : ',"duplicate":true,"conflict":true'
  return {
    status: 200,
    headers: outcome === 'duplicate' ? REPLAYED_HEADERS : RECEIPT_HEADERS,
    body: `{"ok":true,"id":${id}${again}}`,
  }
}

function refusalOf(call: IntakeCall, problem: Problem, body: Buffer, receivedAt: number): Refusal {
  const { route, head, exchange } = call
  const principal = exchange.principal!
  const headers: Record<string, string> = {}
  for (const name of KEPT_HEADERS) {
    const value = head.headers[name]
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
    bodySize: Math.max(body.length, declaredLength(head) ?? 0),
  }
}
