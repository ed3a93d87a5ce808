// The hook handler: GET and POST on the address of a hook. The first check that fails answers: hook, scope, rate, encoding, size,
// signature, body, capacity. Framing, path and method were checked before. What the vendor needs to stop retrying it gets once the
// message is on disk.

import type { FoundHook, HookAccess, HookAccesses } from '../auth/hook-access.ts'
import { answerGet, type ChallengeAnswer } from '../hooks/challenge.ts'
import { type HookOutcome, HookReading } from '../hooks/hook-reading.ts'
import { headerReader } from '../hooks/request.ts'
import type { Accept, AcceptResult } from '../intake/accept.ts'
import { invalidJsonAt } from '../intake/envelope.ts'
import type { Problem } from '../model/errors.ts'
import { tenantText } from '../model/principal.ts'
import type { Recipe } from '../model/recipes/recipe.ts'
import { hasToken, redactText } from '../runtime/redact.ts'
import { SCANNED_BYTES, SlicedWork } from '../runtime/sliced-work.ts'
import { admitHook, type AuthServices } from './authenticate.ts'
import type { ByteRates } from './byte-rates.ts'
import { answerProblem, type IntakeCall } from './intake-call.ts'
import { receiptAnswer, TOO_MANY_BYTES } from './intake-handler.ts'
import type { TextAnswer } from './problem.ts'
import { createRefuse, type RefuseOptions } from './refuse.ts'
import { remoteAddress } from './remote-address.ts'
import { warningsHeader } from './warnings-header.ts'
import type { BodyMemory, BodyReservation } from './wire/body-memory.ts'
import { gunzipBody } from './wire/gunzip.ts'
import { declaredLength, type RequestHead } from './wire/head.ts'
import { intakeHead, MAX_HEADER_KEPT } from './wire/intake-head.ts'
import type { PublicAddress } from './wire/public-address.ts'

export interface HookHandlerOptions extends RefuseOptions {
  readonly auth: AuthServices
  readonly hooks: HookAccesses
  readonly accept: Accept
  readonly byteRates: ByteRates
  readonly bodyMemory: BodyMemory
  /** For hooks without a limit of their own. */
  readonly maxBodyBytes: number
  /** INTRAY_PUBLIC_URL. */
  readonly publicUrl: string | null
  readonly publicAddress: PublicAddress
  readonly remoteAddr: 'full' | 'truncated' | 'off'
}

export type HookHandler = (call: IntakeCall, hookId: string) => Promise<void>

/** A vendor may show the answer in its own pages. */
const SAFE_HEADERS = {
  'Cache-Control': 'no-store',
  'Content-Security-Policy': "sandbox; default-src 'none'; frame-ancestors 'none'",
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
}
const NO_GET: Problem = {
  code: 'method_not_allowed',
  allow: 'POST, OPTIONS',
  message: 'This hook takes POST alone: its recipe has no challenge by GET.',
}
const NO_CHALLENGE: Problem = {
  code: 'invalid_signature',
  message:
    'This is no challenge with the verify token of this hook. Copy the token again from the page of the hook, or from ./intray hook show.',
}

interface Target {
  readonly call: IntakeCall
  readonly access: HookAccess
  /** Of its tenant. */
  readonly holder: string
}

