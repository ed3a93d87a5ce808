// The settings table: every setting is a row. Parses, documents and redacts settings, and reports all problems at once.
//
// A setting is an environment variable INTRAY_<NAME> and a flag --<name> of `serve`; a secret may also be given as a file
// (INTRAY_<NAME>_FILE). A misspelt setting stops the start, so that no limit is off unnoticed.

import { readFileSync } from 'node:fs'
import { isScope } from './model/principal.ts'
import type { RateLimit } from './model/rate-limit.ts'
import { MAX_WORDS } from './model/text-search.ts'
import { collector, listenAddress, networks, publicUrl } from './runtime/address-setting.ts'
import type { KeyPairFiles } from './runtime/key-pair.ts'
import { nearest } from './runtime/nearest.ts'
import { formatRate, parseRate } from './runtime/rate.ts'
import { choice, duration, integer, path, secretsKey, type Setting, text } from './runtime/setting.ts'

const scopes = (about: string): Setting<readonly string[] | null> => ({
  fallback: null,
  about,
  parse: (value) => {
    const list = value.split(',').map((scope) => scope.trim())
    const wrong = list.find((scope) => !isScope(scope))
    if (wrong !== undefined)
      throw new Error(`has "${wrong}", which is not a scope: 1 to 64 of a-z, 0-9, "_", ".", ":" and "-"`)
    return list
  },
  format: (value) => value?.join(',') ?? '',
})

const rateLimit = (fallback: RateLimit | null, about: string): Setting<RateLimit | null> => ({
  fallback,
  about,
  parse: (value) => {
    const limit = parseRate(value)
    return limit === 'off' ? null : limit
  },
  format: (value) => formatRate(value ?? 'off'),
})

const workerCount = (about: string): Setting<number | 'auto'> => ({
  fallback: 1,
  about: `${about} (1–${MAX_WORKERS}, auto)`,
  parse: (value) => {
    const count = /^\d{1,4}$/.test(value) ? Number(value) : Number.NaN
    if (value === 'auto') return 'auto'
    if (!(count >= 1 && count <= MAX_WORKERS))
      throw new Error(`must be auto or a whole number from 1 to ${MAX_WORKERS}`)
    return count
  },
  format: String,
})

/** The longest that `auto` lasts: a proxy that stops asking holds nobody up. */
export const AUTO_READY_DELAY_MS = 10_000

/** A duration, or `auto`. */
const autoDuration = (max: string, about: string): Setting<number | 'auto'> => {
  const { parse, format, ...fixed } = duration('0s', '0s', max, about)
  return {
    fallback: 'auto',
    about: `${fixed.about.slice(0, -1)}, auto)`,
    parse: (value) => (value === 'auto' ? value : parse(value)),
    format: (value) => (value === 'auto' ? value : format(value)),
  }
}

const MAX_WORKERS = 256

