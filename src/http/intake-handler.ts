// The intake handler: POST on the two intake paths, without Fastify. The first check that fails answers: token, scope, rate,
// encoding, media type, size, JSON, refs, capacity. Framing, path and method were checked before.

import type { Accept, AcceptResult } from '../intake/accept.ts'
import { keptBody } from '../intake/refused-body.ts'
import type { ErrorCode, Problem } from '../model/errors.ts'
import { tenantText } from '../model/principal.ts'
import { REFUSAL_BODY_BYTES, type Refusal } from '../model/refusal.ts'
import type { Clock } from '../runtime/clock.ts'
import { redactText } from '../runtime/redact.ts'
import { admitBearer, type AuthServices } from './authenticate.ts'
import type { ByteRates } from './byte-rates.ts'
import type { Exchange } from './exchange.ts'
import type { Handler } from './handler.ts'
import { renderProblem, type TextAnswer } from './problem.ts'
import { remoteAddress } from './remote-address.ts'
import type { Route } from './routes.ts'
import { warningsHeader } from './warnings-header.ts'
import { JSON_CONTENT, sendAnswer } from './wire/answer.ts'
import { type CollectedBody, collectBodyStart, collectBody } from './wire/body.ts'
import { declaredLength, type RequestHead } from './wire/head.ts'
import { credentialsOf, type IntakeHead, intakeHead, MAX_HEADER_KEPT } from './wire/intake-head.ts'
import type { BodyMemory, BodyReservation } from './wire/body-memory.ts'
import { gunzipBody } from './wire/gunzip.ts'

export interface IntakeHandlerOptions {
  readonly auth: AuthServices
  readonly accept: Accept
  /** `make` is called when there is time for it, or not at all. */
  readonly recordRefusal: (tenant: string, make: () => Promise<Refusal>) => void
  readonly byteRates: ByteRates
  readonly clock: Clock
  readonly bodyMemory: BodyMemory
  readonly maxBodyBytes: number
  readonly remoteAddr: 'full' | 'truncated' | 'off'
}

/** An intake request, from the fast path or from Node. */
export interface IntakeCall {
  readonly route: Route
  readonly head: RequestHead
  readonly exchange: Exchange
  /** Called at most once. Synchronous if the body has arrived. */
  readBody(maxBytes: number, reservation: BodyReservation): CollectedBody | Promise<CollectedBody>
  /** The start of a body that is not read otherwise, as much as arrives. */
  readBodyStart(maxBytes: number): Buffer | Promise<Buffer>
  answer(answer: TextAnswer): void
}

export type IntakeHandler = (call: IntakeCall) => Promise<void>

