// Creates the starter token and the first operator on the first start with an empty database, if the server listens on
// loopback. Both are shown once and never logged: on stdout, or in a file where the journal of systemd reads stdout. On any other
// address, commands create tokens and operators.

import { closeSync, fsyncSync, openSync, renameSync, rmSync, writeSync } from 'node:fs'
import { isIP } from 'node:net'
import { dirname } from 'node:path'
import { createSignInLink } from '../../auth/sessions.ts'
import { mintToken } from '../../auth/token.ts'
import type { Config } from '../../config.ts'
import { randomBase62 } from '../../runtime/id.ts'
import { syncPath } from '../../runtime/sync-path.ts'
import type { Store } from '../../store/contract/store.ts'
import { databaseFile } from '../../store/open.ts'
import { linkUrl } from '../server-address.ts'

const STARTER = { accountId: 1, companyId: 1, scope: 'cf', label: 'starter' }
const FIRST_OPERATOR = { name: 'admin', role: 'admin', tenants: null, password: null } as const

/** Answers the text to print. */
export async function bootstrap(store: Store, config: Config, address: string, now: number): Promise<string> {
  if (!isLoopback(new URL(address).hostname)) return hints(store, config)
  const firstSteps = async () =>
    (await starterText(store, address, now)) + (await operatorText(store, config, address, now))
  if (!isReadByJournal()) return firstSteps()
  const file = databaseFile(config.databaseUrl)
  return file === null ? hints(store, config) : writtenTo(`${file}.first-start`, firstSteps)
}

/** systemd sets the variable, and programs on a desktop inherit it: there stdout is a terminal. */
function isReadByJournal(): boolean {
  return process.env.JOURNAL_STREAM !== undefined && process.stdout.isTTY !== true
}

/** Opens the file before anything is made, since what is made can be shown once only. */
async function writtenTo(path: string, make: () => Promise<string>): Promise<string> {
  const part = `${path}.part`
  rmSync(part, { force: true })
  const file = openSync(part, 'wx', 0o600)
  try {
    const text = await make()
    if (text === '') return ''
    writeSync(file, text)
    fsyncSync(file)
    renameSync(part, path)
    syncPath(dirname(path))
    return `The first token and sign-in link are in ${path}, for this user only. Read the file, then remove it.\n`
  } finally {
    closeSync(file)
    rmSync(part, { force: true })
  }
}

/** For databases and addresses where nothing is created by itself. */
async function hints(store: Store, config: Config): Promise<string> {
  const token = (await isNew(store))
    ? 'There is no token yet. Create one: ./intray token create --account 1 --company 1 --scope cf\n'
    : ''
  const hasOperator = config.console === 'off' || (await store.operators.list()).length > 0
  return (
    token + (hasOperator ? '' : 'The console has no operator yet. Add one: ./intray operator add NAME --role admin\n')
  )
}

async function isNew(store: Store): Promise<boolean> {
  return (await store.tokens.generation()) === 0 && (await store.events.watermark()) === 0
}

async function starterText(store: Store, address: string, now: number): Promise<string> {
  if (!(await isNew(store))) return ''
  const { keyId, token, hash } = mintToken()
  const starter = { keyId, hash, ...STARTER, expiresAt: null, createdAt: now, rotatedFrom: null }
  if (!(await store.tokens.createFirst(starter))) return ''
  const body = '{"source_ref":"hello:1","channel_ref":"hello","message":{"type":"text","text":"Hello, Intray"}}'
  return `
The database is new. This token is for your first messages (account 1, company 1, scope cf). It is shown this once;
'./intray token rotate KEY_ID' replaces it.

  ${token}

Send a first message:

  curl -sS ${address}/v1/inbox/events -H 'Authorization: Bearer ${token}' -H 'Content-Type: application/json' -d '${body}'

`
}

/** Creates the first operator if there is none. */
async function operatorText(store: Store, config: Config, address: string, now: number): Promise<string> {
  if (config.console === 'off') return ''
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

function isLoopback(host: string): boolean {
  return host === '[::1]' || (isIP(host) === 4 && host.startsWith('127.'))
}
