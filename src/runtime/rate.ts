// Parses and formats rates such as `100/1s`, `6000/1m`, or `off`.

import { formatDuration, parseDuration } from './duration.ts'

export type Rate = { readonly requests: number; readonly windowMs: number } | 'off'

const MAX_REQUESTS = 1_000_000
const SHORTEST_MS = 1000
const LONGEST_MS = 86_400_000

/** Throws the second half of a sentence: `must be …`. */
export function parseRate(text: string): Rate {
  if (text === 'off') return 'off'
  const match = /^(\d{1,7})\/(.+)$/.exec(text)
  const requests = Number(match?.[1])
  const windowMs = parseDuration(match?.[2] ?? '') ?? 0
  if (!(requests >= 1 && requests <= MAX_REQUESTS && windowMs >= SHORTEST_MS && windowMs <= LONGEST_MS))
    throw new Error('must be off or a rate such as 100/1s or 6000/1m: 1 to 1000000 requests in 1s to 1d')
  return { requests, windowMs }
}

export function formatRate(rate: Rate): string {
  return rate === 'off' ? 'off' : `${rate.requests}/${formatDuration(rate.windowMs)}`
}
