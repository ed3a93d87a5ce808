// Requests that node's parser or clock gave up on: they never reach a handler, so their answers are written on the bare
// socket, in the same words as any other.

import type { Socket } from 'node:net'
import type { Problem } from '../../model/errors.ts'
import { newUuid } from '../../runtime/id.ts'
import type { Logger } from '../../runtime/log.ts'
import { exchangeOf } from '../exchange.ts'
import { renderProblem } from '../problem.ts'
import { answerText } from './answer-text.ts'
import { pendingAnswers } from './pending-answers.ts'

/** Sockets whose open answers have been left to finish. */
const finishing = new WeakSet<Socket>()

export function createClientErrorHandler(logger: Logger): (error: Error, socket: Socket) => void {
  return (error, socket) => {
    const code = (error as NodeJS.ErrnoException).code ?? ''
    if (code === 'ECONNRESET' || !socket.writable) {
      socket.destroy()
      return
    }
    const open = pendingAnswers(socket)
    if (finishThenClose(socket)) return
    const exchange = open[0] ? exchangeOf(open[0]) : null
    const requestId = exchange?.requestId ?? newUuid()
    const problem = problemOf(code)
    if (exchange) exchange.error = problem.code
    logger.info('broken request', { request_id: requestId, error: problem.code, reason: code })
    socket.end(rawAnswer(problem, requestId), () => socket.destroy())
  }
}

/**
 * Complete requests followed by garbage: they may be on their way to disk, and their answers must be their own. The
 * answers are let out, then the connection is closed. False if there are none.
 */
export function finishThenClose(socket: Socket): boolean {
  const lastWhole = pendingAnswers(socket).findLast((res) => res.headersSent || res.req.complete)
  if (!lastWhole) return false
  if (finishing.has(socket)) return true
  finishing.add(socket)
  const isLingering = lastWhole.headersSent && !lastWhole.writableEnded
  // Whoever lingers goes on reading what comes, to no effect, and has no reason to once the client has left.
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
  return {
    code: 'invalid_request',
    message: 'This is not a well-formed HTTP/1.1 request. Correct it and send it again.',
  }
}

export function rawAnswer(problem: Problem, requestId: string): string {
  return answerText(renderProblem(problem, requestId), requestId, null, 'Connection: close')
}
