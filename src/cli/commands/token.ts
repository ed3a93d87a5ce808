// `./intray token`: makes, shows, disables, enables, limits and rotates tokens, whether the server runs or not. What changes a
// token in use returns when every running server has put the change into force.

import { parseArgs } from 'node:util'
import { issueToken, MAX_LABEL, rotateToken, TOKEN_LIFE_MS, untilInForce } from '../../auth/token-lifecycle.ts'
import { isScope } from '../../model/principal.ts'
import type { TokenRateLimit } from '../../model/rate-limit.ts'
import { type TokenRecord, tokenState } from '../../model/token.ts'
import { isoTime, systemClock } from '../../runtime/clock.ts'
import { parseDuration } from '../../runtime/duration.ts'
import { formatRate, parseRate } from '../../runtime/rate.ts'
import type { Store } from '../../store/contract/store.ts'
import { type Command, CommandError, UsageError } from '../command.ts'
import { withStore } from '../open.ts'
import { print, printJson, printList, record } from '../output.ts'

const IN_FORCE_TIMEOUT_MS = 10_000

const HELP = `
Usage: ./intray token create --account N --company N [--scope S] [--expires 30d] [--label TEXT] [--rate-limit R]
       ./intray token list
       ./intray token show KEY_ID
       ./intray token disable KEY_ID
       ./intray token enable KEY_ID
       ./intray token limit KEY_ID --rate-limit R
       ./intray token rotate KEY_ID [--overlap 24h] [--expires 30d]

Tokens let integrations in. A token belongs to one account and one company. It is shown once, when it is made.

  --account, --company  The tenant: whole numbers from 1.
  --scope               What kind of integration it is for, e.g. cf for a form plugin. 'processor' reads and may not send.
  --expires             2s to 365d from now, or an ISO time such as 2027-01-31T00:00:00Z.
  --label               A note for yourself, at most 200 characters.
  --rate-limit          Requests it may make on each node, such as 100/1s; off: any number; default: as INTRAY_RATE_LIMIT says.
  --overlap             How long the old token keeps working after rotate. Without it the old one is disabled at once.
  --json                Print JSON, one object a line.

disable, enable, limit and rotate return when the change is in force on every running server.`

type Values = Record<string, string | boolean | undefined>

const ACTIONS: Record<string, (store: Store, keyId: string, values: Values) => Promise<void>> = {
  create: (store, _keyId, values) => create(store, values),
  list: (store, _keyId, values) => list(store, values),
  show: async (store, keyId, values) => show(known(await store.tokens.find(keyId), keyId), values),
  disable: (store, keyId, values) => setActive(store, keyId, false, values),
  enable: (store, keyId, values) => setActive(store, keyId, true, values),
  limit: (store, keyId, values) => setRateLimit(store, keyId, values),
  rotate: (store, keyId, values) => rotate(store, keyId, values),
}

export const token: Command = {
  name: 'token',
  summary: 'Make, list, disable, enable, limit and rotate tokens.',
  help: HELP,
  async run(args) {
    const { values, positionals } = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        account: { type: 'string' },
        company: { type: 'string' },
        scope: { type: 'string' },
        expires: { type: 'string' },
        label: { type: 'string' },
        overlap: { type: 'string' },
        'rate-limit': { type: 'string' },
        json: { type: 'boolean' },
      },
    })
    const [name = '', keyId, ...rest] = positionals
    const action = Object.hasOwn(ACTIONS, name) ? ACTIONS[name] : undefined
    if (!action) throw new UsageError(`token takes one of: ${Object.keys(ACTIONS).join(', ')}.`)
    const needsKeyId = name !== 'create' && name !== 'list'
    if (needsKeyId === (keyId === undefined) || rest.length > 0) {
      throw new UsageError(needsKeyId ? `token ${name} takes one KEY_ID.` : `token ${name} takes no KEY_ID.`)
    }
    await withStore((store) => action(store, keyId ?? '', values))
    return 0
  },
}

async function create(store: Store, values: Values): Promise<void> {
  const now = systemClock.now()
  const scope = text(values, 'scope')
  if (scope !== '' && !isScope(scope)) {
    throw new UsageError('--scope takes 1 to 64 of a-z, 0-9, "_", ".", ":" and "-", starting with a letter or digit.')
  }
  const label = text(values, 'label')
  if (label.length > MAX_LABEL) throw new UsageError(`--label takes at most ${MAX_LABEL} characters.`)
  const tenant = { accountId: wholeNumber(values, 'account'), companyId: wholeNumber(values, 'company') }
  const made = await issueToken(
    store.tokens,
    tenant,
    { scope, label, expiresAt: expiry(values, now), rateLimit: rateLimit(values) },
    now,
  )
  showMinted(made.record, made.token, values)
}

