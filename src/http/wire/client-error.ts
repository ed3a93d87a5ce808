// Answers requests that Node's parser rejects or that time out. They never reach a handler, so the answer is written to the
// socket.

import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Problem } from '../../model/errors.ts'
import { newUuid } from '../../runtime/id.ts'
import type { Logger } from '../../runtime/log.ts'
import { exchangeOf } from '../exchange.ts'
import { invalidRequest, renderProblem } from '../problem.ts'
import { answerText } from './answer-text.ts'
import { openAnswer } from './open-answer.ts'
import { serialRequests } from './serial-requests.ts'

export function createClientErrorHandler(logger: Logger): (error: Error, socket: Socket) => void {
  return (error, socket) => {
    const code = (error as NodeJS.ErrnoException).code ?? ''
    if (code === 'ECONNRESET' || !socket.writable) {
      socket.destroy()
      return
    }
    // What follows is not looked at.
    serialRequests(socket)?.stop()
    const open = openAnswer(socket)
    if (open?.headersSent) return endLinger(open, socket)
    const exchange = open ? exchangeOf(open) : null
    const requestId = exchange?.requestId ?? newUuid()
    const problem = problemOf(code)
    if (exchange) exchange.error = problem.code
    logger.info('broken request', { request_id: requestId, error: problem.code, reason: code })
    socket.end(rawAnswer(problem, requestId), () => socket.destroy())
  }
}

/** The request was answered before its body broke: the rest is discarded until the client closes its side. */
function endLinger(answer: ServerResponse, socket: Socket): void {
  answer.once('close', () => socket.destroySoon())
  if (socket.readableEnded) answer.end()
  else socket.once('end', () => answer.end())
}

function problemOf(code: string): Problem {
  if (code === 'HPE_HEADER_OVERFLOW') return { code: 'headers_too_large' }
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return { code: 'request_timeout' }
  return invalidRequest('This is not a well-formed HTTP/1.1 request. Correct it and send it again.')
}

export function rawAnswer(problem: Problem, requestId: string): string {
  return answerText(renderProblem(problem, requestId), requestId, null, 'Connection: close')
}
