// Whether a request comes from the console itself: a cookie goes along with whatever page sends the request, so it alone
// says nothing about who wanted it. The cookie is SameSite=Strict besides.

import type { Problem } from '../model/errors.ts'
import type { RequestHead } from './wire/head.ts'

const FORBIDDEN: Problem = { code: 'forbidden_origin' }
const SAFE_METHODS = ['GET', 'HEAD', 'OPTIONS']

/** For a request with a cookie: what changes something must say where it comes from. */
export function originProblem(req: RequestHead): Problem | null {
  if (SAFE_METHODS.includes(req.method ?? '')) return null
  return req.headers.origin === undefined ? FORBIDDEN : foreignOriginProblem(req)
}

/**
 * For a request without one, which signs in: what it says must be right. The scheme is the proxy's, which speaks TLS for us,
 * so the host is compared.
 */
export function foreignOriginProblem(req: RequestHead): Problem | null {
  const { origin, host, 'sec-fetch-site': site } = req.headers
  if (site !== undefined && site !== 'same-origin') return FORBIDDEN
  if (origin === undefined) return null
  const named = /^https?:\/\/([^/]+)$/i.exec(origin)?.[1]
  return named !== undefined && named.toLowerCase() === host?.toLowerCase() ? null : FORBIDDEN
}
