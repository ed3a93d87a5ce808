// The key id of a token that another system made, of which the digest alone was imported. Such a token names no key id, so it is
// computed: an HMAC of the digest under a key of this database. It is shown and logged, and cannot be used to test a guess.

import { createHmac } from 'node:crypto'

/** Key ids of minted tokens have no hyphen. */
export const IMPORTED_PREFIX = 'imported-'

/** Above every imported key id, in the order of bytes. */
export const IMPORTED_END = 'imported.'

/** The domain of this key: no other HMAC under the dedupe key begins with these bytes. */
const DOMAIN = Buffer.from('token')

const ID_LENGTH = 16

/** From the dedupe key, so that a copy of the database has it too. */
export function importedTokenKey(dedupeKey: Uint8Array): Uint8Array {
  return createHmac('sha256', dedupeKey).update(DOMAIN).digest()
}

/** `hash`: SHA-256 of the token. */
export function importedKeyId(key: Uint8Array, hash: Uint8Array): string {
  return IMPORTED_PREFIX + createHmac('sha256', key).update(hash).digest('hex').slice(0, ID_LENGTH)
}