/** Refusals that are kept for the integrator: those that its request caused. */
const KEPT_CODES: ReadonlySet<ErrorCode> = new Set([
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
const TOO_MANY_BYTES: Problem = {
  code: 'rate_limited',
  message: 'This tenant sends too many bytes a second. Nothing was stored: send it again after Retry-After seconds.',
}

export function createIntakeHandler(options: IntakeHandlerOptions): IntakeHandler {
  const { auth, accept, byteRates, maxBodyBytes } = options

  /** Answers with a problem and, for the codes above, records the refusal. */
  async function refuse(call: IntakeCall, problem: Problem, body?: Buffer): Promise<void> {
    if (call.exchange.principal === null || !KEPT_CODES.has(problem.code)) return answerProblem(call, problem)
    // The answer does not wait for the rest of the body.
    const start = body ?? call.readBodyStart(REFUSAL_BODY_BYTES)
    answerProblem(call, problem)
    const bytes = Buffer.isBuffer(start) ? start : await start
    // A copy of the start, so that a waiting refusal does not keep a whole body.
    const beginning = bytes.length > REFUSAL_BODY_BYTES ? Buffer.from(bytes.subarray(0, REFUSAL_BODY_BYTES)) : bytes
    const refusal = refusalOf(call, problem, bytes.length, options.clock.now())
    const encoding = call.head.headers['content-encoding']
    const make = async () => ({ ...refusal, body: await keptBody(beginning, encoding) })
    options.recordRefusal(tenantText(refusal), make)
  }

  function unpack({ exchange }: IntakeCall, bytes: Buffer, reservation: BodyReservation): Promise<Buffer | Problem> {
    return gunzipBody(bytes, { maxBytes: maxBodyBytes, holder: tenantText(exchange.principal!), reservation })
  }

  /** `reservation`: for the body, from its first byte until it is stored or refused. */
  async function takeIn(call: IntakeCall, tenant: string, reservation: BodyReservation): Promise<void> {
    const { route, head, exchange } = call
    const read = intakeHead(head)
    const refused = headProblem(read, head, maxBodyBytes)
    if (refused) return refuse(call, refused)
    const waitS = byteRates.waitS(tenant)
    if (waitS !== null) return answerProblem(call, { ...TOO_MANY_BYTES, retryAfterS: waitS })
    const reading = call.readBody(maxBodyBytes, reservation)
    const collected = reading instanceof Promise ? await reading : reading
    exchange.bytesIn = collected.size
    byteRates.count(tenant, collected.size)
    if (collected.state === 'aborted') return
    if (collected.state === 'no_memory') return answerProblem(call, { code: 'overloaded' })
    if (collected.state === 'too_large') {
      return refuse(call, { code: 'payload_too_large', maxBytes: maxBodyBytes }, collected.bytes)
    }
    const payload = read.encoding === 'gzip' ? await unpack(call, collected.bytes, reservation) : collected.bytes
    if (!Buffer.isBuffer(payload)) return refuse(call, payload, collected.bytes)
    if (payload !== collected.bytes) byteRates.count(tenant, payload.length)
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
    if (result.warnings) exchange.warnings = warningsHeader(result.warnings)
    call.answer(receiptAnswer(result, exchange.warnings))
  }

  return async (call) => {
    const { route, head, exchange } = call
    // Awaits only promises: an await of a value would cost a turn.
    const admission = admitBearer(auth, route, head, credentialsOf(head), exchange)
    const refused = admission instanceof Promise ? await admission : admission
    if (refused) return refuse(call, refused)
    const tenant = tenantText(exchange.principal!)
    const reservation = options.bodyMemory.newReservation(tenant)
    try {
      await takeIn(call, tenant, reservation)
    } finally {
      reservation.release()
    }
  }
}

/** The intake handler for requests that Node parses. */
export function createNodeIntakeHandler(handler: IntakeHandler): Handler {
  return (route, req, res, exchange) =>
    handler({
      route,
      head: req,
      exchange,
      readBody: (maxBytes, reservation) => {
        if (exchange.awaitsContinue) {
          res.writeContinue()
          exchange.awaitsContinue = false
        }
        return collectBody(req, maxBytes, reservation)
      },
      readBodyStart: (maxBytes) =>
        exchange.awaitsContinue ? NOTHING : collectBodyStart(req, maxBytes).then(({ bytes }) => bytes),
      answer: (answer) => sendAnswer(req, res, exchange, answer),
    })
}

export function answerProblem(call: IntakeCall, problem: Problem): void {
  call.exchange.error = problem.code
  call.answer(renderProblem(problem, call.exchange.requestId))
}

/** Checks of the headers: encoding, media type, declared size. */
function headProblem({ encoding, mediaProblem }: IntakeHead, head: RequestHead, maxBodyBytes: number): Problem | null {
  if (typeof encoding !== 'string') return encoding
  if (mediaProblem) return mediaProblem
  return (declaredLength(head) ?? 0) > maxBodyBytes ? { code: 'payload_too_large', maxBytes: maxBodyBytes } : null
}

const RECEIPT_HEADERS = Object.freeze({ 'Content-Type': JSON_CONTENT })
const REPLAYED_HEADERS = Object.freeze({ 'Content-Type': JSON_CONTENT, 'Idempotent-Replayed': 'true' })

function receiptAnswer(
  { outcome, id }: Exclude<AcceptResult, { problem: Problem }>,
  warnings: string | null,
): TextAnswer {
  const flags =
    outcome === 'stored' ? '' : outcome === 'duplicate' ? ',"duplicate":true' : ',"duplicate":true,"conflict":true'
  const headers = outcome === 'duplicate' ? REPLAYED_HEADERS : RECEIPT_HEADERS
  return {
    status: 200,
    headers: warnings === null ? headers : { ...headers, 'Intray-Warnings': warnings },
    body: `{"ok":true,"id":${id}${flags}}`,
  }
}

function refusalOf(call: IntakeCall, problem: Problem, size: number, receivedAt: number): Omit<Refusal, 'body'> {
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
    bodySize: Math.max(size, declaredLength(head) ?? 0),
  }
}
