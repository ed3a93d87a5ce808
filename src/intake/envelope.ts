// Validates the body of a message: a JSON object whose references can be used. Other fields are not checked, because a lead
// must not be refused for a cosmetic reason.

import { isUtf8 } from 'node:buffer'
import type { FieldProblem, Problem } from '../model/errors.ts'

export const MAX_REF_UNITS = 512

export interface Envelope {
  readonly sourceRef: string | null
  readonly channelRef: string | null
}

export type EnvelopeResult = { readonly envelope: Envelope } | { readonly problem: Problem }

export function readEnvelope(payload: Buffer): EnvelopeResult {
  const parsed = parseJsonObject(payload)
  return 'problem' in parsed ? parsed : readRefs(parsed.body)
}

type ParsedObject = { readonly body: Record<string, unknown> } | { readonly problem: Problem }

export function parseJsonObject(payload: Buffer): ParsedObject {
  if (payload.byteLength === 0) return invalidJson('The body is empty. Send one JSON object: {…}.')
  if (!isUtf8(payload)) return invalidJson('The body is not valid UTF-8. Encode it as UTF-8 and send it again.')
  let body: unknown
  try {
    // A leading BOM is accepted and stored; only the parser skips it.
    const text = payload.toString('utf8')
    body = JSON.parse(text.charCodeAt(0) === 0xfeff ? text.slice(1) : text)
  } catch (error) {
    return invalidJson(`The body is not valid JSON${place(error)}. Correct it and send it again.`)
  }
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    return invalidJson('The body is JSON, but not an object. Send one JSON object: {…}.')
  }
  return { body: body as Record<string, unknown> }
}

function readRefs(body: Record<string, unknown>): EnvelopeResult {
  const fields: FieldProblem[] = []
  const envelope = {
    sourceRef: readRef(body, 'source_ref', fields),
    channelRef: readRef(body, 'channel_ref', fields),
  }
  return fields.length === 0 ? { envelope } : { problem: { code: 'invalid_payload', fields } }
}

/** null, "" and white space alone count as absent: otherwise all forms with an empty field would be duplicates. */
function readRef(body: Record<string, unknown>, name: string, fields: FieldProblem[]): string | null {
  const value = Object.hasOwn(body, name) ? body[name] : null
  if (value === null) return null
  const complain = (code: string, message: string): null => {
    fields.push({ path: `/${name}`, code, message })
    return null
  }
  if (typeof value !== 'string') return complain('not_a_string', `\`${name}\` is not a string. Send it in quotes.`)
  if (value.trim() === '') return null
  if (value.length > MAX_REF_UNITS) {
    return complain(
      'too_long',
      `\`${name}\` is longer than ${MAX_REF_UNITS} characters. Shorten it, or send a hash of it.`,
    )
  }
  if (value.includes('\0')) return complain('invalid_character', `\`${name}\` contains U+0000. Remove it.`)
  if (!value.isWellFormed()) return complain('invalid_character', `\`${name}\` contains a lone surrogate. Remove it.`)
  return value
}

function invalidJson(message: string): { readonly problem: Problem } {
  return { problem: { code: 'invalid_json', message } }
}

/**
 * Where the parser stopped, if it says so. Its sentence may quote the body, so only its last words are read, which the
 * body cannot reach, and only the numbers in them are used.
 */
function place(error: unknown): string {
  const message = error instanceof Error ? error.message : ''
  const match = / at position \d+ \(line (\d+) column (\d+)\)$/.exec(message)
  if (match) return ` at line ${match[1]}, column ${match[2]}`
  return message === 'Unexpected end of JSON input' ? ': it ends too early' : ''
}
