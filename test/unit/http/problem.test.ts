import assert from 'node:assert/strict'
import { test } from 'node:test'
import { renderProblem } from '../../../src/http/problem.ts'
import { ERRORS, type ErrorCode } from '../../../src/model/errors.ts'

const CODES = Object.keys(ERRORS) as ErrorCode[]

/** The statuses of the design, repeated here, because each is a promise. */
const STATUSES: Record<ErrorCode, number> = {
  invalid_request: 400,
  invalid_json: 400,
  missing_token: 401,
  invalid_token: 401,
  token_disabled: 401,
  token_expired: 401,
  unknown_hook: 401,
  hook_disabled: 401,
  hook_expired: 401,
  invalid_signature: 401,
  forbidden_scope: 403,
  not_signed_in: 401,
  sign_in_failed: 401,
  forbidden_role: 403,
  forbidden_origin: 403,
  not_found: 404,
  method_not_allowed: 405,
  erased: 410,
  request_timeout: 408,
  lease_lost: 409,
  cursor_ahead: 409,
  too_many_subscriptions: 409,
  payload_too_large: 413,
  unsupported_media_type: 415,
  unsupported_encoding: 415,
  expectation_failed: 417,
  invalid_payload: 422,
  rate_limited: 429,
  too_many_failures: 429,
  headers_too_large: 431,
  internal_error: 500,
  overloaded: 503,
  tenant_moved: 503,
  shutting_down: 503,
  secrets_unavailable: 503,
  storage_damaged: 503,
  storage_unavailable: 503,
}

test('every error has the status of the design', () => {
  for (const code of CODES) assert.equal(renderProblem({ code }, 'r').status, STATUSES[code], code)
})

test('an error is ok, error, message, request_id and retryable', () => {
  assert.deepEqual(JSON.parse(renderProblem({ code: 'not_found' }, 'r-1').body), {
    ok: false,
    error: 'not_found',
    message: ERRORS.not_found.message,
    request_id: 'r-1',
    retryable: false,
  })
})

test('a forbidden scope is these two fields alone, and its sentence is in the challenge', () => {
  const fixed = '{"ok":false,"error":"forbidden_scope"}'
  const start = 'Bearer realm="intray", error="insufficient_scope",'
  const plain = renderProblem({ code: 'forbidden_scope' }, 'r')
  assert.equal(plain.body, fixed)
  assert.equal(plain.headers['WWW-Authenticate'], `${start} error_description="${ERRORS.forbidden_scope.message}"`)
  const told = renderProblem({ code: 'forbidden_scope', message: 'Needs "cf".', scope: 'cf' }, 'r')
  assert.equal(told.body, fixed)
  assert.equal(told.headers['WWW-Authenticate'], `${start} scope="cf", error_description="Needs 'cf'."`)
})

test('only what may succeed later is retryable', () => {
  const retryable = CODES.filter((code) => ERRORS[code].retryable)
  assert.deepEqual(retryable.toSorted(), [
    'internal_error',
    'overloaded',
    'rate_limited',
    'request_timeout',
    'secrets_unavailable',
    'shutting_down',
    'storage_damaged',
    'storage_unavailable',
    'tenant_moved',
  ])
})

test('a 503 says whether it was stored and when to send again', () => {
  for (const [code, stored] of [
    ['overloaded', 'no'],
    ['tenant_moved', 'no'],
    ['shutting_down', 'no'],
    ['secrets_unavailable', 'no'],
    ['storage_damaged', 'no'],
    ['storage_unavailable', 'unknown'],
  ] as const) {
    const { headers, body } = renderProblem({ code }, 'r')
    assert.equal(JSON.parse(body).stored, stored)
    assert.match(headers['Retry-After'] ?? '', /^[1-9]\d*$/)
  }
})

test('a challenge names an error only where there was a token', () => {
  assert.equal(renderProblem({ code: 'missing_token' }, 'r').headers['WWW-Authenticate'], 'Bearer realm="intray"')
  for (const code of ['invalid_token', 'token_disabled', 'token_expired'] as const) {
    const challenge = renderProblem({ code }, 'r').headers['WWW-Authenticate'] ?? ''
    assert.match(challenge, /^Bearer realm="intray", error="invalid_token", error_description="[^"]+"$/)
  }
})

test('without a session the challenge is one that no browser knows, and names no error', () => {
  for (const code of ['not_signed_in', 'sign_in_failed'] as const) {
    assert.equal(renderProblem({ code }, 'r').headers['WWW-Authenticate'], 'Session realm="intray console"')
  }
})

test('a rate limit answers with Retry-After', () => {
  assert.equal(renderProblem({ code: 'rate_limited' }, 'r').headers['Retry-After'], '1')
  assert.equal(renderProblem({ code: 'rate_limited', retryAfterS: 32 }, 'r').headers['Retry-After'], '32')
})

test('every sentence says what to do, and can stand in a header', () => {
  for (const code of CODES) {
    const { message } = ERRORS[code]
    assert.match(message, /^[A-Z][\x20-\x7e]+[.]$/, code)
    for (const value of Object.values(renderProblem({ code }, 'r').headers)) assert.match(value, /^[\x20-\x7e]+$/)
  }
})

test('the message of unusable fields is that of the first, with its path', () => {
  const messageOf = (...messages: string[]) => {
    const fields = messages.map((message, n) => ({ path: `/f/${n}`, code: 'c', message }))
    return JSON.parse(renderProblem({ code: 'invalid_payload', fields }, 'r').body).message as string
  }
  assert.equal(messageOf('`f` is long. Cut it.'), '`f` is long (/f/0). Cut it.')
  assert.equal(messageOf('Takes "." and 1.5.'), 'Takes "." and 1.5 (/f/0).')
  assert.equal(messageOf('A.', 'B.'), 'A (/f/0). Another problem is listed in fields.')
  assert.equal(messageOf('A.', 'B.', 'C.'), 'A (/f/0). 2 other problems are listed in fields.')
})

test('the details of a problem are in its body', () => {
  const fields = [{ path: '/source_ref', code: 'too_long', message: 'Shorten it.' }]
  assert.deepEqual(JSON.parse(renderProblem({ code: 'invalid_payload', fields }, 'r').body).fields, fields)
  assert.equal(JSON.parse(renderProblem({ code: 'payload_too_large', maxBytes: 9 }, 'r').body).max_bytes, 9)
  assert.equal(renderProblem({ code: 'method_not_allowed', allow: 'GET' }, 'r').headers.Allow, 'GET')
})
