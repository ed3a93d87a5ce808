// The only file that picks error statuses: turns a problem into status, headers and body.

import { type ErrorCode, ERRORS, type ErrorKind, type Problem } from '../model/errors.ts'

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

/** Seconds after which it makes sense to send again. */
const RETRY_AFTER_S = 1

const REALM = 'Bearer realm="intray"'
/** RFC 9110 asks for a challenge with every 401. No browser knows this one, so none asks for a password by itself. */
const SESSION_REALM = 'Session realm="intray console"'
const SESSION_CODES: readonly ErrorCode[] = ['not_signed_in', 'sign_in_failed']

export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | Uint8Array
}

/** One of words alone. */
export type TextAnswer = Answer & { readonly body: string }

export function statusOf(problem: Problem): number {
  return STATUS[ERRORS[problem.code].kind]
}

export function renderProblem(problem: Problem, requestId: string): TextAnswer {
  return { status: statusOf(problem), headers: headersOf(problem), body: bodyOf(problem, requestId) }
}

function bodyOf(problem: Problem, requestId: string): string {
  const { code } = problem
  // Fixed by the interface, to the letter. Its sentence is in WWW-Authenticate.
  if (code === 'forbidden_scope') return '{"ok":false,"error":"forbidden_scope"}'
  const row = ERRORS[code]
  return JSON.stringify({
    ok: false,
    error: code,
    message: problem.message ?? row.message,
    request_id: requestId,
    retryable: row.retryable,
    fields: problem.fields,
    max_bytes: problem.maxBytes,
    stored: storedOf(problem),
  })
}

/** For a 503 the sender has to know whether a second copy is possible. */
function storedOf({ code }: Problem): string | undefined {
  if (code === 'storage_unavailable') return 'unknown'
  return ERRORS[code].kind === 'unavailable' ? 'no' : undefined
}

function headersOf(problem: Problem): Record<string, string> {
  const { kind, message } = ERRORS[problem.code]
  const headers: Record<string, string> = {
    'Content-Type': 'application/json; charset=utf-8',
    // A refused address may hold a token by mistake: nobody is to keep it or pass it on.
    'Cache-Control': 'no-store',
    'Referrer-Policy': 'no-referrer',
  }
  if (SESSION_CODES.includes(problem.code)) {
    headers['WWW-Authenticate'] = SESSION_REALM
  } else if (kind === 'unauthenticated') {
    // RFC 6750: a request without credentials gets a challenge without an error.
    headers['WWW-Authenticate'] =
      problem.code === 'missing_token'
        ? REALM
        : `${REALM}, error="invalid_token", error_description="${quotable(message)}"`
  }
  if (problem.code === 'forbidden_scope') {
    headers['WWW-Authenticate'] = `${REALM}, error="insufficient_scope", error_description="${quotable(message)}"`
  }
  if (kind === 'unavailable' || kind === 'too_many')
    headers['Retry-After'] = String(problem.retryAfterS ?? RETRY_AFTER_S)
  if (problem.code === 'unsupported_encoding') headers['Accept-Encoding'] = 'gzip, identity'
  if (problem.allow !== undefined) headers.Allow = problem.allow
  return headers
}

function quotable(text: string): string {
  return text.replaceAll('"', "'")
}
