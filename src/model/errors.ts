// The catalogue: every failure a caller can meet is a row here. docs/sending/errors.md and api/openapi.yaml are tested
// against it. Codes never change; sentences may. http/problem.ts alone turns a kind into a status.

/** The kind of a failure; each kind has one HTTP status. */
export type ErrorKind =
  | 'malformed'
  | 'unauthenticated'
  | 'forbidden'
  | 'unknown'
  | 'wrong_method'
  | 'conflict'
  | 'gone'
  | 'too_slow'
  | 'too_large'
  | 'wrong_media'
  | 'wrong_expectation'
  | 'unusable'
  | 'too_many'
  | 'headers_too_large'
  | 'bug'
  | 'unavailable'

interface ErrorRow {
  readonly kind: ErrorKind
  /** True: the same request may succeed later. False: it never will. */
  readonly retryable: boolean
  /** Says what to do next. */
  readonly message: string
}

export const ERRORS = {
  invalid_request: {
    kind: 'malformed',
    retryable: false,
    message: 'The request itself is malformed. Correct it and send it again.',
  },
  invalid_json: {
    kind: 'malformed',
    retryable: false,
    message: 'The body must be one JSON object in valid UTF-8. Correct the body and send it again.',
  },
  missing_token: {
    kind: 'unauthenticated',
    retryable: false,
    message: 'Send the header "Authorization: Bearer <API token>".',
  },
  invalid_token: {
    kind: 'unauthenticated',
    retryable: false,
    message: 'This token is not known here. Check that it was copied whole, or ask the operator for a new one.',
  },
  token_disabled: {
    kind: 'unauthenticated',
    retryable: false,
    message: 'This token has been disabled. Ask the operator for a new one.',
  },
  token_expired: {
    kind: 'unauthenticated',
    retryable: false,
    message: 'This token has expired. Ask the operator for a new one.',
  },
  forbidden_scope: {
    kind: 'forbidden',
    retryable: false,
    message: 'The scope of this token does not allow this call. Use a token made for it.',
  },
  not_signed_in: {
    kind: 'unauthenticated',
    retryable: false,
    message: 'You are not signed in to the console, or no longer. Sign in and try again.',
  },
  sign_in_failed: {
    kind: 'unauthenticated',
    retryable: false,
    message: 'This name and password, or this link, do not let you in. Check them, or ask for a new link.',
  },
  forbidden_role: {
    kind: 'forbidden',
    retryable: false,
    message: 'Your role lets you look, not change. Ask an operator with the role admin.',
  },
  forbidden_origin: {
    kind: 'forbidden',
    retryable: false,
    message: 'What changes something has to come from the console itself: the header Origin must name this server.',
  },
  not_found: {
    kind: 'unknown',
    retryable: false,
    message: 'There is nothing at this address. Check the path and the id.',
  },
  method_not_allowed: {
    kind: 'wrong_method',
    retryable: false,
    message: 'This address does not take that method. The Allow header lists those it takes.',
  },
  erased: {
    kind: 'gone',
    retryable: false,
    message: 'This event was here, and its content was erased for good. Remove it on your side as well.',
  },
  request_timeout: {
    kind: 'too_slow',
    retryable: true,
    message: 'The request took too long to arrive and was not stored. Send it again.',
  },
  lease_lost: {
    kind: 'conflict',
    retryable: false,
    message: 'This lease no longer holds the event, and nothing was changed. Drop what you did for it, or claim again.',
  },
  too_many_subscriptions: {
    kind: 'conflict',
    retryable: false,
    message: 'There are as many subscriptions as this service allows. Delete one that is no longer needed first.',
  },
  payload_too_large: {
    kind: 'too_large',
    retryable: false,
    message: 'The body is larger than this service takes. Send at most max_bytes bytes, counted after decompression.',
  },
  unsupported_media_type: {
    kind: 'wrong_media',
    retryable: false,
    message: 'Send the body as JSON in UTF-8, with the header "Content-Type: application/json".',
  },
  unsupported_encoding: {
    kind: 'wrong_media',
    retryable: false,
    message: 'Send the body uncompressed, or with the header "Content-Encoding: gzip".',
  },
  expectation_failed: {
    kind: 'wrong_expectation',
    retryable: false,
    message: 'The only expectation this service meets is "Expect: 100-continue". Leave the header out.',
  },
  invalid_payload: {
    kind: 'unusable',
    retryable: false,
    message: 'The body is a JSON object, but a field that decides its identity cannot be used. See fields.',
  },
  rate_limited: {
    kind: 'too_many',
    retryable: true,
    message:
      'This token has used up its requests for now, and nothing was stored. Send it again after Retry-After seconds.',
  },
  too_many_failures: {
    kind: 'too_many',
    retryable: false,
    message:
      'This token is not known here, and neither were too many before it from the same address. Check the token; ' +
      'a valid one is let in at once.',
  },
  headers_too_large: {
    kind: 'headers_too_large',
    retryable: false,
    message: 'The request line and headers are larger than this service takes. Send fewer or shorter ones.',
  },
  internal_error: {
    kind: 'bug',
    retryable: true,
    message:
      'Something went wrong on our side. Send it again with the same source_ref; report the request_id if it stays.',
  },
  overloaded: {
    kind: 'unavailable',
    retryable: true,
    message: 'Too much is waiting to be stored. This message was not stored: send it again after Retry-After seconds.',
  },
  shutting_down: {
    kind: 'unavailable',
    retryable: true,
    message: 'This server is stopping. This message was not stored: send it again after Retry-After seconds.',
  },
  storage_unavailable: {
    kind: 'unavailable',
    retryable: true,
    message:
      'The message may or may not have been stored. Send it again after Retry-After seconds with the same source_ref ' +
      'or Idempotency-Key; without either a second copy is possible.',
  },
} as const satisfies Record<string, ErrorRow>

export type ErrorCode = keyof typeof ERRORS

/** One field that cannot be used. */
export interface FieldProblem {
  /** JSON Pointer. */
  readonly path: string
  readonly code: string
  readonly message: string
}

/** A failure on its way to the caller. */
export interface Problem {
  readonly code: ErrorCode
  /** Replaces the catalogue's sentence with a more specific one. Never quotes the request. */
  readonly message?: string
  readonly fields?: readonly FieldProblem[]
  readonly maxBytes?: number
  readonly allow?: string
  /** Seconds for Retry-After, if more than the default. */
  readonly retryAfterS?: number
}
