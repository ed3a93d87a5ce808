// The address at which a client reached this server, for examples to paste. Only plain host names and IP addresses are used,
// which are safe in a shell and in HTML. From a trusted proxy, the last X-Forwarded-Proto and X-Forwarded-Host count.

import { createIsTrusted } from './client-address.ts'
import type { RequestHead } from './head.ts'
import { isEncrypted } from './tls.ts'

export type PublicAddress = (req: RequestHead) => string

/** Stricter than RFC 3986, which lets a name contain quotes, brackets, `$`, `&` and `;`. */
const PLAIN_HOST = /^(?:[a-z0-9][a-z0-9.-]{0,252}|\[[0-9a-f:.]{2,45}\])(?::\d{1,5})?$/i

export function createPublicAddress(trustedProxies: readonly string[]): PublicAddress {
  const isTrusted = createIsTrusted(trustedProxies)
  return (req) => {
    const isProxied = isTrusted(req.socket.remoteAddress)
    const proto = (isProxied ? lastOf(req, 'x-forwarded-proto') : null) ?? (isEncrypted(req.socket) ? 'https' : 'http')
    const host = (isProxied ? plainHost(lastOf(req, 'x-forwarded-host')) : null) ?? plainHost(req.headers.host)
    return `${proto === 'https' ? 'https' : 'http'}://${host ?? localHost(req)}`
  }
}

function plainHost(host: string | null | undefined): string | null {
  return typeof host === 'string' && PLAIN_HOST.test(host) ? host.toLowerCase() : null
}

/** Each hop appends its value. */
function lastOf({ headers }: RequestHead, name: string): string | null {
  const value = headers[name]
  return value === undefined ? null : String(value).split(',').at(-1)!.trim().toLowerCase()
}

function localHost({ socket: { localAddress = '127.0.0.1', localPort = 80 } }: RequestHead): string {
  return `${localAddress.includes(':') ? `[${localAddress}]` : localAddress}:${localPort}`
}