export const SETTINGS = {
  host: text('127.0.0.1', 'Address to listen on. Anything but a loopback address is reachable from outside.'),
  port: integer(8080, 0, 65535, 'Port to listen on; 0 takes a free one'),
  tlsCert: path(
    'Certificate for TLS, in PEM with those in between; a renewed file is used without a restart. Not set: plain HTTP',
  ),
  tlsKey: path('Private key of that certificate, in PEM without a passphrase'),
  databaseUrl: {
    ...text(
      'sqlite:./data/intray.db',
      'Where messages are kept: sqlite:<path> or postgres://user:password@host,host/database.',
    ),
    secret: true,
  },
  secretsKey: secretsKey(
    'Key under which secrets of hooks and endpoints are sealed: 32 bytes in base64 or hexadecimal. Not set: with SQLite a key file beside the database; PostgreSQL needs it for hooks and endpoints',
  ),
  publicUrl: publicUrl(
    'The address at which the internet reaches this server, such as https://in.example.com: printed addresses of hooks begin with it, and Twilio signs it. Not set: the address that a request used',
  ),
  workers: workerCount('Processes that serve on the port; auto: one for each core. More than 1 needs PostgreSQL'),
  maxBodyBytes: integer(1_048_576, 1024, 104_857_600, 'Largest body taken, in bytes after decompression'),
  intakeScopes: scopes('Scopes that may send, separated by commas. Not set: every scope but processor.'),
  legacyTester: choice(['on', 'off'], 'on', 'GET /api/inbox-test, which takes a token in the query; off: 404'),
  remoteAddr: choice(
    ['full', 'truncated', 'off'],
    'full',
    "How much of the sender's address is kept with an event and in the log",
  ),
  trustedProxies: networks(
    'Proxies whose forwarded header names the sender, and whose X-Forwarded-Proto and X-Forwarded-Host name the address it used: addresses, networks such as 10.0.0.0/8, loopback. Not set: the peer of the connection is the sender.',
  ),
  forwardedHeader: choice(
    ['x-forwarded-for', 'forwarded'],
    'x-forwarded-for',
    'The header in which trusted proxies name the sender; the other is ignored',
  ),
  rateLimit: rateLimit(
    null,
    'Requests that a token may make on each node, such as 100/1s: a burst of 100, refilled over 1s; above: 429 rate_limited. A token may have a limit of its own',
  ),
  failedTokenLimit: rateLimit(
    { requests: 100, windowMs: 60_000 },
    'Unknown tokens that are answered 401 for one address (of IPv6: one /64), such as 100/1m; above: 429 too_many_failures. A valid token is never affected',
  ),
  tenantBytesPerSecond: integer(
    33_554_432,
    0,
    17_179_869_184,
    'Decompressed bytes that a tenant may send a second to a node; above: 429. 0: no limit',
  ),
  logLevel: choice(['debug', 'info', 'warn', 'error', 'silent'], 'info', 'Least important level that is logged'),
  logFormat: choice(['auto', 'json', 'pretty'], 'auto', 'Log lines on stderr; auto: pretty on a terminal'),
  logRequests: integer(
    100,
    0,
    100,
    'Percent of the requests with an answer below 400 that are logged; refused, failed, slow and broken off ones always are',
  ),
  logSlow: duration('1s', '0s', '1h', 'A request that takes as long is logged, whatever INTRAY_LOG_REQUESTS is'),
  metrics: listenAddress(
    'Address for Prometheus, such as 127.0.0.1:9464; serves /metrics without authentication. With workers, each uses the next port',
  ),
  otlpEndpoint: collector(
    'OpenTelemetry collector that traces are exported to over OTLP/HTTP, such as http://127.0.0.1:4318. Not set: no traces',
  ),
  traceRequests: integer(
    100,
    0,
    100,
    'Percent of the requests and index steps that are traced. A request with a traceparent is traced if its sender says so',
  ),
  headersTimeout: duration('10s', '50ms', '1h', 'A request whose headers take longer is answered 408'),
  requestTimeout: duration(
    '30s',
    '50ms',
    '1h',
    'A request that takes longer to arrive: 408. Not below the headers timeout',
  ),
  keepAliveTimeout: duration('65s', '50ms', '1h', 'An idle connection is closed after this'),
  maxHeaderBytes: integer(16_384, 1024, 1_048_576, 'Largest request line and headers, in bytes; above: 431'),
  maxHeaders: integer(100, 16, 10_000, 'Header fields of a request; above: 431'),
  maxConnections: integer(10_000, 1, 1_000_000, 'Connections open at once; further ones are closed at accept'),
  connectionsPerAddress: integer(
    1000,
    1,
    1_000_000,
    'The same for one client address (of IPv6: one /64); behind a trusted proxy: its requests in progress, above: 503',
  ),
  receivingMaxBytes: integer(
    268_435_456,
    1024,
    17_179_869_184,
    'Bytes held of bodies until they are stored or refused, without the first 64 KiB of each. A tenant may hold as many as are free; above: 503',
  ),
  queueMaxEvents: integer(4096, 1, 1_000_000, 'Accepted messages that wait for their commit; above: 503'),
  queueMaxBytes: integer(67_108_864, 1024, 17_179_869_184, 'Bytes of messages that wait for their commit; above: 503'),
  queueMaxWait: duration(
    '2s',
    '10ms',
    '1h',
    'Messages that would wait longer than this for their commit, judged by recent commits, are refused: 503 overloaded',
  ),
  batchMaxEvents: integer(256, 1, 10_000, 'Messages in one append to the store'),
  batchMaxBytes: integer(8_388_608, 1024, 1_073_741_824, 'Bytes in one append (a larger message is appended alone)'),
  indexBatchRows: integer(4000, 1, 10_000, 'Rows in one step of the indexer (on PostgreSQL 1000 at most)'),
  extractBytes: integer(
    65_536,
    1024,
    104_857_600,
    'Bytes of a message, string values not counted, in which the index looks for its fields',
  ),
  searchWords: integer(256, 0, MAX_WORDS, 'Different words of one message that search finds'),
  inboxMaxRequests: integer(256, 1, 100_000, 'Inbox requests in progress on a node, no claims or streams; above: 503'),
  inboxMaxClaims: integer(2000, 1, 1_000_000, 'Claims in progress or waiting on a node; above: 503'),
  tenantShare: integer(50, 1, 100, 'Percent of the inbox requests, claims and streams of a node for one tenant'),
  maxSubscriptions: integer(100, 1, 10_000, 'Subscriptions of one tenant, default included; above: 409'),
  maxStreams: integer(2000, 0, 1_000_000, 'Streams open at once on a node; above: 503'),
  streamHeartbeat: duration('15s', '100ms', '5m', 'An idle stream gets a comment line this often'),
  streamDrainTimeout: duration('30s', '100ms', '1h', 'A stream whose reader takes nothing for this long is closed'),
  maxAttempts: integer(5, 1, 1000, 'Failed attempts until an event is dead; a subscription may have its own number'),
  pushAllow: networks(
    'Private, local or reserved addresses that endpoints may have all the same: addresses, networks such as 10.0.0.0/8, loopback. Not set: public addresses only',
  ),
  pushMaxRequests: integer(
    256,
    1,
    10_000,
    'Requests to endpoints in progress on a node, half of them for one tenant; further ones wait, endpoints in turn',
  ),
  refusalsMaxCount: integer(1000, 0, 1_000_000, 'Refused requests kept for each tenant'),
  refusalsMaxAge: duration('30d', '1m', '3650d', 'Refused requests are kept this long, without a rule of retention'),
  retentionEvery: duration('1h', '1s', '30d', 'How often what is too old by the rules of retention is deleted'),
  refusalsBuffer: integer(
    256,
    0,
    100_000,
    'Refused requests waiting to be written, of a tenant as many as are free; others are only counted (intray_refusals_dropped_total)',
  ),
  console: choice(['on', 'off'], 'on', "The operators' console at /console and its interface; off: 404"),
  sessionMaxAge: duration('12h', '1m', '30d', 'An operator has to sign in again after this'),
  sessionIdle: duration('1h', '1m', '30d', 'An idle operator has to sign in again after this'),
  signInFailures: integer(5, 1, 1000, 'Failed sign-ins in a row before a name must wait; an address: 4 times as many'),
  auditMaxAge: duration('365d', '1d', '3650d', 'The audit log is kept this long'),
  backupTo: path('Folder for scheduled backups, which must exist; SQLite only. Not set: no schedule'),
  erasureLogTo: path(
    'Folder for the erasure log, which must exist: keep it with the backups. Not set: INTRAY_BACKUP_TO',
  ),
  backupEvery: duration('1d', '1s', '365d', 'A scheduled backup begins when the last one is this old'),
  backupKeep: integer(14, 1, 100_000, 'Backups kept in the folder; older ones are removed'),
  readyDelay: autoDuration(
    '1h',
    'After SIGTERM: time from "not ready" to closing the port; auto: until trusted proxies that ask /readyz got "not ready" three times, 10s at most',
  ),
  stopTimeout: duration('25s', '0s', '1h', 'After SIGTERM: requests that are still open are cut off after this'),
}

