// The tokens of a tenant: list, make, replace, switch off and on. A token is shown once, when it is made.

import { MAX_LABEL, TOKEN_LIFE_MS } from '../../auth/token-lifecycle.ts'
import type { Problem } from '../../model/errors.ts'
import { isScope } from '../../model/principal.ts'
import { type TokenRecord, tokenState } from '../../model/token.ts'
import { isoTime } from '../../runtime/clock.ts'
import { parseDuration } from '../../runtime/duration.ts'
import type { Parameter } from '../../runtime/parameter.ts'
import { type Call, callerOf, jsonAnswer, type Operation, readCommand } from '../call.ts'
import { DEFAULT_LIMIT, limitParameter } from '../inbox/cursor.ts'
import { readQuery } from '../query.ts'
import type { ConsoleOptions } from './options.ts'

const MAX_COMMAND_BYTES = 4096
const NOT_FOUND: Problem = { code: 'not_found' }

const positionCursor: Parameter<{ createdAt: number; keyId: string }> = (text) => {
  const match = /^(\d{1,15})\.([0-9A-Za-z]{1,32})$/.exec(text)
  if (!match) throw new Error('must be the value of next from an earlier page, unchanged')
  return { createdAt: Number(match[1]), keyId: match[2]! }
}

export function tokenOperations({ tokens, clock }: ConsoleOptions) {
  const view = (record: TokenRecord) => tokenView(record, clock.now())

  const listTokens: Operation = async (call) => {
    const query = readQuery(call.req, { limit: limitParameter, cursor: positionCursor })
    if ('problem' in query) return query.problem
    const { limit = DEFAULT_LIMIT, cursor } = query.values
    const found = await tokens.list(callerOf(call), cursor ?? null, limit + 1)
    const page = found.slice(0, limit)
    const last = page.at(-1)
    return jsonAnswer({
      tokens: page.map(view),
      next: found.length > limit && last ? `${last.createdAt}.${last.keyId}` : null,
    })
  }

  const createToken: Operation = (call) =>
    commanded(call, ['scope', 'label', 'expires_in'], async (given) => {
      const scope = given.scope ?? ''
      if (scope !== '' && !isScope(scope)) {
        return unusable('scope takes 1 to 64 of a-z, 0-9, "_", ".", ":" and "-", starting with a letter or digit.')
      }
      const label = given.label ?? ''
      if (label.length > MAX_LABEL) return unusable(`label takes at most ${MAX_LABEL} characters.`)
      const lifeMs = lifeIn(given.expires_in)
      if (lifeMs === null) return unusable('expires_in takes 2s to 365d, for example 30m, 24h or 30d.')
      const expiresAt = lifeMs === undefined ? null : clock.now() + lifeMs
      const made = await tokens.issue(callerOf(call), { scope, label, expiresAt, rateLimit: null })
      call.exchange.auditTarget = made.record.keyId
      return jsonAnswer({ token: { ...view(made.record), secret: made.token } })
    })

  const rotateToken: Operation = (call) =>
    commanded(call, ['overlap', 'expires_in'], async (given) => {
      const [overlapMs, lifeMs] = [lifeIn(given.overlap), lifeIn(given.expires_in)]
      if (overlapMs === null || lifeMs === null) {
        return unusable('overlap and expires_in take 2s to 365d, for example 30m, 24h or 30d.')
      }
      const made = await tokens.rotate(callerOf(call), call.params.key_id ?? '', {
        overlapMs: overlapMs ?? null,
        expiresAt: lifeMs === undefined ? undefined : clock.now() + lifeMs,
      })
      if (made === null) return NOT_FOUND
      if ('successor' in made)
        return unusable(`This token was rotated already. Rotate its successor instead: ${made.successor}.`)
      if ('hasExpired' in made)
        return unusable(
          'This token has expired, and its successor would be expired too. Send expires_in, for example 30d.',
        )
      const inEffect = await tokens.inEffect()
      return jsonAnswer({ token: { ...view(made.record), secret: made.token }, in_force: inEffect })
    })

  const switching =
    (isActive: boolean): Operation =>
    async (call) => {
      const query = readQuery(call.req, {})
      if ('problem' in query) return query.problem
      const changed = await tokens.setActive(callerOf(call), call.params.key_id ?? '', isActive)
      return changed ? jsonAnswer({ token: view(changed), in_force: await tokens.inEffect() }) : NOT_FOUND
    }

  return { listTokens, createToken, rotateToken, disableToken: switching(false), enableToken: switching(true) }
}

/** A command whose fields are all texts. */
async function commanded<N extends string>(
  call: Call,
  names: readonly N[],
  work: (given: Partial<Record<N, string>>) => ReturnType<Operation>,
): Promise<Awaited<ReturnType<Operation>>> {
  const query = readQuery(call.req, {})
  if ('problem' in query) return query.problem
  const read = await readCommand(call, MAX_COMMAND_BYTES)
  if ('problem' in read) return read.problem
  const isKnown = ([name, value]: [string, unknown]) => names.includes(name as N) && typeof value === 'string'
  if (!Object.entries(read.body).every(isKnown))
    return unusable(`The body has another field, or one that is not a string. Send only ${names.join(', ')}.`)
  return work(read.body as Partial<Record<N, string>>)
}

/** Undefined: nothing was said. Null: it cannot be. */
function lifeIn(text: string | undefined): number | null | undefined {
  if (text === undefined) return undefined
  const ms = parseDuration(text)
  return ms === null || ms < TOKEN_LIFE_MS.min || ms > TOKEN_LIFE_MS.max ? null : ms
}

function unusable(message: string): Problem {
  return { code: 'invalid_request', message }
}

function tokenView(one: TokenRecord, now: number) {
  const time = (ms: number | null) => (ms === null ? null : isoTime(ms))
  return {
    key_id: one.keyId,
    scope: one.scope,
    label: one.label,
    state: tokenState(one, now),
    created_at: isoTime(one.createdAt),
    expires_at: time(one.expiresAt),
    disabled_at: time(one.disabledAt),
    last_used_at: time(one.lastUsedAt),
    rotated_from: one.rotatedFrom,
  }
}
