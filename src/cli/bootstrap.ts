// Creates the starter token and the first operator on the first start with an empty database, if the server listens on
// loopback. Both are printed once on stdout and never logged. On any other address, commands create tokens and operators.

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

/** Answers the text to print: the starter token and the sign-in link, if they were created now. */
export async function bootstrap(store: Store, config: Config, address: string, now: number): Promise<string> {
  const token = await createStarterToken(store, config.host, now)
  return (token ? starterText(address, token) : '') + (await consoleText(store, config, address, now))
}

const FIRST_OPERATOR = { name: 'admin', role: 'admin', tenants: null, password: null } as const

/** Creates the first operator if there is none. */
async function consoleText(store: Store, config: Config, address: string, now: number): Promise<string> {
  if (config.console === 'off') return ''
  if (!isLoopback(config.host)) {
    if ((await store.operators.list()).length > 0) return ''
    return 'The console has no operator yet. Add one: ./intray operator add NAME --role admin\n'
  }
  const operator = { id: randomBase62(10), ...FIRST_OPERATOR, createdAt: now }
  if (!(await store.operators.createFirst(operator))) return ''
  const code = await createSignInLink(store.operators, operator, now)
  return `
Open the console with this link. It signs you in as the operator admin, once, within 15 minutes:

  ${linkUrl(address, code)}

For another link: ./intray operator link admin
For a password:   ./intray operator password admin

`
}

/** The code stands behind the #, which browsers do not send, so it appears in no log. */
export function linkUrl(address: string, code: string): string {
  return `${address}/console#link=${code}`
}

function starterText(address: string, token: string): string {
  const body = '{"source_ref":"hello:1","channel_ref":"hello","message":{"type":"text","text":"Hello, Intray"}}'
  return `
The database is new. This token is for your first messages (account 1, company 1, scope cf). It is shown this once;
'./intray token rotate KEY_ID' replaces it.

  ${token}

Send a first message:

  curl -sS ${address}/v1/inbox/events -H 'Authorization: Bearer ${token}' -H 'Content-Type: application/json' -d '${body}'

`
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'))
}
