// One request and what became of it: the notes that end up in its log line and in its answer.

import type { ServerResponse } from 'node:http'
import type { SignedIn } from '../auth/sessions.ts'
import type { ErrorCode } from '../model/errors.ts'
import type { Principal } from '../model/principal.ts'
import { newUuid } from '../runtime/id.ts'

/** What the server is about, as far as an answer has to know. */
export interface Lifecycle {
  /** Connections are closed after their answer. */
  readonly stopping: boolean
}

export class Exchange {
  readonly lifecycle: Lifecycle
  readonly requestId = newUuid()
  readonly startedAt = performance.now()
  /** The route's path as the table has it; null while unknown. */
  route: string | null = null
  principal: Principal | null = null
  /** The operator whose session it came with. */
  operator: SignedIn | null = null
  /** What it was done to, for the audit log; null: what the address names. */
  auditTarget: string | null = null
  /** It changed nothing after all, and the audit log has nothing to tell. */
  isNoOp = false
  /** Where it comes from, as far as that is known. */
  address: string | undefined = undefined
  /** RateLimit fields, for a token that has a limit. */
  rateFields: readonly string[] | null = null
  error: ErrorCode | null = null
  bytesIn = 0
  eventId: number | null = null
  /** What intake made of it: stored, duplicate, conflict. */
  outcome: string | null = null
  /** The client has not been told to go on sending: it may never send its body. */
  awaitsContinue = false

  constructor(lifecycle: Lifecycle) {
    this.lifecycle = lifecycle
  }
}

const EXCHANGE = Symbol('exchange')

type WithExchange = ServerResponse & { [EXCHANGE]?: Exchange }

/** Attached to the response, because that is what outlives the handlers. */
export function beginExchange(res: ServerResponse, lifecycle: Lifecycle): Exchange {
  const exchange = new Exchange(lifecycle)
  ;(res as WithExchange)[EXCHANGE] = exchange
  return exchange
}

export function exchangeOf(res: ServerResponse): Exchange {
  return (res as WithExchange)[EXCHANGE] ?? beginExchange(res, { stopping: false })
}
