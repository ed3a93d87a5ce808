// `./intray token …`: creates, shows, disables, enables, limits and rotates tokens, whether a server runs or not. A command
// that changes a token in use returns when the change is in effect on every running server.

import { issueToken, MAX_LABEL, rotateToken, TOKEN_LIFE_MS, waitUntilInEffect } from '../../auth/token-lifecycle.ts'
import { isScope } from '../../model/principal.ts'
import type { TokenRateLimit } from '../../model/rate-limit.ts'
import { type TokenRecord, tokenState } from '../../model/token.ts'
import { isoTime, systemClock } from '../../runtime/clock.ts'
import { parseDuration } from '../../runtime/duration.ts'
import { formatRate, parseRate } from '../../runtime/rate.ts'
import type { Store } from '../../store/contract/store.ts'
import { CommandError, commandGroup, type Subcommand, UsageError } from '../command.ts'
import { JSON_FLAG, parseFlags, TENANT_FLAGS, tenantOf } from '../flags.ts'
import { withStore } from '../open.ts'
import { print, printJson, printList, record } from '../output.ts'

const IN_EFFECT_TIMEOUT_MS = 10_000

const EXPIRES_HELP =
  '  --expires E     When it expires: 2s to 365d from now, or an ISO time such as 2027-01-31T00:00:00Z.'
const RATE_LIMIT_HELP = `  --rate-limit R  Requests it may make on each node, such as 100/1s; off: no limit; default: INTRAY_RATE_LIMIT.`
const JSON_HELP = '  --json          Print one JSON object.'

const create: Subcommand = {
  summary: 'Creates a token and shows it once.',
  help: `
Usage: ./intray token create --account N --company N [--scope S] [--expires E] [--label TEXT] [--rate-limit R] [--json]

Creates a token for one account and one company, and prints it. It is shown this once: only its digest is stored.

  --account N     The account of the tenant: a whole number from 1.
  --company N     The company of the tenant.
  --scope S       What the token is for: 'processor' reads and processes, and may not send; any other scope names an
                  integration that sends, such as cf for a form plugin.
${EXPIRES_HELP}
  --label TEXT    A note for yourself, at most ${MAX_LABEL} characters.
${RATE_LIMIT_HELP}
${JSON_HELP}`,
  async run(args) {
    const { values } = parseFlags(args, {
      ...TENANT_FLAGS,
      ...JSON_FLAG,
      scope: { type: 'string' },
      expires: { type: 'string' },
      label: { type: 'string' },
      'rate-limit': { type: 'string' },
    })
    const now = systemClock.now()
    const [scope, label] = [(values.scope ?? '').trim(), (values.label ?? '').trim()]
    if (scope !== '' && !isScope(scope)) {
      throw new UsageError('--scope takes 1 to 64 of a-z, 0-9, "_", ".", ":" and "-", starting with a letter or digit.')
    }
    if (label.length > MAX_LABEL) throw new UsageError(`--label takes at most ${MAX_LABEL} characters.`)
    const request = { scope, label, expiresAt: expiry(values.expires, now), rateLimit: rateLimit(values['rate-limit']) }
    const tenant = tenantOf(values)
    const issued = await withStore((store) => issueToken(store.tokens, tenant, request, now))
    showSecret(issued.record, issued.token, values.json)
    return 0
  },
}

const list: Subcommand = {
  summary: 'Lists all tokens, without their secrets.',
  help: `
Usage: ./intray token list [--json]

Lists the tokens of all tenants: key id, state, tenant, scope, limits, last use, label. Secrets are not stored.

  --json          Print one JSON object for each, one a line.`,
  async run(args) {
    const { values } = parseFlags(args, JSON_FLAG)
    const time = (ms: number | null) => (ms === null ? '-' : isoTime(ms))
    printList(await withStore((store) => store.tokens.list()), values.json === true, {
      jsonOf,
      empty: 'No tokens yet. Create one: ./intray token create --account 1 --company 1 --scope cf',
      columns: {
        'KEY ID': ({ keyId }) => keyId,
        STATE: (one) => tokenState(one, systemClock.now()),
        ACCOUNT: ({ accountId }) => String(accountId),
        COMPANY: ({ companyId }) => String(companyId),
        SCOPE: ({ scope }) => scope || '-',
        'RATE LIMIT': ({ rateLimit: limit }) => (limit === null ? '-' : formatRate(limit)),
        EXPIRES: ({ expiresAt }) => time(expiresAt),
        'LAST USED': ({ lastUsedAt }) => time(lastUsedAt),
        LABEL: ({ label }) => label,
      },
    })
    return 0
  },
}

