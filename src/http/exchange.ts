// The state of one request: what its answer and its log line need.

import type { ServerResponse } from 'node:http'
import type { SignedIn } from '../auth/sessions.ts'
import type { ErrorCode } from '../model/errors.ts'
import type { Principal } from '../model/principal.ts'
import { newUuid } from '../runtime/id.ts'

export interface Lifecycle {
  /** While true, connections are closed after their answer. */
  readonly stopping: boolean
}

export class Exchange {
  readonly lifecycle: Lifecycle
  readonly requestId = newUuid()
  readonly startedAt = performance.now()
  /** Null if the request is not traced. */
  traceId: string | null = null
  /** The path in the route table; null while unknown. */
  route: string | null = null
  principal: Principal | null = null
  /** The operator whose session the request has. */
  operator: SignedIn | null = null
  /** The target for the audit log; null: the path parameter. */
  auditTarget: string | null = null
  /** The operation changed nothing and leaves no audit entry. */
  isNoOp = false
  /** The address of the client, if known. */
  address: string | undefined = undefined
  /** RateLimit fields, for a token that has a limit. */
  rateFields: readonly string[] | null = null
  error: ErrorCode | null = null
  bytesIn = 0
  eventId: number | null = null
  /** Of intake: stored, duplicate or conflict. Of a stream: why it ended. */
  outcome: string | null = null
  /** The header Intray-Warnings of a stored message. */
  warnings: string | null = null
  /** The client waits for 100 Continue: its body may never come. */
  awaitsContinue = false

  constructor(lifecycle: Lifecycle) {
    this.lifecycle = lifecycle
  }
}

const EXCHANGE = Symbol('exchange')

type WithExchange = ServerResponse & { [EXCHANGE]?: Exchange }

/** Attached to the response, which outlives the handlers. */
export function beginExchange(res: ServerResponse, lifecycle: Lifecycle): Exchange {
  const exchange = new Exchange(lifecycle)
  ;(res as WithExchange)[EXCHANGE] = exchange
  return exchange
}

export function exchangeOf(res: ServerResponse): Exchange {
  return (res as WithExchange)[EXCHANGE] ?? beginExchange(res, { stopping: false })
}
