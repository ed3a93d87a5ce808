// A message on its way in, from the fast path or from Node: what its handler reads of it, and how it is answered.

import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Problem } from '../model/errors.ts'
import type { Exchange } from './exchange.ts'
import { renderProblem, type TextAnswer } from './problem.ts'
import type { Route } from './routes.ts'
import { sendAnswer } from './wire/answer.ts'
import type { BodyReservation } from './wire/body-memory.ts'
import { type CollectedBody, collectBodyStart, collectBody } from './wire/body.ts'
import type { RequestHead } from './wire/head.ts'

/** An intake request, from the fast path or from Node. */
export interface IntakeCall {
  readonly route: Route
  readonly head: RequestHead
  readonly exchange: Exchange
  /** Called at most once. Synchronous if the body has arrived. */
  readBody(maxBytes: number, reservation: BodyReservation): CollectedBody | Promise<CollectedBody>
  /** The start of a body that is not read otherwise, as much as arrives. */
  readBodyStart(maxBytes: number): Buffer | Promise<Buffer>
  answer(answer: TextAnswer): void
}

const NOTHING = Buffer.alloc(0)

/** Of a request that Node parses. */
export function nodeCall(route: Route, req: IncomingMessage, res: ServerResponse, exchange: Exchange): IntakeCall {
  return {
    route,
    head: req,
    exchange,
    readBody: (maxBytes, reservation) => {
      if (exchange.awaitsContinue) {
        res.writeContinue()
        exchange.awaitsContinue = false
      }
      return collectBody(req, maxBytes, reservation)
    },
    readBodyStart: (maxBytes) =>
      exchange.awaitsContinue ? NOTHING : collectBodyStart(req, maxBytes).then(({ bytes }) => bytes),
    answer: (answer) => sendAnswer(req, res, exchange, answer),
  }
}

export function answerProblem(call: IntakeCall, problem: Problem): void {
  call.exchange.error = problem.code
  call.answer(renderProblem(problem, call.exchange.requestId))
}
