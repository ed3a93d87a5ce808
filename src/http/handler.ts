// Request handlers: the type, and a runner that answers unexpected failures.

import type { IncomingMessage, ServerResponse } from 'node:http'
import { errorText, type Logger } from '../runtime/log.ts'
import type { Exchange } from './exchange.ts'
import type { Route } from './routes.ts'
import { sendProblem } from './wire/answer.ts'

export type Handler = (route: Route, req: IncomingMessage, res: ServerResponse, exchange: Exchange) => Promise<void>

/** An unexpected failure is answered 500 without detail; the detail goes to the log. */
export function runHandler(
  handler: Handler,
  route: Route,
  req: IncomingMessage,
  res: ServerResponse,
  exchange: Exchange,
  logger: Logger,
): void {
  handler(route, req, res, exchange).catch((error: unknown) => {
    logUnexpected(logger, error, exchange)
    sendProblem(req, res, exchange, { code: 'internal_error' })
  })
}

export function logUnexpected(logger: Logger, error: unknown, exchange: Exchange | null): void {
  const stack = error instanceof Error ? error.stack?.split('\n').slice(1, 6).join('\n') : undefined
  logger.error('unexpected failure', { request_id: exchange?.requestId, error: errorText(error), stack })
}