export type SettingName = keyof typeof SETTINGS
type Value<S> = S extends Setting<infer T> ? T : never
export type Config = { readonly [N in SettingName]: Value<(typeof SETTINGS)[N]> }

/** Invalid settings: one sentence for each, with what to do. */
export class ConfigError extends Error {
  readonly problems: readonly string[]

  constructor(problems: readonly string[]) {
    super(problems.join('\n'))
    this.name = 'ConfigError'
    this.problems = problems
  }
}

export const SETTING_NAMES = Object.keys(SETTINGS) as SettingName[]

/** maxBodyBytes → max-body-bytes */
export function flagName(name: SettingName): string {
  return name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
}

/** maxBodyBytes → INTRAY_MAX_BODY_BYTES */
export function variableName(name: SettingName): string {
  return `INTRAY_${flagName(name).replaceAll('-', '_').toUpperCase()}`
}

/** Flags win over the environment, the environment over defaults. */
export function loadConfig(
  environment: Readonly<Record<string, string | undefined>>,
  flags: Readonly<Partial<Record<SettingName, string>>> = {},
): Config {
  const problems = unknownVariables(environment)
  const config: Record<string, unknown> = {}
  for (const name of SETTING_NAMES) {
    const setting = settingOf(name)
    try {
      const given = flags[name] ?? readVariable(environment, name)
      config[name] = given === undefined ? setting.fallback : setting.parse(given.trim())
    } catch (error) {
      const shown = flags[name] === undefined ? variableName(name) : `--${flagName(name)}`
      problems.push(`${shown} ${error instanceof Error ? error.message : error}.`)
    }
  }
  config.erasureLogTo ??= config.backupTo
  const loaded = config as Config
  if (problems.length === 0 && loaded.headersTimeout > loaded.requestTimeout) {
    problems.push(`${variableName('headersTimeout')} must not be longer than ${variableName('requestTimeout')}.`)
  }
  if ((loaded.tlsCert === null) !== (loaded.tlsKey === null)) {
    const pair = `${variableName('tlsCert')} and ${variableName('tlsKey')}`
    problems.push(`${pair} belong together. Set both, or neither for plain HTTP.`)
  }
  if (problems.length === 0 && loaded.backupTo !== null && !loaded.databaseUrl.startsWith('sqlite:')) {
    problems.push(
      `${variableName('backupTo')} works with SQLite only. Remove it, and run ./intray backup or pg_basebackup on a schedule of your own.`,
    )
  }
  if (problems.length > 0) throw new ConfigError(problems)
  return Object.freeze(loaded)
}

