// The head of a request, as everything that looks at one sees it, whoever read it from the wire.

import type { IncomingMessage } from 'node:http'

export type RequestHead = Pick<
  IncomingMessage,
  'method' | 'url' | 'httpVersionMajor' | 'httpVersionMinor' | 'headers' | 'rawHeaders' | 'socket'
>

/** The path alone: a query may hold a token, and no part of it is ever written down. */
export function pathOf({ url = '/' }: RequestHead): string {
  const query = url.indexOf('?')
  return query === -1 ? url : url.slice(0, query)
}

/** Whether the query names a token, which only the legacy tester reads. The token itself is not looked at. */
export function hasTokenInQuery({ url = '' }: RequestHead): boolean {
  return url.includes('?') && /[?&](?:access_token|api_?key|token)=/i.test(url)
}

/** The declared length, or null where there is none to go by (chunked, or no body). */
export function declaredLength({ headers }: RequestHead): number | null {
  const value = headers['content-length']
  return value === undefined ? null : Number(value)
}
