// The token format: itr_<key id: 10 base62>_<secret: 30 base62><checksum: 6 base62 of CRC32 over all before it>.
// Secret scanners find the prefix, the checksum rejects typing errors without a look-up, and the secret has 178 bits, so
// that one SHA-256 is enough to store it. A hook id has the same format with the prefix ith_: as their digests differ, neither
// is taken in the other's place.

import { hash } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { base62, randomBase62 } from '../runtime/id.ts'

const TOKEN = /^itr_([0-9A-Za-z]{10})_[0-9A-Za-z]{36}$/
const HOOK_ID = /^ith_([0-9A-Za-z]{10})_[0-9A-Za-z]{36}$/
const CHECKSUM_LENGTH = 6

/** Also of tokens that another database minted. */
export const KEY_ID = /^[0-9A-Za-z]{10}$/

export interface MintedToken {
  readonly keyId: string
  /** Shown once, not stored. */
  readonly token: string
  readonly hash: Uint8Array
}

export function mintToken(): MintedToken {
  return mint('itr')
}

/** `token`: the hook id, which is also kept sealed (hook-lifecycle.ts). */
export function mintHookId(): MintedToken {
  return mint('ith')
}

function mint(prefix: 'itr' | 'ith'): MintedToken {
  const keyId = randomBase62(10)
  const body = `${prefix}_${keyId}_${randomBase62(30)}`
  const token = body + base62(crc32(body), CHECKSUM_LENGTH)
  return { keyId, token, hash: hash('sha256', token, 'buffer') }
}

/** A text that begins as a token or hook id of ours is none of another system. */
export function hasTokenPrefix(text: string): boolean {
  return text.startsWith('itr_') || text.startsWith('ith_')
}

/** The key id of a well-formed token with a right checksum, else null. The token may still be unknown. */
export function tokenKeyId(token: string): string | null {
  return checkedKeyId(TOKEN, token)
}

/** The same of a hook id. */
export function hookKeyId(hookId: string): string | null {
  return checkedKeyId(HOOK_ID, hookId)
}

function checkedKeyId(format: RegExp, token: string): string | null {
  const match = format.exec(token)
  if (!match) return null
  const body = token.slice(0, -CHECKSUM_LENGTH)
  return base62(crc32(body), CHECKSUM_LENGTH) === token.slice(-CHECKSUM_LENGTH) ? match[1]! : null
}
