// Checks Content-Type and Content-Encoding. Strict, because a content type that two parsers read differently bypasses checks.

import type { Problem } from '../../model/errors.ts'
import type { RequestHead } from './head.ts'
import { headerValues } from './raw-headers.ts'

export type BodyEncoding = 'identity' | 'gzip'

const JSON_TYPE =
  /^application\/json[ \t]*((?:;[ \t]*(?:[!#$%&'*+.^_`|~0-9a-z-]+=(?:[!#$%&'*+.^_`|~0-9a-z-]+|"[^"\\]*")[ \t]*)?)*)$/i
const CHARSET = /;[ \t]*charset=("?)([^";]*)\1/gi

export function contentEncoding(req: RequestHead): BodyEncoding | Problem {
  const value = req.headers['content-encoding']?.trim().toLowerCase() ?? ''
  if (value === '' || value === 'identity') return 'identity'
  return value === 'gzip' || value === 'x-gzip' ? 'gzip' : { code: 'unsupported_encoding' }
}

/** Null if the body is JSON in UTF-8. */
export function mediaProblem(req: RequestHead): Problem | null {
  const [value = '', ...more] = headerValues(req.rawHeaders, 'content-type')
  if (value === 'application/json' && more.length === 0) return null
  if (more.length > 0) return unsupported('Content-Type is there more than once')
  const match = JSON_TYPE.exec(value)
  if (!match) return unsupported(describe(value))
  for (const [, , charset = ''] of (match[1] ?? '').matchAll(CHARSET)) {
    if (!/^utf-?8$/i.test(charset.trim())) return unsupported('The charset in Content-Type is not utf-8')
  }
  return null
}

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

function unsupported(what: string): Problem {
  return {
    code: 'unsupported_media_type',
    message: `${what}. Send JSON in UTF-8 with the header "Content-Type: application/json".`,
  }
}
