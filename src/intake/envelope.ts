// Validates the body of a message: a JSON object whose references can be used. Other fields are not checked, because a lead
// must not be refused for a cosmetic reason.

import type { FieldProblem, Problem } from '../model/errors.ts'
import type { Warning } from '../model/event.ts'
import type { JsonScan, ScanProblem } from '../model/json/scan.ts'
import { CHANNEL_REF, scanWhole, SOURCE_REF, warningsOf } from '../model/message-scan.ts'

export const MAX_REF_UNITS = 512

export interface Envelope {
  readonly sourceRef: string | null
  readonly channelRef: string | null
  readonly warnings: readonly Warning[]
}

export type EnvelopeResult = { readonly envelope: Envelope } | { readonly problem: Problem }

/** Reads a body in one go. */
export function readEnvelope(payload: Buffer): EnvelopeResult {
  return envelopeOf(scanWhole(payload))
}

export function envelopeOf(scan: JsonScan): EnvelopeResult {
  const problem = jsonProblem(scan)
  if (problem) return { problem }
  const fields: FieldProblem[] = []
  const envelope = {
    sourceRef: readRef(scan, SOURCE_REF, 'source_ref', fields),
    channelRef: readRef(scan, CHANNEL_REF, 'channel_ref', fields),
    warnings: warningsOf(scan),
  }
  return fields.length === 0 ? { envelope } : { problem: { code: 'invalid_payload', fields } }
}

/** A release of 1,000 events has 5,003. JSON.parse of 256 KiB of brackets alone takes 48 ms, of keys 30 ms. */
export const MAX_COMMAND_VALUES = 8192

export type ObjectResult = { readonly body: Record<string, unknown> } | { readonly problem: Problem }

/** Parses the body of a command in one go. Its size is limited where it is read. */
export function parseJsonObject(payload: Buffer): ObjectResult {
  return objectOf(scanWhole(payload), payload)
}

/** The scan of the payload is done. */
export function objectOf(scan: JsonScan, payload: Buffer): ObjectResult {
  const problem = jsonProblem(scan)
  if (problem) return { problem }
  if (scan.mostValues > MAX_COMMAND_VALUES) {
    const message = `The body has more than ${MAX_COMMAND_VALUES} values. Send fewer at once.`
    return { problem: invalidJson(message) }
  }
  return { body: JSON.parse(payload.toString('utf8').replace(/^\uFEFF/, '')) as Record<string, unknown> }
}

function jsonProblem(scan: JsonScan): Problem | null {
  const { problem } = scan
  if (scan.byteLength === 0) return invalidJson('The body is empty. Send one JSON object: {…}.')
  if (problem !== null && problem !== 'not_utf8' && FORM.test(scan.beginning(200))) return invalidJson(FORM_SENT)
  if (problem !== null) return invalidJsonAt(problem)
  return scan.isObject ? null : invalidJson('The body is JSON, but not an object. Send one JSON object: {…}.')
}

/** Of a body that is not JSON. */
export function invalidJsonAt(problem: ScanProblem): Problem {
  if (problem === 'not_utf8') return invalidJson('The body is not valid UTF-8. Encode it as UTF-8 and send it again.')
  const place =
    problem === 'ends_too_early' ? ': it ends too early' : ` at line ${problem.line}, column ${problem.column}`
  return invalidJson(`The body is not valid JSON${place}. Correct it and send it again.`)
}

/** The beginning of a form: URL-encoded, or in several parts. JSON begins with neither. */
const FORM = /^(?:[\w.%+[\]-]{1,100}=|--[\w'()+,./:=?-]{1,70}\r\n)/
const FORM_SENT = 'The body is a form, not JSON. Make one JSON object of its fields, and send that.'

function invalidJson(message: string): Problem {
  return { code: 'invalid_json', message }
}

/** null, "" and white space alone count as absent: otherwise all forms with an empty field would be duplicates. */
function readRef(scan: JsonScan, field: number, name: string, problems: FieldProblem[]): string | null {
  const complain = (code: string, message: string): null => {
    problems.push({ path: `/${name}`, code, message })
    return null
  }
  const tooLong = () =>
    complain('too_long', `\`${name}\` is longer than ${MAX_REF_UNITS} characters. Shorten it, or send a hash of it.`)
  const type = scan.typeOf(field)
  if (type === null || type === 'null') return null
  if (type === 'number') {
    // As its digits as sent: a double would change those of a long one.
    const [digits = '', more] = /^(-?\d+)([.eE]?)/.exec(scan.sourceOf(field, MAX_REF_UNITS + 2))?.slice(1) ?? []
    if (more !== '' || digits === '-0') {
      return complain('not_an_integer', `\`${name}\` is a number, but not an integer. Send it in quotes.`)
    }
    return digits.length > MAX_REF_UNITS ? tooLong() : digits
  }
  if (type !== 'string')
    return complain('not_a_string', `\`${name}\` is neither a string nor an integer. Send it in quotes.`)
  const value = scan.stringOf(field)
  if (value.trim() === '') return null
  if (value.length > MAX_REF_UNITS) return tooLong()
  if (value.includes('\0')) return complain('invalid_character', `\`${name}\` contains U+0000. Remove it.`)
  if (!value.isWellFormed()) return complain('invalid_character', `\`${name}\` contains a lone surrogate. Remove it.`)
  return value
}
