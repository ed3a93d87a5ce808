// Writes an answer to a response of Node, with the headers of every answer, and keeps the connection if it can.

import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Problem } from '../../model/errors.ts'
import type { Exchange } from '../exchange.ts'
import { type Answer, renderProblem } from '../problem.ts'
import { endAndLinger } from './body.ts'
import { closeAfterAnswer } from './open-answer.ts'

export const JSON_CONTENT = 'application/json; charset=utf-8'

/** Node discards unread bodies up to this size; for larger ones the connection is closed. */
const SKIPPABLE_BYTES = 64 * 1024

export function sendProblem(req: IncomingMessage, res: ServerResponse, exchange: Exchange, problem: Problem): void {
  exchange.error = problem.code
  sendAnswer(req, res, exchange, renderProblem(problem, exchange.requestId))
}

export function sendAnswer(req: IncomingMessage, res: ServerResponse, exchange: Exchange, answer: Answer): void {
  if (res.headersSent || res.destroyed) return
  const headers: string[] = ['X-Request-Id', exchange.requestId]
  // RFC 9110: a 204 has no Content-Length, and that of a 304 would be the length of the full body.
  if (answer.status !== 204 && answer.status !== 304)
    headers.push('Content-Length', String(Buffer.byteLength(answer.body)))
  for (const [name, value] of Object.entries(answer.headers)) headers.push(name, value)
  if (exchange.rateFields !== null) headers.push(...exchange.rateFields)
  const skippable = req.complete || (!exchange.awaitsContinue && restIsSmall(req))
  if (!skippable || exchange.lifecycle.stopping) {
    headers.push('Connection', 'close')
    closeAfterAnswer(req.socket)
  }
  res.writeHead(answer.status, headers)
  if (skippable || exchange.awaitsContinue) res.end(answer.body)
  else endAndLinger(req, res, answer.body)
}

function restIsSmall(req: IncomingMessage): boolean {
  if (req.headers['transfer-encoding'] !== undefined) return false
  return Number(req.headers['content-length'] ?? 0) <= SKIPPABLE_BYTES
}
