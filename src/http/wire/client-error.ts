// Answers requests that Node's parser rejects or that time out. They never reach a handler, so the answer is written to the
// socket.

import type { Socket } from 'node:net'
import type { Problem } from '../../model/errors.ts'
import { newUuid } from '../../runtime/id.ts'
import type { Logger } from '../../runtime/log.ts'
import { exchangeOf } from '../exchange.ts'
import { invalidRequest, renderProblem } from '../problem.ts'
import { answerText } from './answer-text.ts'
import { pendingAnswers } from './pending-answers.ts'

/** Sockets that close after their pending answers. */
const closing = new WeakSet<Socket>()

export function createClientErrorHandler(logger: Logger): (error: Error, socket: Socket) => void {
  return (error, socket) => {
    const code = (error as NodeJS.ErrnoException).code ?? ''
    if (code === 'ECONNRESET' || !socket.writable) {
      socket.destroy()
      return
    }
    const open = pendingAnswers(socket)
    if (closeAfterPendingAnswers(socket)) return
    const exchange = open[0] ? exchangeOf(open[0]) : null
    const requestId = exchange?.requestId ?? newUuid()
    const problem = problemOf(code)
    if (exchange) exchange.error = problem.code
    logger.info('broken request', { request_id: requestId, error: problem.code, reason: code })
    socket.end(rawAnswer(problem, requestId), () => socket.destroy())
  }
}

/** Closes the connection after the answers of its complete requests, which may be stored already. False if there are none. */
export function closeAfterPendingAnswers(socket: Socket): boolean {
  const lastWhole = pendingAnswers(socket).findLast((res) => res.headersSent || res.req.complete)
  if (!lastWhole) return false
  if (closing.has(socket)) return true
  closing.add(socket)
  const isLingering = lastWhole.headersSent && !lastWhole.writableEnded
  // A lingering close goes on discarding until the client closes its side.
  if (!isLingering) socket.pause()
  else if (socket.readableEnded) lastWhole.end()
  else socket.once('end', () => lastWhole.end())
  lastWhole.shouldKeepAlive = false
  lastWhole.once('close', () => socket.destroySoon())
  return true
}

function problemOf(code: string): Problem {
  if (code === 'HPE_HEADER_OVERFLOW') return { code: 'headers_too_large' }
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return { code: 'request_timeout' }
  return invalidRequest('This is not a well-formed HTTP/1.1 request. Correct it and send it again.')
}

export function rawAnswer(problem: Problem, requestId: string): string {
  return answerText(renderProblem(problem, requestId), requestId, null, 'Connection: close')
}
