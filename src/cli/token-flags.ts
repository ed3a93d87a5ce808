// Flags of tokens and hooks: expiry, overlap, rate limit; and a change that returns once it is in effect.

import { TOKEN_LIFE_MS, waitUntilInEffect } from '../auth/token-lifecycle.ts'
import type { TokenRateLimit } from '../model/rate-limit.ts'
import { parseDuration } from '../runtime/duration.ts'
import { parseRate } from '../runtime/rate.ts'
import type { Store } from '../store/contract/store.ts'
import { CommandError, type Flags, UsageError } from './command.ts'
import { withStore } from './open.ts'

const IN_EFFECT_TIMEOUT_MS = 10_000

export const EXPIRES_FLAG = {
  expires: { value: 'E', about: 'When it expires: 2s to 365d from now, or an ISO time such as 2027-01-31T00:00:00Z.' },
} as const satisfies Flags
export const RATE_LIMIT = {
  value: 'R',
  about: 'Requests it may make on each node, such as 100/1s; off: no limit; default: INTRAY_RATE_LIMIT.',
} as const

/** Makes a change and waits until every running server has confirmed it. */
export function inEffect<T>(work: (store: Store) => Promise<T>): Promise<T> {
  return withStore(async (store) => {
    const changed = await work(store)
    if (await waitUntilInEffect(store, IN_EFFECT_TIMEOUT_MS)) return changed
    throw new CommandError(
      'The change is stored, but a running server has not confirmed it. Look at its log; restart it to be sure.',
    )
  })
}

/** Null: the limit of the setting. */
export function rateLimit(text: string | undefined): TokenRateLimit | null {
  if (text === undefined || text === 'default') return null
  try {
    return parseRate(text.trim())
  } catch (error) {
    throw new UsageError(`--rate-limit ${(error as Error).message}, or default.`)
  }
}

export function durationMs(text: string, name: string): number {
  const ms = parseDuration(text.trim())
  if (ms === null || ms < TOKEN_LIFE_MS.min || ms > TOKEN_LIFE_MS.max) {
    throw new UsageError(`--${name} takes 2s to 365d, for example 30m, 24h or 30d.`)
  }
  return ms
}

const ISO_TIME = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d{1,3})?)?(Z|[+-]\d{2}:\d{2}))?$/

export function expiry(text: string | undefined, now: number): number | null {
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
