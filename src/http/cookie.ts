// The session cookie: read from a request, given and taken back with an answer.

import { isIP } from 'node:net'
import type { RequestHead } from './wire/head.ts'
import { headerValues } from './wire/raw-headers.ts'

const NAME = 'intray_session'
/** Browsers take a cookie of such a name only over TLS and only from this very host: none can be slipped in by another. */
const NAME_OVER_TLS = `__Host-${NAME}`

/** Null if there is none. Two of them are none: one was slipped in, and nobody can tell which. */
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

/** This server itself speaks plain HTTP: whoever comes by another name than loopback comes through TLS, or has no business here. */
function isLoopback(host: string | undefined): boolean {
  const name = (host ?? '').replace(/:\d*$/, '').toLowerCase()
  return name === 'localhost' || name === '[::1]' || (isIP(name) === 4 && name.startsWith('127.'))
}
