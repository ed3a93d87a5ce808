// The head of a request, from the fast path or from Node, and what its URL and headers say.

import type { IncomingMessage } from 'node:http'

export type RequestHead = Pick<
  IncomingMessage,
  'method' | 'url' | 'httpVersionMajor' | 'httpVersionMinor' | 'headers' | 'rawHeaders' | 'socket'
>

/** Without the query, which may hold a token and must not be logged. */
export function pathOf({ url = '/' }: RequestHead): string {
  const query = url.indexOf('?')
  return query === -1 ? url : url.slice(0, query)
}

/** Whether the query has a parameter that looks like a token. */
export function hasTokenInQuery({ url = '' }: RequestHead): boolean {
  return url.includes('?') && /[?&](?:access_token|api_?key|token)=/i.test(url)
}

/** Null without Content-Length (chunked, or no body). */
export function declaredLength({ headers }: RequestHead): number | null {
  const value = headers['content-length']
  return value === undefined ? null : Number(value)
}
