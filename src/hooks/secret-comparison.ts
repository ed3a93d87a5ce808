// Compares secrets and signatures in constant time.

import { hash, timingSafeEqual } from 'node:crypto'

/** By their digests: texts of different lengths take as long as equal ones. */
export function equalSecrets(one: string, other: string): boolean {
  return timingSafeEqual(hash('sha256', one, 'buffer'), hash('sha256', other, 'buffer'))
}

/** The length of a signature is no secret. */
export function equalSignatures(one: Uint8Array, other: Uint8Array): boolean {
  return one.length === other.length && timingSafeEqual(one, other)
}

/** Null for what is not in the encoding, or not of the digest's length. */
export function decodeSignature(text: string, encoding: 'hex' | 'base64', bytes: number): Buffer | null {
  const pattern = encoding === 'hex' ? /^[0-9a-f]*$/i : /^[0-9a-z+/]*={0,2}$/i
  if (text.length > 4 * bytes || !pattern.test(text)) return null
  const decoded = Buffer.from(text, encoding)
  return decoded.length === bytes ? decoded : null
}