/** The files for TLS; null for plain HTTP. */
export function tlsFiles({ tlsCert, tlsKey }: Pick<Config, 'tlsCert' | 'tlsKey'>): KeyPairFiles | null {
  return tlsCert === null || tlsKey === null ? null : { cert: tlsCert, key: tlsKey }
}

/** One `NAME=value` line for each setting, secrets without their secret part. */
export function printConfig(config: Config): string {
  return SETTING_NAMES.map((name) => {
    const setting = settingOf(name)
    const value = setting.format(config[name])
    return `${variableName(name)}=${setting.secret ? redactUrl(value) : value}`
  }).join('\n')
}

/** The default of a setting, as it would be written. */
export function defaultText(name: SettingName): string {
  return settingOf(name).format(settingOf(name).fallback)
}

function settingOf(name: SettingName): Setting<unknown> {
  return SETTINGS[name] as unknown as Setting<unknown>
}

function readVariable(
  environment: Readonly<Record<string, string | undefined>>,
  name: SettingName,
): string | undefined {
  const variable = variableName(name)
  const given = environment[variable]
  const file = settingOf(name).secret ? environment[`${variable}_FILE`] : undefined
  if (file === undefined || file === '') return given?.trim() === '' ? undefined : given
  if (given !== undefined && given !== '') throw new Error(`is set twice, directly and as ${variable}_FILE; remove one`)
  try {
    return readFileSync(file, 'utf8').trim()
  } catch {
    throw new Error(`cannot be read: check the file that ${variable}_FILE names`)
  }
}

/** Settings of the PHP kit (docs/sending/php.md), which may stand in the environment of the same machine. */
const SETTINGS_OF_SENDERS = [
  'INTRAY_URL',
  'INTRAY_TOKEN',
  'INTRAY_OUTBOX',
  'INTRAY_OUTBOX_USER',
  'INTRAY_OUTBOX_PASSWORD',
]

function unknownVariables(environment: Readonly<Record<string, string | undefined>>): string[] {
  const known = SETTING_NAMES.flatMap((name) =>
    settingOf(name).secret ? [variableName(name), `${variableName(name)}_FILE`] : [variableName(name)],
  )
  return Object.keys(environment)
    .filter((variable) => variable.startsWith('INTRAY_'))
    .filter((variable) => !known.includes(variable) && !SETTINGS_OF_SENDERS.includes(variable))
    .map((variable) => `${variable} is not a setting.${suggestion(nearest(variable, known))}`)
}

function suggestion(near: string | null): string {
  return near === null ? ' Remove it.' : ` Did you mean ${near}?`
}

function redactUrl(url: string): string {
  return url.replace(/\/\/([^:/?#]*):.*@/, '//$1:[redacted]@').replace(/\?.*$/, '?[redacted]')
}
