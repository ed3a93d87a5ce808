// One wide line for each request, written when its answer is out or its client is gone. Nothing in it can hold a
// secret: no header but the user agent, no query, no body, and what came from outside is redacted by shape.

import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Logger } from '../runtime/log.ts'
import { createRedactor, redactText } from '../runtime/redact.ts'
import { type Exchange, pathOf } from './exchange.ts'
import { remoteAddress } from './remote-address.ts'

const MAX_PATH = 200

export type LogExchange = (exchange: Exchange, req: IncomingMessage, res: ServerResponse) => void

export function createAccessLog(logger: Logger, remoteAddr: 'full' | 'truncated' | 'off'): LogExchange {
  return (exchange, req, res) => {
    const status = res.headersSent ? res.statusCode : null
    const level = status !== null && status >= 500 ? 'warn' : 'info'
    if (!logger.isLevelEnabled(level)) return
    logger[level](
      {
        request_id: exchange.requestId,
        method: req.method,
        route: exchange.route,
        path: exchange.route === null ? redactText(pathOf(req)).slice(0, MAX_PATH) : undefined,
        status,
        error: exchange.error ?? undefined,
        outcome: exchange.outcome ?? undefined,
        event_id: exchange.eventId ?? undefined,
        key_id: exchange.principal?.keyId,
        account_id: exchange.principal?.accountId,
        company_id: exchange.principal?.companyId,
        scope: exchange.principal?.scope,
        bytes_in: exchange.bytesIn,
        ms: Math.round((performance.now() - exchange.startedAt) * 100) / 100,
        remote_addr: remoteAddress(req.socket.remoteAddress, remoteAddr) ?? undefined,
        user_agent: shortAgent(req.headers['user-agent']),
        client_gone: res.writableFinished ? undefined : true,
      },
      'request',
    )
  }
}

const redactAgent = createRedactor(MAX_PATH)

function shortAgent(agent: string | undefined): string | undefined {
  return agent === undefined ? undefined : redactAgent(agent)
}
