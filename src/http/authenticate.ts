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

/** Null if the request may pass; the exchange then knows its principal. */
export async function authenticate(
  gate: Gate,
  route: Route,
  req: IncomingMessage,
  exchange: Exchange,
): Promise<Problem | null> {
  const credentials = bearerToken(req.rawHeaders)
  if ('problem' in credentials) return credentials.problem
  return admit(gate, route, credentials.token, exchange)
}

export async function admit(gate: Gate, route: Route, token: string, exchange: Exchange): Promise<Problem | null> {
  const answer = gate.principals.authenticate(token)
  const found: Authentication = answer instanceof Promise ? await answer : answer
  if ('problem' in found) return found.problem
  exchange.principal = found.principal
  return scopeProblem(gate, route, found.principal)
}

function scopeProblem(gate: Gate, route: Route, principal: Principal): Problem | null {
  return scopeAllows(route.scope, principal.scope, gate.intakeScopes) ? null : { code: 'forbidden_scope' }
}
