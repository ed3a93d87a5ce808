// What runs a request from its route to its answer.

import type { IncomingMessage, ServerResponse } from 'node:http'
import { errorText, type Logger } from '../runtime/log.ts'
import { sendAnswer, sendProblem } from './answer.ts'
import { collectBeside, collectBody } from './body.ts'
import type { Exchange } from './exchange.ts'
import type { IntakeLane } from './intake-lane.ts'
import type { Receiving } from './receiving.ts'
import type { Route } from './routes.ts'

export type Lane = (route: Route, req: IncomingMessage, res: ServerResponse, exchange: Exchange) => Promise<void>

/** Runs a lane to its end: a failure nobody foresaw is a 500 with no detail, and its detail a log line. */
export function runLane(
  lane: Lane,
  route: Route,
  req: IncomingMessage,
  res: ServerResponse,
  exchange: Exchange,
  logger: Logger,
): void {
  lane(route, req, res, exchange).catch((error: unknown) => {
    logUnexpected(logger, error, exchange)
    sendProblem(req, res, exchange, { code: 'internal_error' })
  })
}

export function logUnexpected(logger: Logger, error: unknown, exchange: Exchange | null): void {
  const stack = error instanceof Error ? error.stack?.split('\n').slice(1, 6).join('\n') : undefined
  logger.error('unexpected failure', { request_id: exchange?.requestId, error: errorText(error), stack })
}

const NOTHING = Buffer.alloc(0)

/** The intake lane for requests that node reads. */
export function createNodeIntakeLane(lane: IntakeLane, receiving: Receiving): Lane {
  return (route, req, res, exchange) =>
    lane({
      route,
      head: req,
      exchange,
      readBody: (maxBytes) => {
        if (exchange.awaitsContinue) {
          res.writeContinue()
          exchange.awaitsContinue = false
        }
        return collectBody(req, maxBytes, receiving.begin())
      },
      peekBody: (maxBytes) =>
        exchange.awaitsContinue ? NOTHING : collectBeside(req, maxBytes).then(({ bytes }) => bytes),
      answer: (answer) => sendAnswer(req, res, exchange, answer),
    })
}
