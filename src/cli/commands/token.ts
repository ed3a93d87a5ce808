// `./intray token …`: creates, shows, disables, enables, limits and rotates tokens, whether a server runs or not. A command
// that changes a token in use returns when the change is in effect on every running server. Every change is in the audit log.

import { issueToken, MAX_LABEL, rotateToken } from '../../auth/token-lifecycle.ts'
import type { AuditAction } from '../../model/operator.ts'
import { isScope } from '../../model/principal.ts'
import { type TokenRecord, tokenState } from '../../model/token.ts'
import { systemClock } from '../../runtime/clock.ts'
import type { Store } from '../../store/contract/store.ts'
import { recordCommand } from '../audit.ts'
import { type Command, command, CommandError, commandGroup, UsageError } from '../command.ts'
import { JSON_FLAG, TENANT_FLAGS, tenantOf } from '../flags.ts'
import { withStore } from '../open.ts'
import { print, printJson, record } from '../output.ts'
import { durationMs, EXPIRES_FLAG, expiry, inEffect, RATE_LIMIT, rateLimit } from '../token-flags.ts'
import { tokenJson } from '../token-json.ts'
import { tokenImport } from './token/import.ts'
import { tokenList } from './token/list.ts'

const create = command({
  about: 'Creates a token for one account and one company, and shows it once. Only its digest is stored.',
  flags: {
    ...TENANT_FLAGS,
    scope: {
      value: 'S',
      about:
        "What the token is for: 'processor' reads and processes, 'admin' may also erase, and neither may send; any other scope names an integration that sends, such as cf for a form plugin.",
    },
    ...EXPIRES_FLAG,
    label: { value: 'TEXT', about: `A note for yourself, at most ${MAX_LABEL} characters.` },
    'rate-limit': RATE_LIMIT,
    ...JSON_FLAG,
  },
  async run(values) {
    const now = systemClock.now()
    const [scope, label] = [(values.scope ?? '').trim(), (values.label ?? '').trim()]
    if (scope !== '' && !isScope(scope)) {
      throw new UsageError('--scope takes 1 to 64 of a-z, 0-9, "_", ".", ":" and "-", starting with a letter or digit.')
    }
    if (label.length > MAX_LABEL) throw new UsageError(`--label takes at most ${MAX_LABEL} characters.`)
    const request = { scope, label, expiresAt: expiry(values.expires, now), rateLimit: rateLimit(values['rate-limit']) }
    const tenant = tenantOf(values)
    const issued = await withStore(async (store) => {
      const made = await issueToken(store.tokens, tenant, request, now)
      await recordCommand(store, 'token_create', made.record.keyId, tenant)
      return made
    })
    showSecret(issued.record, issued.token, values.json)
  },
})

const show = command({
  args: 'KEY_ID',
  about: `Shows one token, without its secret. KEY_ID is the part between the first and the second "_" of the token.`,
  flags: JSON_FLAG,
  async run(values, [keyId = '']) {
    showToken(known(await withStore((store) => store.tokens.find(keyId)), keyId), values.json)
  },
})

const disable = activeCommand(
  false,
  'Disables a token: requests with it are answered 401 token_disabled. Returns when this is in effect on every running server.',
)

const enable = activeCommand(
  true,
  'Enables a token that was disabled. Returns when this is in effect on every running server.',
)

const limit = command({
  args: 'KEY_ID',
  about: 'Sets the rate limit of a token. Returns when this is in effect on every running server.',
  flags: { 'rate-limit': { ...RATE_LIMIT, isRequired: true }, ...JSON_FLAG },
  async run(values, [keyId = '']) {
    if (values['rate-limit'] === undefined) throw new UsageError('token limit needs --rate-limit R.')
    const rate = rateLimit(values['rate-limit'])
    showToken(await change('token_limit', keyId, ({ tokens }) => tokens.setRateLimit(keyId, rate)), values.json)
  },
})

const rotate = command({
  args: 'KEY_ID',
  about: `Replaces a token by a new one for the same tenant and scope. Prints the new token once and disables the old one. Returns
when this is in effect on every running server.`,
  flags: {
    overlap: {
      value: 'TIME',
      about: 'How long the old token keeps working: 2s to 365d. Without it the old token is disabled at once.',
    },
    ...EXPIRES_FLAG,
    ...JSON_FLAG,
  },
  async run(values, [keyId = '']) {
    const now = systemClock.now()
    const expiresAt = values.expires === undefined ? undefined : expiry(values.expires, now)!
    const overlapMs = values.overlap === undefined ? null : durationMs(values.overlap, 'overlap')
    const issued = await inEffect(async (store) => {
      const old = known(await store.tokens.find(keyId), keyId)
      if (old.recipe !== null)
        throw new CommandError(`${keyId} is a hook. Rotate it: ./intray hook rotate ${keyId} --address`)
      const made = await rotateToken(store.tokens, old, { overlapMs, expiresAt }, now)
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
      await recordCommand(store, 'token_rotate', keyId, old)
      return made
    })
    showSecret(issued.record, issued.token, values.json)
  },
})

export const token = commandGroup(
  'Manages the tokens of integrations',
  'Tokens let integrations send and read. A token belongs to one account and one company.',
  { create, import: tokenImport, list: tokenList, show, disable, enable, limit, rotate },
)

function activeCommand(isActive: boolean, about: string): Command {
  return command({
    args: 'KEY_ID',
    about,
    flags: JSON_FLAG,
    async run(values, [keyId = '']) {
      const now = systemClock.now()
      const action = isActive ? 'token_enable' : 'token_disable'
      showToken(await change(action, keyId, ({ tokens }) => tokens.setActive(keyId, isActive, now)), values.json)
    },
  })
}

/** Changes one token. */
function change(
  action: AuditAction,
  keyId: string,
  write: (store: Store) => Promise<TokenRecord | null>,
): Promise<TokenRecord> {
  return inEffect(async (store) => {
    const changed = known(await write(store), keyId)
    await recordCommand(store, action, keyId, changed)
    return changed
  })
}

function known(found: TokenRecord | null, keyId: string): TokenRecord {
  if (found) return found
  throw new CommandError(`There is no token with key id ${keyId}. './intray token list' lists all tokens.`)
}

function showSecret(issued: TokenRecord, secret: string, isJson = false): void {
  if (isJson) {
    printJson({ ...tokenJson(issued), token: secret })
    return
  }
  showToken(issued)
  print(`\nThe token, shown this once:\n\n  ${secret}\n`)
}

function showToken(one: TokenRecord, isJson = false): void {
  const json = tokenJson(one)
  if (isJson) printJson(json)
  else print(record({ ...json, state: tokenState(one, systemClock.now()) }))
}
