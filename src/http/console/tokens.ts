// The tokens of a tenant: list, create, rotate, disable, enable. A secret is shown once, when the token is created.

import { MAX_LABEL } from '../../auth/token-lifecycle.ts'
import type { Problem } from '../../model/errors.ts'
import { isScope } from '../../model/principal.ts'
import { type TokenRecord, tokenState } from '../../model/token.ts'
import { isoTime } from '../../runtime/clock.ts'
import { callerOf, jsonAnswer } from '../call.ts'
import { cursorParameter, DEFAULT_LIMIT, limitParameter, pageOf } from '../paging.ts'
import { invalidRequest } from '../problem.ts'
import { withQuery } from '../query.ts'
import type { ConsoleOptions } from './options.ts'
import { parseLifetime, withTextFields } from './text-fields.ts'

const MAX_COMMAND_BYTES = 4096
const NOT_FOUND: Problem = { code: 'not_found' }

export const tokenCursor = cursorParameter((text) => {
  const match = /^(\d{1,15})\.([0-9A-Za-z]{1,32})$/.exec(text)
  return match && { createdAt: Number(match[1]), keyId: match[2]! }
})

export function tokenOperations({ tokens, clock }: ConsoleOptions) {
  const view = (record: TokenRecord) => tokenView(record, clock.now())

  const listTokens = withQuery({ limit: limitParameter, cursor: tokenCursor }, async (call, query) => {
    const { limit = DEFAULT_LIMIT, cursor } = query
    const found = await tokens.list(callerOf(call), cursor ?? null, limit + 1)
    const { page, next } = pageOf(found, limit, ({ createdAt, keyId }) => `${createdAt}.${keyId}`)
    return jsonAnswer({ tokens: page.map(view), next })
  })

  const createToken = withTextFields(['scope', 'label', 'expires_in'], MAX_COMMAND_BYTES, async (call, given) => {
    const scope = given.scope ?? ''
    if (scope !== '' && !isScope(scope)) {
      return invalidRequest('scope takes 1 to 64 of a-z, 0-9, "_", ".", ":" and "-", starting with a letter or digit.')
    }
    const label = given.label ?? ''
    if (label.length > MAX_LABEL) return invalidRequest(`label takes at most ${MAX_LABEL} characters.`)
    const lifeMs = parseLifetime(given.expires_in)
    if (lifeMs === null) return invalidRequest('expires_in takes 2s to 365d, for example 30m, 24h or 30d.')
    const expiresAt = lifeMs === undefined ? null : clock.now() + lifeMs
    const made = await tokens.issue(callerOf(call), { scope, label, expiresAt, rateLimit: null })
    call.exchange.auditTarget = made.record.keyId
    return jsonAnswer({ token: { ...view(made.record), secret: made.token } })
  })

  const rotateToken = withTextFields(['overlap', 'expires_in'], MAX_COMMAND_BYTES, async (call, given) => {
    const [overlapMs, lifeMs] = [parseLifetime(given.overlap), parseLifetime(given.expires_in)]
    if (overlapMs === null || lifeMs === null) {
      return invalidRequest('overlap and expires_in take 2s to 365d, for example 30m, 24h or 30d.')
    }
    // A hook is rotated at an address of its own.
    if ((await tokens.find(callerOf(call), call.params.key_id ?? ''))?.recipe) return NOT_FOUND
    const made = await tokens.rotate(callerOf(call), call.params.key_id ?? '', {
      overlapMs: overlapMs ?? null,
      expiresAt: lifeMs === undefined ? undefined : clock.now() + lifeMs,
    })
    if (made === null) return NOT_FOUND
    if ('successor' in made)
      return invalidRequest(`This token was rotated already. Rotate its successor instead: ${made.successor}.`)
    if ('hasExpired' in made)
      return invalidRequest(
        'This token has expired, and its successor would be expired too. Send expires_in, for example 30d.',
      )
    const inEffect = await tokens.inEffect()
    return jsonAnswer({ token: { ...view(made.record), secret: made.token }, in_force: inEffect })
  })

  const setActive = (isActive: boolean) =>
    withQuery({}, async (call) => {
      const changed = await tokens.setActive(callerOf(call), call.params.key_id ?? '', isActive)
      return changed ? jsonAnswer({ token: view(changed), in_force: await tokens.inEffect() }) : NOT_FOUND
    })

  return { listTokens, createToken, rotateToken, disableToken: setActive(false), enableToken: setActive(true) }
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
