// The intake handler: POST on the two intake paths, without Fastify. The first check that fails answers: token, scope, rate,
// encoding, media type, size, JSON, refs, capacity. Framing, path and method were checked before.

import type { Accept, AcceptResult } from '../intake/accept.ts'
import type { Problem } from '../model/errors.ts'
import { tenantText } from '../model/principal.ts'
import { admitBearer, type AuthServices } from './authenticate.ts'
import type { ByteRates } from './byte-rates.ts'
import { answerProblem, type IntakeCall } from './intake-call.ts'
import type { TextAnswer } from './problem.ts'
import { createRefuse, type RefuseOptions } from './refuse.ts'
import { remoteAddress } from './remote-address.ts'
import { warningsHeader } from './warnings-header.ts'
import { JSON_CONTENT } from './wire/answer.ts'
import type { BodyMemory, BodyReservation } from './wire/body-memory.ts'
import { gunzipBody } from './wire/gunzip.ts'
import { declaredLength, type RequestHead } from './wire/head.ts'
import { credentialsOf, type IntakeHead, intakeHead } from './wire/intake-head.ts'

export interface IntakeHandlerOptions extends RefuseOptions {
  readonly auth: AuthServices
  readonly accept: Accept
  readonly byteRates: ByteRates
  readonly bodyMemory: BodyMemory
  readonly maxBodyBytes: number
  readonly remoteAddr: 'full' | 'truncated' | 'off'
}

export type IntakeHandler = (call: IntakeCall) => Promise<void>

export const TOO_MANY_BYTES: Problem = {
  code: 'rate_limited',
  message: 'This tenant sends too many bytes a second. Nothing was stored: send it again after Retry-After seconds.',
}

export function createIntakeHandler(options: IntakeHandlerOptions): IntakeHandler {
  const { auth, accept, byteRates, maxBodyBytes } = options

  const refuse = createRefuse(options)

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

/** Checks of the headers: encoding, media type, declared size. */
function headProblem({ encoding, mediaProblem }: IntakeHead, head: RequestHead, maxBodyBytes: number): Problem | null {
  if (typeof encoding !== 'string') return encoding
  if (mediaProblem) return mediaProblem
  return (declaredLength(head) ?? 0) > maxBodyBytes ? { code: 'payload_too_large', maxBytes: maxBodyBytes } : null
}

const RECEIPT_HEADERS = Object.freeze({ 'Content-Type': JSON_CONTENT })
const REPLAYED_HEADERS = Object.freeze({ 'Content-Type': JSON_CONTENT, 'Idempotent-Replayed': 'true' })

export function receiptAnswer(
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
