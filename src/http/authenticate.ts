// Token and scope of a request, as its route asks for them.

import type { IncomingMessage } from 'node:http'
import { bearerToken } from '../auth/bearer.ts'
import type { Authentication, Principals } from '../auth/principals.ts'
import { scopeAllows } from '../auth/scope.ts'
import type { Problem } from '../model/errors.ts'
import type { Principal } from '../model/principal.ts'
import type { Exchange } from './exchange.ts'
import type { Route } from './routes.ts'

export interface Gate {
  readonly principals: Principals
  readonly intakeScopes: readonly string[] | null
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
    if ('problem' in found) return found.problem
    exchange.principal = found.principal
    return scopeProblem(gate, route, found.principal)
  }
  const answer = gate.principals.authenticate(token)
  return answer instanceof Promise ? answer.then(judge) : judge(answer)
}

function scopeProblem(gate: Gate, route: Route, principal: Principal): Problem | null {
  return scopeAllows(route.scope, principal.scope, gate.intakeScopes) ? null : { code: 'forbidden_scope' }
}