async function list(store: Store, values: Values): Promise<void> {
  const time = (ms: number | null) => (ms === null ? '-' : isoTime(ms))
  printList(await store.tokens.list(), values.json === true, {
    jsonOf,
    empty: 'No tokens yet. Make one: ./intray token create --account 1 --company 1 --scope cf',
    columns: {
      'KEY ID': ({ keyId }) => keyId,
      STATE: (one) => tokenState(one, systemClock.now()),
      ACCOUNT: ({ accountId }) => String(accountId),
      COMPANY: ({ companyId }) => String(companyId),
      SCOPE: ({ scope }) => scope || '-',
      'RATE LIMIT': ({ rateLimit }) => (rateLimit === null ? '-' : formatRate(rateLimit)),
      EXPIRES: ({ expiresAt }) => time(expiresAt),
      'LAST USED': ({ lastUsedAt }) => time(lastUsedAt),
      LABEL: ({ label }) => label,
    },
  })
}

async function setActive(store: Store, keyId: string, isActive: boolean, values: Values): Promise<void> {
  const changed = known(await store.tokens.setActive(keyId, isActive, systemClock.now()), keyId)
  await inForce(store)
  show(changed, values)
}

async function setRateLimit(store: Store, keyId: string, values: Values): Promise<void> {
  if (values['rate-limit'] === undefined) throw new UsageError('token limit takes --rate-limit.')
  const changed = known(await store.tokens.setRateLimit(keyId, rateLimit(values)), keyId)
  await inForce(store)
  show(changed, values)
}

async function rotate(store: Store, keyId: string, values: Values): Promise<void> {
  const now = systemClock.now()
  const old = known(await store.tokens.find(keyId), keyId)
  const expiresAt = values.expires === undefined ? undefined : expiry(values, now)!
  const overlapMs = values.overlap === undefined ? null : durationMs(values, 'overlap')
  const made = await rotateToken(store.tokens, old, { overlapMs, expiresAt }, now)
  if ('successor' in made) {
    throw new CommandError(`Token ${keyId} was rotated already. Its successor is ${made.successor}: rotate that one.`)
  }
  if ('hasExpired' in made) {
    throw new CommandError(
      `Token ${keyId} has expired, and its successor would be expired too. Say how long it lives: --expires 30d`,
    )
  }
  await inForce(store)
  showMinted(made.record, made.token, values)
}

async function inForce(store: Store): Promise<void> {
  if (await untilInForce(store, IN_FORCE_TIMEOUT_MS)) return
  throw new CommandError(
    'The change is stored, but a running server has not confirmed it yet. Look at its log; restart it to be sure.',
  )
}

function known(found: TokenRecord | null, keyId: string): TokenRecord {
  if (!found)
    throw new CommandError(`There is no token with key id ${keyId}. './intray token list' shows those there are.`)
  return found
}

function showMinted(made: TokenRecord, secret: string, values: Values): void {
  if (values.json) {
    printJson({ ...jsonOf(made), token: secret })
    return
  }
  show(made, values)
  print(`\nThe token, shown this once:\n\n  ${secret}\n`)
}

function show(one: TokenRecord, values: Values): void {
  const json = jsonOf(one)
  if (values.json) printJson(json)
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

function text(values: Values, name: string): string {
  const value = values[name]
  return typeof value === 'string' ? value.trim() : ''
}

/** Null: as the setting has it. */
function rateLimit(values: Values): TokenRateLimit | null {
  if (values['rate-limit'] === undefined || values['rate-limit'] === 'default') return null
  try {
    return parseRate(text(values, 'rate-limit'))
  } catch (error) {
    throw new UsageError(`--rate-limit ${(error as Error).message}, or default.`)
  }
}

function wholeNumber(values: Values, name: string): number {
  const value = text(values, name)
  const number = /^\d{1,16}$/.test(value) ? Number(value) : 0
  if (number < 1 || !Number.isSafeInteger(number)) throw new UsageError(`--${name} takes a whole number from 1.`)
  return number
}

function durationMs(values: Values, name: string): number {
  const ms = parseDuration(text(values, name))
  if (ms === null || ms < TOKEN_LIFE_MS.min || ms > TOKEN_LIFE_MS.max) {
    throw new UsageError(`--${name} takes 2s to 365d, for example 30m, 24h or 30d.`)
  }
  return ms
}

const ISO_TIME = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d{1,3})?)?(Z|[+-]\d{2}:\d{2}))?$/

function expiry(values: Values, now: number): number | null {
  if (values.expires === undefined) return null
  const value = text(values, 'expires')
  if (!ISO_TIME.test(value)) {
    if (parseDuration(value) === null) {
      throw new UsageError('--expires takes 2s to 365d, or an ISO time with its zone, such as 2027-01-31T00:00:00Z.')
    }
    return now + durationMs(values, 'expires')
  }
  const time = Date.parse(value)
  // Date.parse takes 30 February for 2 March.
  const day = value.slice(0, 10)
  if (Number.isNaN(time) || new Date(`${day}T00:00:00Z`).toISOString().slice(0, 10) !== day)
    throw new UsageError(`--expires: there is no time ${value}.`)
  return time
}
