// The session cookie: reads it from a request, and formats Set-Cookie.

import { isIP } from 'node:net'
import type { RequestHead } from './wire/head.ts'
import { isEncrypted } from './wire/tls.ts'
import { headerValues } from './wire/raw-headers.ts'

const NAME = 'intray_session'
/** Browsers accept the `__Host-` prefix only over TLS and from this host: another host cannot set the cookie. */
const NAME_OVER_TLS = `__Host-${NAME}`

/** Null if absent. Empty, and so invalid, if the cookie occurs twice: one of them may be forged. */
export function sessionCookie(req: RequestHead): string | null {
  if (req.headers.cookie === undefined) return null
  const name = mayBePlain(req) ? NAME : NAME_OVER_TLS
  const values = headerValues(req.rawHeaders, 'cookie')
    .flatMap((header) => header.split(';'))
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(`${name}=`))
  return values.length === 1 ? values[0]!.slice(name.length + 1) : values.length === 0 ? null : ''
}

export function setCookie(req: RequestHead, value: string, maxAgeS: number): string {
  const always = `${value}; Path=/; Max-Age=${maxAgeS}; HttpOnly; SameSite=Strict`
  return mayBePlain(req) ? `${NAME}=${always}` : `${NAME_OVER_TLS}=${always}; Secure`
}

export function clearCookie(req: RequestHead): string {
  return setCookie(req, '', 0)
}

/** Only loopback names may work without TLS, here or in a proxy in front. */
function mayBePlain({ headers: { host }, socket }: RequestHead): boolean {
  if (isEncrypted(socket)) return false
  const name = (host ?? '').replace(/:\d*$/, '').toLowerCase()
  return name === 'localhost' || name === '[::1]' || (isIP(name) === 4 && name.startsWith('127.'))
}