const show: Subcommand = {
  summary: 'Shows one token, without its secret.',
  help: `
Usage: ./intray token show KEY_ID [--json]

Shows one token. KEY_ID is the part between the first and the second "_" of the token.

${JSON_HELP}`,
  async run(args) {
    const { keyId, values } = withKeyId(args, {})
    showToken(known(await withStore((store) => store.tokens.find(keyId)), keyId), values.json)
    return 0
  },
}

const disable: Subcommand = {
  summary: 'Disables a token: requests with it are answered 401.',
  help: `
Usage: ./intray token disable KEY_ID [--json]

Disables a token. Requests with it are answered 401 token_disabled. Returns when this is in effect on every running server.

${JSON_HELP}`,
  run: (args) => setActive(args, false),
}

const enable: Subcommand = {
  summary: 'Enables a token that was disabled.',
  help: `
Usage: ./intray token enable KEY_ID [--json]

Enables a token that was disabled. Returns when this is in effect on every running server.

${JSON_HELP}`,
  run: (args) => setActive(args, true),
}

const limit: Subcommand = {
  summary: 'Sets the rate limit of a token.',
  help: `
Usage: ./intray token limit KEY_ID --rate-limit R [--json]

Sets the rate limit of a token. Returns when this is in effect on every running server.

${RATE_LIMIT_HELP}
${JSON_HELP}`,
  async run(args) {
    const { keyId, values } = withKeyId(args, { 'rate-limit': { type: 'string' } })
    if (values['rate-limit'] === undefined) throw new UsageError('token limit needs --rate-limit R.')
    const rate = rateLimit(values['rate-limit'])
    const changed = await inEffect(async ({ tokens }) => known(await tokens.setRateLimit(keyId, rate), keyId))
    showToken(changed, values.json)
    return 0
  },
}

const rotate: Subcommand = {
  summary: 'Replaces a token by a new one for the same tenant and scope.',
  help: `
Usage: ./intray token rotate KEY_ID [--overlap 24h] [--expires E] [--json]

Creates a token for the same tenant and scope, prints it once, and disables the old one. Returns when this is in effect on
every running server.

  --overlap TIME  How long the old token keeps working: 2s to 365d. Without it the old token is disabled at once.
${EXPIRES_HELP}
${JSON_HELP}`,
  async run(args) {
    const { keyId, values } = withKeyId(args, { overlap: { type: 'string' }, expires: { type: 'string' } })
    const now = systemClock.now()
    const expiresAt = values.expires === undefined ? undefined : expiry(values.expires, now)!
    const overlapMs = values.overlap === undefined ? null : durationMs(values.overlap, 'overlap')
    const issued = await inEffect(async ({ tokens }) => {
      const old = known(await tokens.find(keyId), keyId)
      const made = await rotateToken(tokens, old, { overlapMs, expiresAt }, now)
      if ('successor' in made) {
        throw new CommandError(
          `Token ${keyId} was rotated already. Rotate its successor: ./intray token rotate ${made.successor}`,
        )
      }
      if ('hasExpired' in made) {
        throw new CommandError(
          `Token ${keyId} has expired, and its successor would be expired too. Add when it expires: --expires 30d`,
        )
      }
      return made
    })
    showSecret(issued.record, issued.token, values.json)
    return 0
  },
}

export const token = commandGroup(
  'token',
  'Manage the tokens of integrations',
  'Tokens let integrations send and read. A token belongs to one account and one company.',
  { create, list, show, disable, enable, limit, rotate },
)

