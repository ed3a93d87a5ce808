// Reads the bearer token from the Authorization header, or says what is wrong with the header. Never repeats its value.

import type { Problem } from '../model/errors.ts'

export type Credentials = { readonly token: string } | { readonly problem: Problem }

const EXAMPLE = '"Authorization: Bearer <API token>"'
const ABSENT: Credentials = { problem: { code: 'missing_token' } }
const NOT_BEARER = missing(`The Authorization header does not begin with "Bearer ". Send ${EXAMPLE}.`)
const EMPTY = missing(`The Authorization header has no token after "Bearer". Send ${EXAMPLE}.`)
const REPEATED: Credentials = {
  problem: { code: 'invalid_request', message: 'The Authorization header is there more than once. Send it once.' },
}

/** Reads the raw headers: Node keeps the first of two Authorization headers and silently drops the other. */
export function bearerToken(rawHeaders: readonly string[]): Credentials {
  let value: string | null = null
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!
    if (name.length === 13 && name.toLowerCase() === 'authorization') {
      if (value !== null) return REPEATED
      value = rawHeaders[i + 1]!
    }
  }
  if (value === null || value.trim() === '') return ABSENT
  const match = /^bearer[ \t]+(\S.*)$/i.exec(value)
  if (match) return { token: match[1]!.trimEnd() }
  return /^bearer[ \t]*$/i.test(value) ? EMPTY : NOT_BEARER
}

function missing(message: string): Credentials {
  return { problem: { code: 'missing_token', message } }
}
