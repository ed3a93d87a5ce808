// Ping and the legacy tester: is this token good, and whose is it? Nothing is stored.

import type { IncomingMessage } from 'node:http'
import { bearerToken } from '../auth/bearer.ts'
import type { Problem } from '../model/errors.ts'
import type { Principal } from '../model/principal.ts'
import type { Answer } from './problem.ts'
import { JSON_CONTENT } from './wire/answer.ts'

/** When the tester was deprecated (RFC 9745): 2025-11-15. */
const DEPRECATED_SINCE = '@1763164800'

export function pingAnswer(principal: Principal): Answer {
  return { status: 200, headers: NOT_CACHED, body: JSON.stringify(pingBody(principal)) }
}

export function testerAnswer(principal: Principal): Answer {
  return {
    status: 200,
    headers: { ...NOT_CACHED, 'Referrer-Policy': 'no-referrer', Deprecation: DEPRECATED_SINCE },
    body: JSON.stringify({ ...pingBody(principal), deprecated: true }),
  }
}

/** The tester's token: in the query, in the header, or the same in both. Nothing else ever reads a token from a query. */
export function testerToken(req: IncomingMessage): { readonly token: string } | { readonly problem: Problem } {
  const url = (req.url ?? '').replace(/#.*$/, '')
  const query = url.includes('?') ? new URLSearchParams(url.slice(url.indexOf('?') + 1)) : null
  const tokens = new Set(query?.getAll('token').filter((token) => token !== ''))
  const header = bearerToken(req.rawHeaders)
  if ('token' in header) tokens.add(header.token)
  else if (header.problem.code !== 'missing_token') return header
  const [token, ...others] = tokens
  if (token === undefined) return header
  if (others.length > 0) {
    return { problem: { code: 'invalid_request', message: 'The request has two different tokens. Send one.' } }
  }
  return { token }
}

const NOT_CACHED = { 'Content-Type': JSON_CONTENT, 'Cache-Control': 'no-store' }

function pingBody({ accountId, companyId, scope }: Principal) {
  return { ok: true, account_id: accountId, company_id: companyId, scope }
}