function withKeyId<const O extends Record<string, { readonly type: 'string' }>>(args: readonly string[], options: O) {
  const { values, positionals } = parseFlags(args, { ...options, ...JSON_FLAG }, 'KEY_ID')
  return {
    keyId: positionals[0]!,
    values: values as { readonly [N in keyof O]?: string } & { readonly json?: boolean },
  }
}

async function setActive(args: readonly string[], isActive: boolean): Promise<number> {
  const { keyId, values } = withKeyId(args, {})
  const now = systemClock.now()
  const changed = await inEffect(async ({ tokens }) => known(await tokens.setActive(keyId, isActive, now), keyId))
  showToken(changed, values.json)
  return 0
}

/** Makes a change and waits until every running server has confirmed it. */
function inEffect<T>(change: (store: Store) => Promise<T>): Promise<T> {
  return withStore(async (store) => {
    const changed = await change(store)
    if (await waitUntilInEffect(store, IN_EFFECT_TIMEOUT_MS)) return changed
    throw new CommandError(
      'The change is stored, but a running server has not confirmed it. Look at its log; restart it to be sure.',
    )
  })
}

function known(found: TokenRecord | null, keyId: string): TokenRecord {
  if (found) return found
  throw new CommandError(`There is no token with key id ${keyId}. './intray token list' lists all tokens.`)
}

function showSecret(issued: TokenRecord, secret: string, isJson = false): void {
  if (isJson) {
    printJson({ ...jsonOf(issued), token: secret })
    return
  }
  showToken(issued)
  print(`\nThe token, shown this once:\n\n  ${secret}\n`)
}

function showToken(one: TokenRecord, isJson = false): void {
  const json = jsonOf(one)
  if (isJson) printJson(json)
  else print(record({ ...json, state: tokenState(one, systemClock.now()) }))
}

function jsonOf(one: TokenRecord) {
  const time = (ms: number | null) => (ms === null ? null : isoTime(ms))
  return {
    key_id: one.keyId,
    account_id: one.accountId,
    company_id: one.companyId,
    scope: one.scope,
    is_active: one.isActive ? 1 : 0,
    expires_at: time(one.expiresAt),
    label: one.label,
    created_at: isoTime(one.createdAt),
    disabled_at: time(one.disabledAt),
    last_used_at: time(one.lastUsedAt),
    rotated_from: one.rotatedFrom,
    rate_limit: one.rateLimit === null ? null : formatRate(one.rateLimit),
  }
}

/** Null: the limit of the setting. */
function rateLimit(text: string | undefined): TokenRateLimit | null {
  if (text === undefined || text === 'default') return null
  try {
    return parseRate(text.trim())
  } catch (error) {
    throw new UsageError(`--rate-limit ${(error as Error).message}, or default.`)
  }
}

function durationMs(text: string, name: string): number {
  const ms = parseDuration(text.trim())
  if (ms === null || ms < TOKEN_LIFE_MS.min || ms > TOKEN_LIFE_MS.max) {
    throw new UsageError(`--${name} takes 2s to 365d, for example 30m, 24h or 30d.`)
  }
  return ms
}

const ISO_TIME = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d{1,3})?)?(Z|[+-]\d{2}:\d{2}))?$/

function expiry(text: string | undefined, now: number): number | null {
  if (text === undefined) return null
  const value = text.trim()
  if (!ISO_TIME.test(value)) {
    if (parseDuration(value) === null) {
      throw new UsageError('--expires takes 2s to 365d, or an ISO time with its zone, such as 2027-01-31T00:00:00Z.')
    }
    return now + durationMs(value, 'expires')
  }
  const time = Date.parse(value)
  // Date.parse reads 30 February as 2 March.
  const day = value.slice(0, 10)
  if (Number.isNaN(time) || new Date(`${day}T00:00:00Z`).toISOString().slice(0, 10) !== day)
    throw new UsageError(`--expires: ${value} is not a date that exists.`)
  return time
}
