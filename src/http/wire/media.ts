// Checks Content-Type and Content-Encoding. Strict in form, because a content type that two parsers read differently bypasses
// checks. Messages may name other types than commands: a browser may send those from any site, and a command may come with a
// session cookie.

import type { Problem } from '../../model/errors.ts'
import type { RequestHead } from './head.ts'
import { headerValues } from './raw-headers.ts'

export type BodyEncoding = 'identity' | 'gzip'

const TOKEN = "[!#$%&'*+.^_`|~0-9a-z-]+"
const PARAMETERS = `[ \\t]*((?:;[ \\t]*(?:${TOKEN}=(?:${TOKEN}|"[^"\\\\]*")[ \\t]*)?)*)$`
const COMMAND_TYPE = new RegExp(`^application/json${PARAMETERS}`, 'i')
/** What senders put above JSON if nobody told them otherwise. */
const MESSAGE_TYPE = new RegExp(
  `^(?:application/json|text/plain|application/octet-stream|${TOKEN}/${TOKEN}\\+json)${PARAMETERS}`,
  'i',
)
const CHARSET = /;[ \t]*charset=("?)([^";]*)\1/gi

export function contentEncoding(req: RequestHead): BodyEncoding | Problem {
  const value = req.headers['content-encoding']?.trim().toLowerCase() ?? ''
  if (value === '' || value === 'identity') return 'identity'
  return value === 'gzip' || value === 'x-gzip' ? 'gzip' : { code: 'unsupported_encoding' }
}

/** Null if the body may be a command. */
export function commandMediaProblem(req: RequestHead): Problem | null {
  return mediaProblem(req, COMMAND_TYPE)
}

/** Null if the body may be a message: also without a Content-Type. */
export function messageMediaProblem(req: RequestHead): Problem | null {
  return headerValues(req.rawHeaders, 'content-type').join() === '' ? null : mediaProblem(req, MESSAGE_TYPE)
}

function mediaProblem(req: RequestHead, type: RegExp): Problem | null {
  const [value = '', ...more] = headerValues(req.rawHeaders, 'content-type')
  if (value === 'application/json' && more.length === 0) return null
  if (more.length > 0) return unsupported('Content-Type is there more than once')
  const match = type.exec(value)
  if (!match) return unsupported(describe(value), FORM_TYPE.test(value) ? MAKE_JSON : SEND_JSON)
  for (const [, , charset = ''] of (match[1] ?? '').matchAll(CHARSET)) {
    if (!/^utf-?8$/i.test(charset.trim())) return unsupported('The charset in Content-Type is not utf-8')
  }
  return null
}

const SEND_JSON = 'Send JSON in UTF-8 with the header "Content-Type: application/json".'
/** Another header alone would not make JSON of a form. */
const MAKE_JSON =
  'A form is not taken. Make one JSON object of its fields, without files, and send it with the header "Content-Type: application/json".'
const FORM_TYPE = /^(?:application\/x-www-form-urlencoded|multipart\/)/i

/** Common mistakes, which the answer names; it repeats no other text of the header. */
const KNOWN_TYPES = [
  'application/x-www-form-urlencoded',
  'multipart/form-data',
  'text/plain',
  'text/html',
  'text/xml',
  'application/xml',
  'application/octet-stream',
]

function describe(value: string): string {
  if (value === '') return 'The request has no Content-Type'
  const type = value.split(';', 1)[0]!.trim().toLowerCase()
  return `Content-Type is ${KNOWN_TYPES.includes(type) ? type : 'not application/json'}`
}

function unsupported(what: string, fix = SEND_JSON): Problem {
  return { code: 'unsupported_media_type', message: `${what}. ${fix}` }
}
