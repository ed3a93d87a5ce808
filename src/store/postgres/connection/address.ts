// Parses postgres://user:password@host1:5432,host2:5433/database?… into one connection string per host. `pg` refuses
// several hosts and ignores target_session_attrs, so both are handled here. Only the connection strings contain the
// password.

import { StoreRefused } from '../../contract/failure.ts'

export interface Host {
  /** For display: host:port. */
  readonly name: string
  /** For `pg`. A secret. */
  readonly connectionString: string
}

export interface Address {
  readonly hosts: readonly Host[]
  readonly database: string
  readonly poolSize: number
  /** The restore that opens what it has loaded itself; null for anybody else. */
  readonly restore: string | null
}

const DEFAULT_POOL = 10
const SHAPE = /^postgres(?:ql)?:\/\/(?:([^/?#]*)@)?([^/?#@]*)(?:\/([^/?#]*))?(?:\?([^#]*))?$/i
const RESTORE = 'intray_restore'
const EXAMPLE = 'postgres://user:password@host:5432/intray'

export function parseAddress(url: string): Address {
  const [, user = '', hostList = '', database = '', query = ''] = SHAPE.exec(url) ?? refuse(`must look like ${EXAMPLE}`)
  if (database === '') refuse(`must name a database, for example ${EXAMPLE}`)
  const parameters = new URLSearchParams(query)
  const poolSize = readPoolSize(parameters.get('pool_size'))
  const target = parameters.get('target_session_attrs') ?? 'read-write'
  if (target !== 'read-write' && target !== 'primary') {
    refuse('may set target_session_attrs to read-write or primary only: Intray writes')
  }
  const restore = parameters.get(RESTORE)
  for (const own of ['pool_size', 'target_session_attrs', RESTORE]) parameters.delete(own)
  const rest = parameters.size > 0 ? `?${parameters}` : ''
  const userPart = user === '' ? '' : `${user}@`
  const hosts = hostList.split(',').map((host) => ({
    name: nameOf(host, parameters.get('host')),
    connectionString: `postgres://${userPart}${host}/${database}${rest}`,
  }))
  for (const { connectionString } of hosts) requireUrl(connectionString)
  return { hosts, database: decodeURIComponent(database), poolSize, restore }
}

/** The URL with the name of the restore that opens it. */
export function restoreUrl(url: string, restore: string): string {
  return `${url}${url.includes('?') ? '&' : '?'}${RESTORE}=${restore}`
}

export interface ProgramAddress {
  readonly uri: string
  readonly password: string | null
}

/** The URL for programs of PostgreSQL, without its password: every user of the machine can see their arguments. */
export function programAddress(url: string, added: Readonly<Record<string, string>> = {}): ProgramAddress {
  const [, user = '', hosts = '', database = '', query = ''] = SHAPE.exec(url) ?? refuse(`must look like ${EXAMPLE}`)
  const [name, password] = user.split(/:(.*)/s)
  const parameters = new URLSearchParams(query)
  parameters.delete('pool_size')
  for (const [name, value] of Object.entries(added)) parameters.set(name, value)
  if (hosts.includes(',')) parameters.set('target_session_attrs', 'read-write')
  const rest = parameters.size > 0 ? `?${parameters}` : ''
  return {
    uri: `postgres://${name ? `${name}@` : ''}${hosts}/${database}${rest}`,
    password: password ? decodeURIComponent(password) : null,
  }
}

function nameOf(host: string, parameter: string | null): string {
  if (host === '') return parameter ?? 'localhost:5432'
  return /:\d+$/.test(host) ? host : `${host}:5432`
}

function requireUrl(connectionString: string): void {
  // Without a host the URL means a socket, and the URL parser accepts no port or user there.
  const complete = connectionString.replace('@/', '@localhost/').replace(':///', '://localhost/')
  if (!URL.canParse(complete))
    refuse('has a host, port, user or password that cannot be read; percent-encode special characters')
  try {
    decodeURIComponent(new URL(complete).pathname)
  } catch {
    refuse('has a database name that is not percent-encoded properly')
  }
}

function readPoolSize(text: string | null): number {
  if (text === null) return DEFAULT_POOL
  const size = /^\d{1,4}$/.test(text) ? Number(text) : 0
  if (size < 2 || size > 1000) refuse('may set pool_size to a whole number from 2 to 1000')
  return size
}

/** Never quotes the URL: it contains a password. */
function refuse(why: string): never {
  throw new StoreRefused(`INTRAY_DATABASE_URL ${why}.`)
}
