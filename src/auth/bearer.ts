// The Authorization header: finds the one bearer token in a request, or says what is wrong with how it was sent.

import type { Problem } from '../model/errors.ts'

export type Credentials = { readonly token: string } | { readonly problem: Problem }

const MISSING: Credentials = { problem: { code: 'missing_token' } }
const REPEATED: Credentials = {
  problem: { code: 'invalid_request', message: 'Send the Authorization header once.' },
}

/** Looks through the raw headers: Node keeps the first of two Authorization headers and drops the other in silence. */
export function bearerToken(rawHeaders: readonly string[]): Credentials {
  let value: string | null = null
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!
    if (name.length === 13 && name.toLowerCase() === 'authorization') {
      if (value !== null) return REPEATED
      value = rawHeaders[i + 1]!
    }
  }
  if (value === null) return MISSING
  const match = /^bearer[ \t]+(\S.*)$/i.exec(value)
  return match ? { token: match[1]!.trimEnd() } : MISSING
}
