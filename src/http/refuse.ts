// Refuses a message: answers with the problem, and records what its sender caused, so that the integrator can see why.

import { keptBody } from '../intake/refused-body.ts'
import type { ErrorCode, Problem } from '../model/errors.ts'
import { tenantText } from '../model/principal.ts'
import { REFUSAL_BODY_BYTES, type Refusal } from '../model/refusal.ts'
import type { Clock } from '../runtime/clock.ts'
import { redactText } from '../runtime/redact.ts'
import { answerProblem, type IntakeCall } from './intake-call.ts'
import { declaredLength } from './wire/head.ts'
import { MAX_HEADER_KEPT } from './wire/intake-head.ts'

export interface RefuseOptions {
  /** `make` is called when there is time for it, or not at all. */
  readonly recordRefusal: (tenant: string, make: () => Promise<Refusal>) => void
  readonly clock: Clock
}

export type Refuse = (call: IntakeCall, problem: Problem, body?: Buffer) => Promise<void>

/** Refusals that are kept for the integrator: those that its request caused. */
const KEPT_CODES: ReadonlySet<ErrorCode> = new Set([
  'invalid_signature',
  'forbidden_scope',
  'payload_too_large',
  'unsupported_media_type',
  'unsupported_encoding',
  'invalid_json',
  'invalid_payload',
])
/** Longer than any sentence of ours. */
const MAX_REASON = 512
const KEPT_HEADERS = [
  'content-type',
  'content-encoding',
  'content-length',
  'transfer-encoding',
  'user-agent',
  'host',
] as const

export function createRefuse({ recordRefusal, clock }: RefuseOptions): Refuse {
  return async (call, problem, body) => {
    if (call.exchange.principal === null || !KEPT_CODES.has(problem.code)) return answerProblem(call, problem)
    // The answer does not wait for the rest of the body.
    const start = body ?? call.readBodyStart(REFUSAL_BODY_BYTES)
    answerProblem(call, problem)
    const bytes = Buffer.isBuffer(start) ? start : await start
    // A copy of the start, so that a waiting refusal does not keep a whole body.
    const beginning = bytes.length > REFUSAL_BODY_BYTES ? Buffer.from(bytes.subarray(0, REFUSAL_BODY_BYTES)) : bytes
    const refusal = refusalOf(call, problem, bytes.length, clock.now())
    const encoding = call.head.headers['content-encoding']
    const make = async () => ({ ...refusal, body: await keptBody(beginning, encoding) })
    recordRefusal(tenantText(refusal), make)
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
    reason: problem.message?.slice(0, MAX_REASON) ?? null,
    route: route.path,
    requestId: exchange.requestId,
    headers,
    bodySize: Math.max(size, declaredLength(head) ?? 0),
  }
}
