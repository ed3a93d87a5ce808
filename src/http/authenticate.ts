// Authenticates a request for a route: a token with a scope, or an operator's session with a role and a tenant. An
// Authorization header takes precedence over the cookie; a route with `operator: 'none'` ignores the cookie.

import { bearerToken, type Credentials } from '../auth/bearer.ts'
import type { FailedTokenLimiter } from '../auth/failed-token-limiter.ts'
import type { Authentication, Grant, Principals, PresentedToken } from '../auth/principals.ts'
import type { TokenBucket } from '../auth/rate-limit.ts'
import { scopeAllows, scopeNeeded } from '../auth/scope.ts'
import type { FoundSession } from '../auth/sessions.ts'
import type { ErrorCode, Problem } from '../model/errors.ts'
import { maySee, operatorKeyId, roleAllows } from '../model/operator.ts'
import { OPERATOR_SCOPE, type Principal, parseTenant, type Tenant } from '../model/principal.ts'
import type { Clock } from '../runtime/clock.ts'
import { sessionCookie } from './cookie.ts'
import type { Exchange } from './exchange.ts'
import { invalidRequest } from './problem.ts'
import type { Route } from './routes.ts'
import { originProblem } from './same-origin.ts'
import { orUnavailable } from './unavailable.ts'
import { hasTokenInQuery, type RequestHead } from './wire/head.ts'
import { headerValues } from './wire/raw-headers.ts'

export interface AuthServices {
  readonly principals: Principals
  readonly intakeScopes: readonly string[] | null
  readonly failedTokens: FailedTokenLimiter
  readonly clock: Clock
  /** Null while the console is turned off. */
  readonly operators: OperatorSessions | null
}

export interface OperatorSessions {
  find(cookie: string): Promise<FoundSession>
  hasTenant(tenant: Tenant): Promise<boolean>
}

type Admission = Problem | null

const NOT_SIGNED_IN: Problem = { code: 'not_signed_in' }
const NO_TENANT = invalidRequest(
  'The request does not name one tenant. Send the header "Intray-Tenant: <account_id>/<company_id>" once.',
)
const TOKEN_IN_QUERY: Problem = {
  code: 'missing_token',
  message:
    'This address takes no token in the query. Send the header "Authorization: Bearer <API token>" instead, ' +
    'and rotate that token: addresses end up in logs.',
}
const HOOK_CODES: Partial<Record<ErrorCode, ErrorCode>> = {
  invalid_token: 'unknown_hook',
  token_disabled: 'hook_disabled',
  token_expired: 'hook_expired',
}
const TOO_MANY_HOOKS =
  'The address of this hook is not known here, and too many unknown ones came from your address. Check it; a valid one is accepted at once.'
const TOKEN_FOR_SESSION: Problem = {
  code: 'not_signed_in',
  message: 'This address takes a session of the console, not a token. Sign in at /console.',
}

/** Null if the request may pass; sets the exchange's principal. Synchronous for a cached token. */
export function authenticate(
  auth: AuthServices,
  route: Route,
  req: RequestHead,
  exchange: Exchange,
): Admission | Promise<Admission> {
  if (route.operator !== 'none' && auth.operators && req.headers.authorization === undefined) {
    const cookie = sessionCookie(req)
    if (cookie !== null) return originProblem(req) ?? admitOperator(auth.operators, route, req, cookie, exchange)
  }
  if (route.scope === 'operator') return req.headers.authorization === undefined ? NOT_SIGNED_IN : TOKEN_FOR_SESSION
  return admitBearer(auth, route, req, bearerToken(req.rawHeaders), exchange)
}

/** For a route that takes only tokens. */
export function admitBearer(
  auth: AuthServices,
  route: Route,
  req: RequestHead,
  credentials: Credentials,
  exchange: Exchange,
): Admission | Promise<Admission> {
  if ('token' in credentials) return admit(auth, route, credentials, exchange)
  const { problem } = credentials
  return problem.code === 'missing_token' && hasTokenInQuery(req) ? TOKEN_IN_QUERY : problem
}

