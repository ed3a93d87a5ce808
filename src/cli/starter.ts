// The starter token and the first operator: on the first start on an empty database, bound to loopback, somebody has to be able to get in.
// Both are printed once, as plain text on stdout, and never logged. Bound to anything else, nobody gets in without a token
// or an operator that was made on the command line.

import { isIP } from 'node:net'
import { createSignInLink } from '../auth/sessions.ts'
import { mintToken } from '../auth/token.ts'
import type { Config } from '../config.ts'
import { randomBase62 } from '../runtime/id.ts'
import type { Store } from '../store/contract/store.ts'

const STARTER = { accountId: 1, companyId: 1, scope: 'cf', label: 'starter' }

async function createStarterToken(store: Store, host: string, now: number): Promise<string | null> {
  if (!isLoopback(host)) return null
  if ((await store.tokens.generation()) > 0 || (await store.events.watermark()) > 0) return null
  const { keyId, token, hash } = mintToken()
  const starter = { keyId, hash, ...STARTER, expiresAt: null, createdAt: now, rotatedFrom: null }
  return (await store.tokens.createFirst(starter)) ? token : null
}

/** What is printed at a start: everything that lets somebody in who has nothing yet. */
export async function welcome(store: Store, config: Config, address: string, now: number): Promise<string> {
  const token = await createStarterToken(store, config.host, now)
  return (token ? starterText(address, token) : '') + (await consoleText(store, config, address, now))
}

const FIRST_OPERATOR = { name: 'admin', role: 'admin', tenants: null, password: null } as const

/** Where nobody may sign in to the console yet. */
async function consoleText(store: Store, config: Config, address: string, now: number): Promise<string> {
  if (config.console === 'off') return ''
  if (!isLoopback(config.host)) {
    if ((await store.operators.list()).length > 0) return ''
    return 'Nobody can sign in to the console yet. Make an operator: ./intray operator add NAME --role admin\n'
  }
  const operator = { id: randomBase62(10), ...FIRST_OPERATOR, createdAt: now }
  if (!(await store.operators.createFirst(operator))) return ''
  const code = await createSignInLink(store.operators, operator, now)
  return `
The console. This link signs you in as the operator admin, once, within 15 minutes ('./intray operator link admin' makes
another, './intray operator passwd admin' sets a password):

  ${linkUrl(address, code)}

`
}

/** The code stands behind the #, which no browser sends: it is in no log. */
export function linkUrl(address: string, code: string): string {
  return `${address}/console#link=${code}`
}

function starterText(address: string, token: string): string {
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
