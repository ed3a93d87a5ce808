// The secret of a hook: the key that signatures are computed with, and what is wrong with a secret that somebody pasted.

import type { HmacRule, SignatureRule } from './recipe.ts'

export const MAX_SECRET_UNITS = 1024
/** Of a key in base64: Standard Webhooks asks for 24. */
const MIN_KEY_BYTES = 16
/** Of a text: Twilio's auth token has 32 characters, the shortest of the built-in senders. */
const MIN_TEXT_UNITS = 8

export function keyOf({ secret: encoding, secretPrefix = '' }: HmacRule, secret: string): Buffer {
  const text = secret.startsWith(secretPrefix) ? secret.slice(secretPrefix.length) : secret
  return Buffer.from(text, encoding === 'base64' ? 'base64' : 'utf8')
}

/** One sentence that does not repeat the secret; null for one that can be used. Before a hook stores it. */
export function secretProblem(signature: SignatureRule, secret: string): string | null {
  if (signature.kind === 'none') return 'This recipe has no secret: its address is the secret. Leave it out.'
  if (secret !== secret.trim()) return 'The secret begins or ends with white space. Copy it again.'
  if (secret.length < MIN_TEXT_UNITS) return `The secret has fewer than ${MIN_TEXT_UNITS} characters. Use a longer one.`
  if (secret.length > MAX_SECRET_UNITS)
    return `The secret has more than ${MAX_SECRET_UNITS} characters. Use a shorter one.`
  if (signature.kind === 'header' && !/^[\x21-\x7e]+$/.test(secret))
    return 'The secret has characters that a header cannot hold. Use letters and digits.'
  if (signature.kind !== 'hmac' || signature.secret !== 'base64') return null
  const { secretPrefix = '' } = signature
  const text = secret.startsWith(secretPrefix) ? secret.slice(secretPrefix.length) : secret
  if (!/^[0-9a-z+/]+={0,2}$/i.test(text)) return 'The secret is not base64. Copy it again, with its prefix.'
  if (keyOf(signature, secret).length >= MIN_KEY_BYTES) return null
  return `The secret encodes fewer than ${MIN_KEY_BYTES} bytes. Copy it again, whole.`
}
