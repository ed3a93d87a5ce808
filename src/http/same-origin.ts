// CSRF checks: a browser sends the session cookie with requests of any page, so requests that change data must have the
// console's own origin. The cookie is also SameSite=Strict.

import type { Problem } from '../model/errors.ts'
import type { RequestHead } from './wire/head.ts'

const FORBIDDEN: Problem = { code: 'forbidden_origin' }
const SAFE_METHODS = ['GET', 'HEAD', 'OPTIONS']

/** For a request with a cookie: an unsafe method needs the Origin header. */
export function originProblem(req: RequestHead): Problem | null {
  if (SAFE_METHODS.includes(req.method ?? '')) return null
  return req.headers.origin === undefined ? FORBIDDEN : foreignOriginProblem(req)
}

/** For a sign-in: Origin may be absent. Only the host is compared, since a proxy terminates TLS. */
export function foreignOriginProblem(req: RequestHead): Problem | null {
  const { origin, host, 'sec-fetch-site': site } = req.headers
  if (site !== undefined && site !== 'same-origin') return FORBIDDEN
  if (origin === undefined) return null
  const named = /^https?:\/\/([^/]+)$/i.exec(origin)?.[1]
  return named !== undefined && named.toLowerCase() === host?.toLowerCase() ? null : FORBIDDEN
}
