// The starter token: on the first start on an empty database, bound to loopback, somebody has to be able to get in.
// It is printed once, as plain text on stdout, and never logged. Bound to anything else, nobody gets in without a token
// that an operator made.

import { isIP } from 'node:net'
import { mintToken } from '../auth/token.ts'
import type { Store } from '../store/contract/store.ts'

const STARTER = { accountId: 1, companyId: 1, scope: 'cf', label: 'starter' }

export async function createStarterToken(store: Store, host: string, now: number): Promise<string | null> {
  if (!isLoopback(host)) return null
  if ((await store.tokens.generation()) > 0 || (await store.events.watermark()) > 0) return null
  const { keyId, token, hash } = mintToken()
  const starter = { keyId, hash, ...STARTER, expiresAt: null, createdAt: now, rotatedFrom: null }
  return (await store.tokens.createFirst(starter)) ? token : null
}

export function starterText(address: string, token: string): string {
  const body = '{"source_ref":"hello:1","channel_ref":"hello","message":{"type":"text","text":"Hello, Intray"}}'
  return `
This is a new database. Here is a token to start with (account 1, company 1, scope cf).
It is shown this once; './intray token rotate' replaces it:

  ${token}

Send a first message:

  curl -sS ${address}/v1/inbox/events -H 'Authorization: Bearer ${token}' -H 'Content-Type: application/json' -d '${body}'

`
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'))
}
