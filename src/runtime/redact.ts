// Masks text that looks like a token or a hook id: every text from outside passes through here before it is written anywhere but the journal.

import { memoize } from './memoize.ts'

/**
 * A token or hook id, everything that follows its prefix without a break, and any long run of base62, because a token without its
 * first letters still has its whole secret. Hashes are masked too. A run of letters and digits is looked at once, because
 * looking again from each of its characters took 18 ms for 64 KiB.
 */
const TOKEN_SHAPED = /(?<![0-9A-Za-z])(?=([0-9A-Za-z]+))\1(?:(?<=it[rh])_[^\s"'<>,;]+|(?<=[0-9A-Za-z]{30}))/gi

export function redactText(text: string): string {
  return text.replace(TOKEN_SHAPED, (found) => `${prefixOf(found)}[redacted]`)
}

/**
 * The same for bytes, keeping their length and position: each secret character becomes an x. Zero bytes are passed over,
 * because a token in UTF-16 or UTF-32 has them between its characters.
 */
export function redactBytes(bytes: Uint8Array): Uint8Array {
  const others = bytes.includes(0) ? bytes.filter((byte) => byte !== 0) : bytes
  const text = Buffer.from(others.buffer, others.byteOffset, others.byteLength).toString('latin1')
  const redacted = Buffer.from(
    text.replace(TOKEN_SHAPED, (found) => prefixOf(found).padEnd(found.length, 'x')),
    'latin1',
  )
  if (others === bytes) return redacted
  const masked = Buffer.from(bytes)
  let next = 0
  for (let at = 0; at < masked.length; at += 1) if (masked[at] !== 0) masked[at] = redacted[next++]!
  return masked
}

/** Whether a text has a token in it, or most of one. Narrower than what is masked: a random key of letters has none. */
export function hasToken(text: string): boolean {
  return /it[rh]_[0-9A-Za-z]{10}_[0-9A-Za-z]{8}/i.test(text)
}

/** The prefix stays visible. */
function prefixOf(found: string): string {
  return /^it[rh]_/i.test(found) ? found.slice(0, 4) : ''
}

/** Longer than a token, so that one that begins before the cut is seen whole. */
const SEEN_BEYOND = 100

/** A run too short to be masked; at a cut it may be the start of a longer one. */
const SHORT_RUN = /(?<![0-9A-Za-z])[0-9A-Za-z]{1,29}$/

/** The beginning of a text, masked. Scans no more than needed, because a long hostile text takes milliseconds. */
export function redactBeginning(text: string, maxLength: number): string {
  const seen = maxLength + SEEN_BEYOND
  const beginning = text.length <= seen ? text : text.slice(0, seen).replace(SHORT_RUN, '')
  return redactText(beginning).slice(0, maxLength)
}

/** The same, memoized. */
export function createRedactor(maxLength: number): (text: string) => string {
  return memoize((text) => redactBeginning(text, maxLength))
}