export function createHookHandler(options: HookHandlerOptions): HookHandler {
  const { auth, hooks, accept, byteRates, maxBodyBytes } = options
  const refuse = createRefuse(options)
  const readings = new SlicedWork(SCANNED_BYTES)

  /** Checked and read in turn with what others send. */
  async function read({ call, access, holder }: Target, payload: Buffer): Promise<HookOutcome> {
    const { head } = call
    const request = {
      hook: access.firstKeyId,
      target: head.url ?? '',
      header: headerReader(head.rawHeaders),
      contentType: head.headers['content-type'] ?? '',
      payload,
    }
    const reading = new HookReading(access.recipe, request, {
      secrets: hooks.validSecrets(access),
      publicUrl: options.publicUrl ?? options.publicAddress(head),
      now: options.clock.now(),
    })
    await readings.finish(holder, reading)
    return reading.outcome
  }

  async function takeIn(target: Target, reservation: BodyReservation): Promise<void> {
    const { call, access, holder } = target
    const { exchange, head } = call
    const { encoding } = intakeHead(head)
    const maxBytes = access.maxBody ?? maxBodyBytes
    const tooLarge: Problem = { code: 'payload_too_large', maxBytes }
    if (typeof encoding !== 'string') return refuse(call, encoding)
    if ((declaredLength(head) ?? 0) > maxBytes) return refuse(call, tooLarge)
    const waitS = byteRates.waitS(holder)
    if (waitS !== null) return answerProblem(call, { ...TOO_MANY_BYTES, retryAfterS: waitS })
    const collected = await call.readBody(maxBytes, reservation)
    exchange.bytesIn = collected.size
    byteRates.count(holder, collected.size)
    if (collected.state === 'aborted') return
    if (collected.state === 'no_memory') return answerProblem(call, { code: 'overloaded' })
    if (collected.state === 'too_large') return refuse(call, tooLarge, collected.bytes)
    const payload =
      encoding === 'gzip' ? await gunzipBody(collected.bytes, { maxBytes, holder, reservation }) : collected.bytes
    if (!Buffer.isBuffer(payload)) return refuse(call, payload, collected.bytes)
    if (payload !== collected.bytes) byteRates.count(holder, payload.length)
    const outcome = await read(target, payload)
    if (outcome.kind === 'challenge') return call.answer(challengeAnswer(outcome.answer))
    const problem = problemOf(outcome)
    if (problem) return refuse(call, problem, payload)
    if (outcome.kind !== 'message') return
    const result = await accept(arrivalOf(target, payload, outcome))
    if ('problem' in result) return refuse(call, result.problem, payload)
    exchange.eventId = result.id
    exchange.outcome = result.outcome
    if (result.warnings) exchange.warnings = warningsHeader(result.warnings)
    call.answer(storedAnswer(access.recipe, result, exchange.warnings))
  }

  function arrivalOf({ call, access }: Target, payload: Buffer, message: HookOutcome & { kind: 'message' }) {
    const { exchange, head, route } = call
    const { traceparent, userAgent } = intakeHead(head)
    const { sourceRef, channelRef, warnings } = message
    return {
      principal: exchange.principal!,
      route: route.path,
      requestId: exchange.requestId,
      payload,
      contentType: storedType(head),
      idempotencyKeys: [],
      traceparent,
      userAgent,
      remoteAddr: remoteAddress(exchange.address, options.remoteAddr),
      hook: { recipe: access.ref, sourceRef, channelRef, warnings },
    }
  }

  return async (call, hookId) => {
    const { exchange, head } = call
    const admitted = await admitHook(auth, hookId, exchange)
    if ('code' in admitted) return refuse(call, admitted)
    const access: FoundHook = await hooks.of(admitted)
    if ('problem' in access) return answerProblem(call, access.problem)
    if (head.method !== 'POST') {
      if (access.recipe.challenge?.kind !== 'hub') return answerProblem(call, NO_GET)
      const answer = answerGet(access.recipe, head.url ?? '', hookId)
      return answer ? call.answer(challengeAnswer(answer)) : refuse(call, NO_CHALLENGE)
    }
    const holder = tenantText(exchange.principal!)
    const reservation = options.bodyMemory.newReservation(holder)
    try {
      await takeIn({ call, access, holder }, reservation)
    } finally {
      reservation.release()
    }
  }
}

/** Of a request that is no message and no challenge. */
function problemOf(outcome: HookOutcome): Problem | null {
  if (outcome.kind === 'unauthenticated') return { code: 'invalid_signature', message: outcome.message }
  if (outcome.kind === 'unsupported') return { code: 'unsupported_media_type', message: outcome.message }
  return outcome.kind === 'not_json' ? invalidJsonAt(outcome.problem) : null
}

/** As sent: what is between the parts of a form with files stands in it. */
function storedType({ headers }: RequestHead): string {
  const type = headers['content-type'] ?? ''
  return (hasToken(type) ? redactText(type) : type).slice(0, MAX_HEADER_KEPT)
}

function challengeAnswer({ contentType, body }: ChallengeAnswer): TextAnswer {
  return { status: 200, headers: { 'Content-Type': contentType, ...SAFE_HEADERS }, body }
}

/** A re-send gets the same answer: the vendor stops. */
function storedAnswer(
  { answer }: Recipe,
  result: Exclude<AcceptResult, { problem: Problem }>,
  warnings: string | null,
): TextAnswer {
  const receipt = receiptAnswer(result, warnings)
  if (answer === null) return receipt
  const headers = { ...receipt.headers, ...SAFE_HEADERS, 'Content-Type': answer.contentType }
  return { status: 200, headers, body: answer.body }
}
