// The session cookie: read from a request, given and taken back with an answer.

import type { IncomingMessage } from 'node:http'
import { isIP } from 'node:net'
import { headerValues } from './raw-headers.ts'

const NAME = 'intray_session'

/** Null if there is none. Two of them are none: one was slipped in, and nobody can tell which. */
export function sessionCookie(req: IncomingMessage): string | null {
  if (req.headers.cookie === undefined) return null
  const values = headerValues(req.rawHeaders, 'cookie')
    .flatMap((header) => header.split(';'))
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(`${NAME}=`))
  return values.length === 1 ? values[0]!.slice(NAME.length + 1) : values.length === 0 ? null : ''
}

export function setCookie(req: IncomingMessage, value: string, maxAgeS: number): string {
  const secure = isLoopback(req.headers.host) ? '' : '; Secure'
  return `${NAME}=${value}; Path=/; Max-Age=${maxAgeS}; HttpOnly; SameSite=Strict${secure}`
}

export function clearCookie(req: IncomingMessage): string {
  return setCookie(req, '', 0)
}

/** This server itself speaks plain HTTP: whoever comes by another name than loopback comes through TLS, or has no business here. */
function isLoopback(host: string | undefined): boolean {
  const name = (host ?? '').replace(/:\d*$/, '').toLowerCase()
  return name === 'localhost' || name === '[::1]' || (isIP(name) === 4 && name.startsWith('127.'))
}
