// Token and scope of a request, as its route asks for them.

import type { IncomingMessage } from 'node:http'
import { bearerToken } from '../auth/bearer.ts'
import type { FailedTokens } from '../auth/failed-tokens.ts'
import type { Authentication, Principals } from '../auth/principals.ts'
import type { TokenBucket } from '../auth/rate-limit.ts'
import { scopeAllows } from '../auth/scope.ts'
import type { Problem } from '../model/errors.ts'
import type { Principal } from '../model/principal.ts'
import type { Clock } from '../runtime/clock.ts'
import type { Exchange } from './exchange.ts'
import type { Route } from './routes.ts'

export interface Gate {
  readonly principals: Principals
  readonly intakeScopes: readonly string[] | null
  readonly failedTokens: FailedTokens
  readonly clock: Clock
}

type Admission = Problem | null

/** Null if the request may pass; the exchange then knows its principal. Answers at once for a token in memory. */
export function authenticate(
  gate: Gate,
  route: Route,
  req: IncomingMessage,
  exchange: Exchange,
): Admission | Promise<Admission> {
  const credentials = bearerToken(req.rawHeaders)
  if ('problem' in credentials) return credentials.problem
  return admit(gate, route, credentials.token, exchange)
}

export function admit(gate: Gate, route: Route, token: string, exchange: Exchange): Admission | Promise<Admission> {
  const judge = (found: Authentication): Admission => {
    if ('problem' in found) return failureProblem(gate, found.problem, exchange)
    exchange.principal = found.principal
    const forbidden = scopeProblem(gate, route, found.principal)
    return found.bucket === null ? forbidden : rateProblem(gate, found.bucket, forbidden, exchange)
  }
  const answer = gate.principals.authenticate(token)
  return answer instanceof Promise ? answer.then(judge) : judge(answer)
}

function scopeProblem(gate: Gate, route: Route, principal: Principal): Problem | null {
  return scopeAllows(route.scope, principal.scope, gate.intakeScopes) ? null : { code: 'forbidden_scope' }
}

/** Only what failed is counted, and only its answer changes. Whoever shows a whole secret (disabled, expired) is not guessing. */
function failureProblem(gate: Gate, problem: Problem, { address }: Exchange): Problem {
  const waitS = problem.code === 'invalid_token' ? gate.failedTokens.note(address) : null
  return waitS === null ? problem : { code: 'too_many_failures', retryAfterS: waitS }
}

/** Tells a token with a limit where it stands, whatever the answer is. A call that its scope forbids takes nothing. */
function rateProblem(gate: Gate, bucket: TokenBucket, forbidden: Problem | null, exchange: Exchange): Problem | null {
  const now = gate.clock.now()
  const { isAllowed, remaining, resetS } = forbidden ? bucket.look(now) : bucket.take(now)
  const { requests, windowMs } = bucket.limit
  exchange.rateFields = [
    ...['RateLimit-Policy', `"token";q=${requests};w=${Math.ceil(windowMs / 1000)}`],
    ...['RateLimit', `"token";r=${remaining};t=${resetS}`],
  ]
  if (forbidden) return forbidden
  return isAllowed ? null : { code: 'rate_limited', retryAfterS: resetS }
}
