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
    message: 'The request is malformed. Correct it and send it again.',
  },
  invalid_json: {
    kind: 'malformed',
    retryable: false,
    message: 'The body is not one JSON object in valid UTF-8. Correct it and send it again.',
  },
  missing_token: {
    kind: 'unauthenticated',
    retryable: false,
    message: 'The request has no token. Send the header "Authorization: Bearer <API token>".',
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
  unknown_hook: {
    kind: 'unauthenticated',
    retryable: false,
    message:
      'The address of this hook is not known here. Check that it was copied whole, or ask the operator for it: ./intray hook show.',
  },
  hook_disabled: {
    kind: 'unauthenticated',
    retryable: false,
    message: 'This hook has been disabled. Ask the operator to enable it, or for the address of a new one.',
  },
  hook_expired: {
    kind: 'unauthenticated',
    retryable: false,
    message: 'This hook has expired. Ask the operator for the address of a new one.',
  },
  invalid_signature: {
    kind: 'unauthenticated',
    retryable: false,
    message:
      'The signature of this request is not that of the secret of this hook. Compare the secret at both ends, and send the request again.',
  },
  forbidden_scope: {
    kind: 'forbidden',
    retryable: false,
    message: 'The scope of this token does not allow this call. Ask the operator for a token with the scope it needs.',
  },
  not_signed_in: {
    kind: 'unauthenticated',
    retryable: false,
    message: 'You are not signed in to the console, or your session is over. Sign in at /console and try again.',
  },
  sign_in_failed: {
    kind: 'unauthenticated',
    retryable: false,
    message:
      'The name and password, or the link, are not valid. Check them, or ask for a new link: ./intray operator link NAME.',
  },
  forbidden_role: {
    kind: 'forbidden',
    retryable: false,
    message: 'Your role may read, but not change anything. Ask an operator with the role admin to do it.',
  },
  forbidden_origin: {
    kind: 'forbidden',
    retryable: false,
    message:
      'The Origin header does not name this server. Use the console at its own address; a proxy in front must pass Host on.',
  },
  not_found: {
    kind: 'unknown',
    retryable: false,
    message: 'There is nothing at this address. Check the path and the id; /docs lists every address.',
  },
  method_not_allowed: {
    kind: 'wrong_method',
    retryable: false,
    message: 'This address does not take that method. Use one of those that the Allow header lists.',
  },
  erased: {
    kind: 'gone',
    retryable: false,
    message: 'The content of this event was erased for good. Remove it on your side as well.',
  },
  request_timeout: {
    kind: 'too_slow',
    retryable: true,
    message: 'The request took too long to arrive, and nothing was stored. Send it again.',
  },
  lease_lost: {
    kind: 'conflict',
    retryable: false,
    message:
      'This lease no longer holds the event, and nothing was changed. Discard your result, or claim the event again.',
  },
  cursor_ahead: {
    kind: 'conflict',
    retryable: false,
    message:
      'This database did not give out the id of this cursor: it was restored from a backup, and newer messages were lost. ' +
      'Begin again without a cursor, or go on after the last id that it has.',
  },
  too_many_subscriptions: {
    kind: 'conflict',
    retryable: false,
    message: 'This tenant has as many subscriptions as this service allows. Delete one, then create this one again.',
  },
  payload_too_large: {
    kind: 'too_large',
    retryable: false,
    message: 'The body is larger than this service takes. Send at most max_bytes bytes, counted after decompression.',
  },
  unsupported_media_type: {
    kind: 'wrong_media',
    retryable: false,
    message:
      'The Content-Type is not one that JSON is sent with. Send JSON with the header "Content-Type: application/json".',
  },
  unsupported_encoding: {
    kind: 'wrong_media',
    retryable: false,
    message:
      'The Content-Encoding is not gzip. Send the body uncompressed, or with the header "Content-Encoding: gzip".',
  },
  expectation_failed: {
    kind: 'wrong_expectation',
    retryable: false,
    message: 'The Expect header asks for something other than 100-continue. Leave the header out.',
  },
  invalid_payload: {
    kind: 'unusable',
    retryable: false,
    message: 'A field cannot be used. Correct each field that is listed in fields, and send it again.',
  },
  rate_limited: {
    kind: 'too_many',
    retryable: true,
    message: 'This token is above its rate limit, and nothing was stored. Send it again after Retry-After seconds.',
  },
  too_many_failures: {
    kind: 'too_many',
    retryable: false,
    message:
      'This token is not known here, and too many unknown tokens came from your address. Check the token; ' +
      'a valid one is accepted at once.',
  },
  headers_too_large: {
    kind: 'headers_too_large',
    retryable: false,
    message: 'The request line and headers are too large, or the headers too many. Send fewer or shorter ones.',
  },
  internal_error: {
    kind: 'bug',
    retryable: true,
    message:
      'Something went wrong on our side. Send it again with the same source_ref; if it happens again, report the request_id.',
  },
  overloaded: {
    kind: 'unavailable',
    retryable: true,
    message:
      'Too many messages are waiting to be stored, and this one was not stored. Send it again after Retry-After seconds.',
  },
  tenant_moved: {
    kind: 'unavailable',
    retryable: true,
    message:
      'This tenant is moved to another server, and nothing was stored here. Ask the operator for its address; the token stays the same.',
  },
  shutting_down: {
    kind: 'unavailable',
    retryable: true,
    message: 'This server is stopping, and this message was not stored. Send it again after Retry-After seconds.',
  },
  secrets_unavailable: {
    kind: 'unavailable',
    retryable: true,
    message:
      'The server lacks the key under which these secrets are sealed, and nothing was stored or changed. Its operator finds out ' +
      'more with ./intray doctor. Send it again after Retry-After seconds.',
  },
  storage_damaged: {
    kind: 'unavailable',
    retryable: true,
    message:
      'The server met damaged pages in its database: this could not be read, or not be stored. Its operator finds them with ' +
      './intray doctor. Other messages are not affected.',
  },
  storage_unavailable: {
    kind: 'unavailable',
    retryable: true,
    message:
      'The database did not confirm the write: the message may or may not be stored. Send it again after Retry-After ' +
      'seconds with the same source_ref or Idempotency-Key; without either a second copy is possible.',
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
  /** The one scope that the call needs, where there is one. */
  readonly scope?: string
  readonly maxBytes?: number
  readonly allow?: string
  /** Seconds for Retry-After, if more than the default. */
  readonly retryAfterS?: number
}
