// The errors of the client. Whatever it throws or reports about the service is one of the first three; none of them holds the
// token. A handler may throw the last.

export interface FieldProblem {
  /** A JSON Pointer, such as /source_ref. */
  readonly path: string
  readonly message: string
}

/** The service refused the request for what it is. The same request will be refused again. */
export class Refused extends Error {
  override readonly name = 'Refused'
  readonly status: number
  /** A code of docs/sending/errors.md, or `status 404` where the answer has none. */
  readonly code: string
  readonly fields: readonly FieldProblem[]
  readonly requestId: string | null

  constructor(
    status: number,
    code: string,
    message: string,
    more: { fields?: readonly FieldProblem[]; requestId?: string | null } = {},
  ) {
    super(message)
    this.status = status
    this.code = code
    this.fields = more.fields ?? []
    this.requestId = more.requestId ?? null
  }
}

/** The service cannot take the request now. The same request may succeed later. */
export class Unavailable extends Error {
  override readonly name = 'Unavailable'
  /** Null if there was no answer. */
  readonly status: number | null
  readonly code: string
  /** What Retry-After asks for. */
  readonly retryAfterMs: number | null
  /** True if somebody has to change the token or the address first. */
  readonly needsFix: boolean

  constructor(
    status: number | null,
    code: string,
    message: string,
    more: { retryAfterMs?: number | null; needsFix?: boolean } = {},
  ) {
    super(message)
    this.status = status
    this.code = code
    this.retryAfterMs = more.retryAfterMs ?? null
    this.needsFix = more.needsFix ?? false
  }
}

/** A handler's event belongs to somebody else by now: what the handler did does not count. */
export class LeaseLost extends Error {
  override readonly name = 'LeaseLost'
  readonly eventId: number

  constructor(eventId: number) {
    super(`The lease of event ${eventId} was lost: another processor may have the event.`)
    this.eventId = eventId
  }
}

/** Thrown by a handler: no attempt will succeed. The event is dead at once, with this message as its error. */
export class Unrecoverable extends Error {
  override readonly name = 'Unrecoverable'
}
