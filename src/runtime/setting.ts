// The common kinds of settings: how each is read and written. Those of one setting stand beside the table (config.ts).

import { formatDuration, parseDuration } from './duration.ts'
import { parseSecretsKey } from './secrets.ts'

export interface Setting<T> {
  readonly fallback: T
  /** Its description in the docs and in --help. */
  readonly about: string
  readonly parse: (text: string) => T
  readonly format: (value: T) => string
  /** Shown without its secret part. */
  readonly secret?: boolean
}

export const text = (fallback: string, about: string): Setting<string> => ({
  fallback,
  about,
  parse: (value) => {
    if (value === '') throw new Error('must not be empty')
    return value
  },
  format: (value) => value,
})

export const path = (about: string): Setting<string | null> => ({
  fallback: null,
  about,
  parse: (value) => (value === '' ? null : value),
  format: (value) => value ?? '',
})

export const integer = (fallback: number, min: number, max: number, about: string): Setting<number> => ({
  fallback,
  about: `${about} (${min}–${max})`,
  parse: (value) => {
    const number = /^\d{1,15}$/.test(value) ? Number(value) : Number.NaN
    if (!(number >= min && number <= max)) throw new Error(`must be a whole number from ${min} to ${max}`)
    return number
  },
  format: String,
})

export const duration = (fallback: string, min: string, max: string, about: string): Setting<number> => ({
  fallback: parseDuration(fallback)!,
  about: `${about} (${min}–${max})`,
  parse: (value) => {
    const ms = parseDuration(value)
    if (ms === null) throw new Error('must be a duration such as 250ms, 2s, 5m, 24h or 30d')
    if (ms < parseDuration(min)! || ms > parseDuration(max)!) throw new Error(`must be from ${min} to ${max}`)
    return ms
  },
  format: formatDuration,
})

export const choice = <T extends string>(choices: readonly T[], fallback: T, about: string): Setting<T> => ({
  fallback,
  about: `${about} (${choices.join(', ')})`,
  parse: (value) => {
    if (!choices.includes(value as T)) throw new Error(`must be one of ${choices.join(', ')}`)
    return value as T
  },
  format: (value) => value,
})

/** Never shown, not even in part. */
export const secretsKey = (about: string): Setting<Uint8Array | null> => ({
  fallback: null,
  about,
  parse: (value) => {
    const key = parseSecretsKey(value)
    if (key === null) throw new Error('must be 32 bytes in base64 or hexadecimal: openssl rand -base64 32 makes them')
    return key
  },
  format: (value) => (value === null ? '' : '[redacted]'),
  secret: true,
})
