// One call of an operation: the request, its caller, its path parameters and its body.

import type { IncomingMessage } from 'node:http'
import type { SignedIn } from '../auth/sessions.ts'
import { parseJsonObject } from '../intake/envelope.ts'
import type { Problem } from '../model/errors.ts'
import { type Principal, tenantText } from '../model/principal.ts'
import type { Exchange } from './exchange.ts'
import type { Answer } from './problem.ts'
import type { Route } from './routes.ts'
import { JSON_CONTENT } from './wire/answer.ts'
import { collectBody } from './wire/body.ts'
import { gunzipBody } from './wire/gunzip.ts'
import { declaredLength } from './wire/head.ts'
import { commandMediaProblem, contentEncoding } from './wire/media.ts'

export interface Call {
  readonly req: IncomingMessage
  readonly exchange: Exchange
  readonly route: Route
  /** Path parameters by name. */
  readonly params: Readonly<Record<string, string>>
}

export type Outcome = Answer | Problem

/** Called only after the caller was authenticated for the route. */
export type Operation = (call: Call) => Promise<Outcome> | Outcome

/** The principal of a call whose route requires one. */
export function callerOf({ exchange }: Call): Principal {
  if (exchange.principal === null) throw new Error(`${exchange.route} asked for no token`)
  return exchange.principal
}

/** The operator of a call whose route requires a session. */
export function operatorOf({ exchange }: Call): SignedIn {
  if (exchange.operator === null) throw new Error(`${exchange.route} asked for no session`)
  return exchange.operator
}

const JSON_HEADERS = { 'Content-Type': JSON_CONTENT, 'Cache-Control': 'no-store' }

/** 200 with an object whose first field is `ok`. */
export function jsonAnswer(fields: Readonly<Record<string, unknown>>, headers: Record<string, string> = {}): Answer {
  return rawJsonAnswer(JSON.stringify({ ok: true, ...fields }), headers)
}

/** 200 with a body that is JSON already. */
export function rawJsonAnswer(body: string | Uint8Array, headers: Record<string, string> = {}): Answer {
  return { status: 200, headers: { ...JSON_HEADERS, ...headers }, body }
}

/** An id in the path; null if malformed, which is answered like an unknown one. */
export function idIn(call: Call, name = 'id'): number | null {
  const text = call.params[name] ?? ''
  return /^[1-9]\d{0,14}$/.test(text) ? Number(text) : null
}

/** A body of one JSON object, with the same checks in the same order as for a message. */
export async function readCommand(
  call: Call,
  maxBytes: number,
): Promise<{ readonly body: Record<string, unknown> } | { readonly problem: Problem }> {
  const read = await readPayload(call, maxBytes)
  return 'problem' in read ? read : parseJsonObject(read.payload)
}

/** The uncompressed bytes of a body with a JSON content type. */
export async function readPayload(
  { req, exchange }: Call,
  maxBytes: number,
): Promise<{ readonly payload: Buffer } | { readonly problem: Problem }> {
  const tooLarge: Problem = { code: 'payload_too_large', maxBytes }
  const encoding = contentEncoding(req)
  if (typeof encoding !== 'string') return { problem: encoding }
  const media = commandMediaProblem(req)
  if (media) return { problem: media }
  if ((declaredLength(req) ?? 0) > maxBytes) return { problem: tooLarge }
  const collected = await collectBody(req, maxBytes)
  exchange.bytesIn = collected.size
  if (collected.state !== 'whole') return { problem: tooLarge }
  const holder = exchange.principal === null ? '' : tenantText(exchange.principal)
  const payload =
    encoding === 'gzip' ? await gunzipBody(collected.bytes, { maxBytes, holder, reservation: null }) : collected.bytes
  return Buffer.isBuffer(payload) ? { payload } : { problem: payload }
}
