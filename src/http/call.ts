// One call of an operation behind the control plane: the request, its sender, what its address and its body say.

import type { IncomingMessage } from 'node:http'
import type { SignedIn } from '../auth/sessions.ts'
import { parseJsonObject } from '../intake/envelope.ts'
import type { Problem } from '../model/errors.ts'
import type { Principal } from '../model/principal.ts'
import type { Exchange } from './exchange.ts'
import type { Answer } from './problem.ts'
import type { Route } from './routes.ts'
import { collectBody, gunzipBody } from './wire/body.ts'
import { declaredLength } from './wire/head.ts'
import { contentEncoding, mediaProblem } from './wire/media.ts'

export interface Call {
  readonly req: IncomingMessage
  readonly exchange: Exchange
  readonly route: Route
  /** What stands in the path's `{places}`. */
  readonly params: Readonly<Record<string, string>>
}

/** Answers, or says what is wrong. A route with a scope is called only for a token that may. */
export type Operation = (call: Call) => Promise<Answer | Problem> | Answer | Problem

/** The sender of a call whose route asks for a token. */
export function callerOf({ exchange }: Call): Principal {
  if (exchange.principal === null) throw new Error(`${exchange.route} asked for no token`)
  return exchange.principal
}

/** The operator of a call whose route asks for a session. */
export function operatorOf({ exchange }: Call): SignedIn {
  if (exchange.operator === null) throw new Error(`${exchange.route} asked for no session`)
  return exchange.operator
}

const JSON_HEADERS = { 'Content-Type': 'application/json; charset=utf-8', 'Cache-Control': 'no-store' }

/** 200 with an object; `ok` stands first. */
export function jsonAnswer(fields: Readonly<Record<string, unknown>>, headers: Record<string, string> = {}): Answer {
  return { status: 200, headers: { ...JSON_HEADERS, ...headers }, body: JSON.stringify({ ok: true, ...fields }) }
}

/** An id in a path; null if it cannot be one, which is answered like one that does not exist. */
export function idIn(call: Call, name = 'id'): number | null {
  const text = call.params[name] ?? ''
  return /^[1-9]\d{0,14}$/.test(text) ? Number(text) : null
}

/** The body of a command: one JSON object, under the same checks as a message, in the same order. */
export async function readCommand(
  call: Call,
  maxBytes: number,
): Promise<{ readonly body: Record<string, unknown> } | { readonly problem: Problem }> {
  const read = await readPayload(call, maxBytes)
  return 'problem' in read ? read : parseJsonObject(read.payload)
}

/** The bytes of a body that says it is JSON, uncompressed. */
export async function readPayload(
  { req, exchange }: Call,
  maxBytes: number,
): Promise<{ readonly payload: Buffer } | { readonly problem: Problem }> {
  const tooLarge: Problem = { code: 'payload_too_large', maxBytes }
  const encoding = contentEncoding(req)
  if (typeof encoding !== 'string') return { problem: encoding }
  const media = mediaProblem(req)
  if (media) return { problem: media }
  if ((declaredLength(req) ?? 0) > maxBytes) return { problem: tooLarge }
  const collected = await collectBody(req, maxBytes)
  exchange.bytesIn = collected.bytes.length
  if (collected.state !== 'whole') return { problem: tooLarge }
  const payload = encoding === 'gzip' ? await gunzipBody(collected.bytes, maxBytes) : collected.bytes
  return Buffer.isBuffer(payload) ? { payload } : { problem: payload }
}
