// The session cookie: reads it from a request, and formats Set-Cookie.

import { isIP } from 'node:net'
import type { RequestHead } from './wire/head.ts'
import { headerValues } from './wire/raw-headers.ts'

const NAME = 'intray_session'
/** Browsers accept the `__Host-` prefix only over TLS and from this host: another host cannot set the cookie. */
const NAME_OVER_TLS = `__Host-${NAME}`

/** Null if absent. Empty, and so invalid, if the cookie occurs twice: one of them may be forged. */
export function sessionCookie(req: RequestHead): string | null {
  if (req.headers.cookie === undefined) return null
  const name = isLoopback(req.headers.host) ? NAME : NAME_OVER_TLS
  const values = headerValues(req.rawHeaders, 'cookie')
    .flatMap((header) => header.split(';'))
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(`${name}=`))
  return values.length === 1 ? values[0]!.slice(name.length + 1) : values.length === 0 ? null : ''
}

export function setCookie(req: RequestHead, value: string, maxAgeS: number): string {
  const always = `${value}; Path=/; Max-Age=${maxAgeS}; HttpOnly; SameSite=Strict`
  return isLoopback(req.headers.host) ? `${NAME}=${always}` : `${NAME_OVER_TLS}=${always}; Secure`
}

export function clearCookie(req: RequestHead): string {
  return setCookie(req, '', 0)
}

/** The server speaks plain HTTP: only loopback names may work without a TLS proxy in front. */
function isLoopback(host: string | undefined): boolean {
  const name = (host ?? '').replace(/:\d*$/, '').toLowerCase()
  return name === 'localhost' || name === '[::1]' || (isIP(name) === 4 && name.startsWith('127.'))
}
