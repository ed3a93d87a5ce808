// Ping and the legacy tester: tell a sender whether its token is valid, and its tenant and scope. Nothing is stored.

import type { IncomingMessage } from 'node:http'
import { bearerToken } from '../auth/bearer.ts'
import type { Problem } from '../model/errors.ts'
import type { Principal } from '../model/principal.ts'
import { type Answer, invalidRequest } from './problem.ts'
import { jsonAnswer } from './call.ts'

/** When the tester was deprecated (RFC 9745): 2025-11-15. */
const DEPRECATED_SINCE = '@1763164800'
const TWO_TOKENS = invalidRequest('The request has two different tokens. Send one.')

export function pingAnswer(principal: Principal): Answer {
  return jsonAnswer(pingFields(principal))
}

export function testerAnswer(principal: Principal): Answer {
  const headers = { 'Referrer-Policy': 'no-referrer', Deprecation: DEPRECATED_SINCE }
  return jsonAnswer({ ...pingFields(principal), deprecated: true }, headers)
}

/** The tester's token, from the query, the header, or the same in both. No other route reads a token from the query. */
export function testerToken(req: IncomingMessage): { readonly token: string } | { readonly problem: Problem } {
  const url = (req.url ?? '').replace(/#.*$/, '')
  const query = url.includes('?') ? new URLSearchParams(url.slice(url.indexOf('?') + 1)) : null
  const tokens = new Set(query?.getAll('token').filter((token) => token !== ''))
  const header = bearerToken(req.rawHeaders)
  if ('token' in header) tokens.add(header.token)
  else if (header.problem.code !== 'missing_token') return header
  const [token, ...others] = tokens
  if (token === undefined) return header
  return others.length > 0 ? { problem: TWO_TOKENS } : { token }
}

function pingFields({ accountId, companyId, scope }: Principal) {
  return { account_id: accountId, company_id: companyId, scope }
}
