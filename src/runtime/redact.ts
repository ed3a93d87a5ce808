// The last line of defence for secrets: whatever text came from outside passes through here before it is written
// anywhere but the journal. Our own tokens are recognisable by shape, which is what makes this possible.

import { remembering } from './remembering.ts'

/**
 * A token, whatever follows the start of one without a break, and any long run of base62: a token that lost its first letters or has one of
 * them encoded still has its secret in one piece. Hashes are masked along with it, which is a fair price.
 */
const TOKEN_SHAPED = /[0-9A-Za-z]*itr_[^\s"'<>,;]+|[0-9A-Za-z]{30,}/gi

export function redactText(text: string): string {
  return text.replace(TOKEN_SHAPED, (found) => `${prefixOf(found)}[redacted]`)
}

/** The same for bytes, keeping their length and position: each secret character becomes an x. */
export function redactBytes(bytes: Uint8Array): Uint8Array {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1')
  return Buffer.from(
    text.replace(TOKEN_SHAPED, (found) => prefixOf(found).padEnd(found.length, 'x')),
    'latin1',
  )
}

/** That it was a token may be seen. */
function prefixOf(found: string): string {
  return /^itr_/i.test(found) ? found.slice(0, 4) : ''
}

/** More than a token has: whatever of one begins before the end is still seen whole. */
const SEEN_BEYOND = 100

/** A run too short to be masked: where a text was cut, it may be the beginning of one that is not. */
const SHORT_RUN = /(?<![0-9A-Za-z])[0-9A-Za-z]{1,29}$/

/** The beginning of a text. Only as much of it is looked at as needed: going through a long one made for it takes milliseconds. */
export function redactBeginning(text: string, maxLength: number): string {
  const seen = maxLength + SEEN_BEYOND
  const beginning = text.length <= seen ? text : text.slice(0, seen).replace(SHORT_RUN, '')
  return redactText(beginning).slice(0, maxLength)
}

/** The same for text that comes again and again. */
export function createRedactor(maxLength: number): (text: string) => string {
  return remembering((text) => redactBeginning(text, maxLength))
}
