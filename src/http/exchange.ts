// One request and what became of it: the notes that end up in its log line and in its answer.

import type { IncomingMessage, ServerResponse } from 'node:http'
import type { ErrorCode } from '../model/errors.ts'
import type { Principal } from '../model/principal.ts'
import { newUuid } from '../runtime/id.ts'

export class Exchange {
  readonly requestId = newUuid()
  readonly startedAt = performance.now()
  /** The route's path as the table has it; null while unknown. */
  route: string | null = null
  principal: Principal | null = null
  error: ErrorCode | null = null
  bytesIn = 0
  eventId: number | null = null
  /** What intake made of it: stored, duplicate, conflict. */
  outcome: string | null = null
  /** The client has not been told to go on sending: it may never send its body. */
  awaitsContinue = false
}

const EXCHANGE = Symbol('exchange')

type WithExchange = ServerResponse & { [EXCHANGE]?: Exchange }

/** Attached to the response, because that is what outlives the handlers. */
export function beginExchange(res: ServerResponse): Exchange {
  const exchange = new Exchange()
  ;(res as WithExchange)[EXCHANGE] = exchange
  return exchange
}

export function exchangeOf(res: ServerResponse): Exchange {
  return (res as WithExchange)[EXCHANGE] ?? beginExchange(res)
}

/** The path alone: a query may hold a token, and no part of it is ever written down. */
export function pathOf(req: IncomingMessage): string {
  const url = req.url ?? '/'
  const query = url.indexOf('?')
  return query === -1 ? url : url.slice(0, query)
}
