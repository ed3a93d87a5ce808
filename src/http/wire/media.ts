// What a body says it is. Matched exactly, never loosely: a content type that two parsers read differently is how
// checks are bypassed.

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
  const match = JSON_TYPE.exec(value)
  if (!match || more.length > 0) return { code: 'unsupported_media_type' }
  for (const [, , charset = ''] of (match[1] ?? '').matchAll(CHARSET)) {
    if (!/^utf-?8$/i.test(charset.trim())) return { code: 'unsupported_media_type' }
  }
  return null
}