export function admit(
  auth: AuthServices,
  route: Route,
  token: PresentedToken,
  exchange: Exchange,
): Admission | Promise<Admission> {
  const decide = (found: Authentication): Admission => {
    if ('problem' in found) return failureProblem(auth, found.problem, exchange)
    exchange.principal = found.principal
    const forbidden = scopeProblem(auth, route, found.principal)
    return found.bucket === null ? forbidden : rateProblem(auth, found.bucket, forbidden, exchange)
  }
  const answer = auth.principals.authenticate(token)
  return answer instanceof Promise ? answer.then(decide) : decide(answer)
}

/** By the id in its address. Sets the exchange's principal once the whole id matched. */
export async function admitHook(auth: AuthServices, hookId: string, exchange: Exchange): Promise<Grant | Problem> {
  const found = await auth.principals.authenticateHook({ token: hookId })
  if ('problem' in found) {
    const { code, ...rest } = failureProblem(auth, found.problem, exchange)
    if (code === 'too_many_failures') return { ...rest, code, message: TOO_MANY_HOOKS }
    return { ...rest, code: HOOK_CODES[code] ?? code }
  }
  exchange.principal = found.principal
  const forbidden = scopeProblem(auth, { scope: 'intake' }, found.principal)
  const refused = found.bucket === null ? forbidden : rateProblem(auth, found.bucket, forbidden, exchange)
  return refused ?? found
}

function scopeProblem(auth: AuthServices, route: Pick<Route, 'scope'>, principal: Principal): Problem | null {
  const { scope } = principal
  return scopeAllows(route.scope, scope, auth.intakeScopes)
    ? null
    : { code: 'forbidden_scope', ...scopeNeeded(route.scope, scope, auth.intakeScopes) }
}

function admitOperator(
  operators: OperatorSessions,
  route: Route,
  req: RequestHead,
  cookie: string,
  exchange: Exchange,
): Promise<Admission> {
  return orUnavailable<Admission>(async () => {
    const found = await operators.find(cookie)
    if ('problem' in found) return found.problem
    exchange.operator = found.signedIn
    const { operator } = found.signedIn
    if (route.operator === 'none' || !roleAllows(route.operator, operator.role)) return { code: 'forbidden_role' }
    if (route.tenant === 'none') return null
    const [named = '', ...more] = headerValues(req.rawHeaders, 'intray-tenant')
    const tenant = more.length === 0 ? parseTenant(named.trim()) : null
    if (!tenant) return NO_TENANT
    // Reads the store in both cases, so that a forbidden tenant and an unknown one get the same answer in the same time.
    const exists = await operators.hasTenant(tenant)
    if (!exists || !maySee(operator, tenant)) return { code: 'not_found' }
    const { id, name } = operator
    exchange.principal = {
      ...tenant,
      keyId: operatorKeyId(operator),
      scope: OPERATOR_SCOPE,
      operator: { id, name },
    }
    return null
  })
}

/** Counts failures of unknown tokens only: a client with a disabled or expired token knew its secret and is not guessing. */
function failureProblem(auth: AuthServices, problem: Problem, { address }: Exchange): Problem {
  const waitS = problem.code === 'invalid_token' ? auth.failedTokens.recordFailure(address) : null
  return waitS === null ? problem : { code: 'too_many_failures', retryAfterS: waitS }
}

/** Sets the RateLimit fields in any case. A call that its scope forbids takes nothing from the bucket. */
function rateProblem(
  auth: AuthServices,
  bucket: TokenBucket,
  forbidden: Problem | null,
  exchange: Exchange,
): Problem | null {
  const now = auth.clock.now()
  const { isAllowed, remaining, resetS } = forbidden ? bucket.peek(now) : bucket.take(now)
  const { requests, windowMs } = bucket.limit
  exchange.rateFields = [
    ...['RateLimit-Policy', `"token";q=${requests};w=${Math.ceil(windowMs / 1000)}`],
    ...['RateLimit', `"token";r=${remaining};t=${resetS}`],
  ]
  if (forbidden) return forbidden
  return isAllowed ? null : { code: 'rate_limited', retryAfterS: resetS }
}
