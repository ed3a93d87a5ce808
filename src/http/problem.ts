// Turns a problem into status, headers and body. The only file that picks error statuses.

import { type ErrorCode, ERRORS, type ErrorKind, type FieldProblem, type Problem } from '../model/errors.ts'

const STATUS: Record<ErrorKind, number> = {
  malformed: 400,
  unauthenticated: 401,
  forbidden: 403,
  unknown: 404,
  wrong_method: 405,
  conflict: 409,
  gone: 410,
  too_slow: 408,
  too_large: 413,
  wrong_media: 415,
  wrong_expectation: 417,
  unusable: 422,
  too_many: 429,
  headers_too_large: 431,
  bug: 500,
  unavailable: 503,
}

const RETRY_AFTER_S = 1

const REALM = 'Bearer realm="intray"'
/** RFC 9110 requires a challenge with every 401. Browsers do not know this scheme, so they show no password dialog. */
const SESSION_REALM = 'Session realm="intray console"'
/** Likewise: a hook is authenticated as its recipe says. */
const HOOK_REALM = 'Hook realm="intray"'
const HOOK_CODES: readonly ErrorCode[] = ['unknown_hook', 'hook_disabled', 'hook_expired', 'invalid_signature']
const SESSION_CODES: readonly ErrorCode[] = ['not_signed_in', 'sign_in_failed']

export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | Uint8Array
}

/** An answer whose body is text. */
export type TextAnswer = Answer & { readonly body: string }

export function invalidRequest(message: string): Problem {
  return { code: 'invalid_request', message }
}

export function statusOf(problem: Problem): number {
  return STATUS[ERRORS[problem.code].kind]
}

export function renderProblem(problem: Problem, requestId: string): TextAnswer {
  return { status: statusOf(problem), headers: headersOf(problem), body: bodyOf(problem, requestId) }
}

function bodyOf(problem: Problem, requestId: string): string {
  const { code } = problem
  // The interface fixes this body; the message is in WWW-Authenticate.
  if (code === 'forbidden_scope') return '{"ok":false,"error":"forbidden_scope"}'
  const row = ERRORS[code]
  return JSON.stringify({
    ok: false,
    error: code,
    message: messageOf(problem),
    request_id: requestId,
    retryable: row.retryable,
    fields: problem.fields,
    max_bytes: problem.maxBytes,
    stored: storedOf(problem),
  })
}

/** The most specific message: of the problem, else of its first field, else of the catalogue. */
function messageOf({ code, message, fields }: Problem): string {
  if (message !== undefined) return message
  return fields?.[0] ? fieldsMessage(fields[0], fields.length - 1) : ERRORS[code].message
}

/** "`source_ref` is longer than 512 characters (/source_ref). …": the path stands before the first full stop. */
function fieldsMessage({ path, message }: FieldProblem, others: number): string {
  const located = message.replace(/\.(?= |$)/, () => ` (${path}).`)
  if (others === 0) return located
  return `${located} ${others === 1 ? 'Another problem is' : `${others} other problems are`} listed in fields.`
}

/** Tells the sender of a 503 whether the message may have been stored. */
function storedOf({ code }: Problem): string | undefined {
  if (code === 'storage_unavailable') return 'unknown'
  return ERRORS[code].kind === 'unavailable' ? 'no' : undefined
}

function headersOf(problem: Problem): Record<string, string> {
  const { kind } = ERRORS[problem.code]
  const headers: Record<string, string> = {
    'Content-Type': 'application/json; charset=utf-8',
    // A refused URL may hold a token by mistake: caches must not keep it, and browsers must not send it as referrer.
    'Cache-Control': 'no-store',
    'Referrer-Policy': 'no-referrer',
  }
  if (SESSION_CODES.includes(problem.code)) {
    headers['WWW-Authenticate'] = SESSION_REALM
  } else if (HOOK_CODES.includes(problem.code)) {
    headers['WWW-Authenticate'] = `${HOOK_REALM}, error="${problem.code}"`
  } else if (kind === 'unauthenticated') {
    // RFC 6750: a request without credentials gets a challenge without an error.
    headers['WWW-Authenticate'] =
      problem.code === 'missing_token' ? REALM : `${REALM}, error="invalid_token", ${description(problem)}`
  }
  if (problem.code === 'forbidden_scope') {
    const scope = problem.scope === undefined ? '' : ` scope="${problem.scope}",`
    headers['WWW-Authenticate'] = `${REALM}, error="insufficient_scope",${scope} ${description(problem)}`
  }
  if (kind === 'unavailable' || kind === 'too_many')
    headers['Retry-After'] = String(problem.retryAfterS ?? RETRY_AFTER_S)
  if (problem.code === 'unsupported_encoding') headers['Accept-Encoding'] = 'gzip, identity'
  if (problem.allow !== undefined) headers.Allow = problem.allow
  return headers
}

/** RFC 6750 allows printable ASCII without quotes and backslashes. */
function description({ code, message = ERRORS[code].message }: Problem): string {
  return `error_description="${message.replaceAll('"', "'")}"`
}
