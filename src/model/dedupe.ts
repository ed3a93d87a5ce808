// Dedupe digest: identifies a message for ever without revealing its source_ref.
//
// First 16 bytes of HMAC-SHA-256 under the database's own key over length-prefixed account, company, key space and the
// decoded string, byte-exact: no trimming, folding or normalisation. Without the key a digest cannot be tested against
// a guess, so it may outlive its event.

import { hash } from 'node:crypto'
import type { Tenant } from './principal.ts'

export const DIGEST_BYTES = 16

/** `ref`: a source_ref. `key`: an Idempotency-Key. The same text in both is two messages. `con`: a channel_ref. */
export type KeySpace = 'ref' | 'key' | 'con'

/** Returns a shared buffer: valid until the next call. */
export type DedupeDigest = (tenant: Tenant, space: KeySpace, value: string) => Buffer

const BLOCK = 64
const SHA256_BYTES = 32

/**
 * HMAC (RFC 2104) from two one-shot hashes on reused buffers: 3.8 µs a message instead of 6.3 µs with `createHmac`. A
 * test compares it with `createHmac`.
 */
export function createDedupeDigest(hmacKey: Uint8Array): DedupeDigest {
  if (hmacKey.length > BLOCK) throw new Error('the dedupe key is longer than a block')
  let inner = Buffer.alloc(BLOCK + 2048, 0x36)
  const outer = Buffer.alloc(BLOCK + SHA256_BYTES, 0x5c)
  for (const [index, byte] of hmacKey.entries()) {
    inner[index]! ^= byte
    outer[index]! ^= byte
  }
  const sha256 = createSha256()
  return (tenant, space, value) => {
    const account = String(tenant.accountId)
    const company = String(tenant.companyId)
    const text = `${account.length}:${account}${company.length}:${company}3:${space}${Buffer.byteLength(value)}:${value}`
    if (inner.length < BLOCK + 3 * text.length)
      inner = Buffer.concat([inner.subarray(0, BLOCK)], BLOCK + 3 * text.length)
    const length = BLOCK + inner.write(text, BLOCK, 'utf8')
    outer.set(sha256(inner.subarray(0, length)), BLOCK)
    return sha256(outer).subarray(0, DIGEST_BYTES)
  }
}

/**
 * The dedupe key of a message: its source_ref, else its Idempotency-Key, else the key that its node minted. Returns a
 * shared buffer.
 */
export function createIdentity(hmacKey: Uint8Array): (message: IdentifiedMessage, minted: Uint8Array) => Uint8Array {
  const digestOf = createDedupeDigest(hmacKey)
  return (message, minted) => {
    if (message.sourceRef !== null) return digestOf(message, 'ref', message.sourceRef)
    if (message.idempotencyKey !== null) return digestOf(message, 'key', message.idempotencyKey)
    return minted
  }
}

interface IdentifiedMessage extends Tenant {
  readonly sourceRef: string | null
  readonly idempotencyKey: string | null
}

/** SHA-256 into a reused buffer: 1.9 µs for 342 bytes instead of 2.7 µs with a new buffer. */
export function createSha256(): (bytes: Uint8Array) => Buffer {
  const digest = Buffer.alloc(SHA256_BYTES)
  return (bytes) => {
    digest.write(hash('sha256', bytes, 'latin1'), 'latin1')
    return digest
  }
}

/**
 * Without source_ref and Idempotency-Key, the key that the node minted deduplicates an event, so that the node's own
 * retry after an unknown commit cannot store it twice. A UUIDv7 has 16 bytes, the length of a digest, and is used as it
 * is.
 */
export function createMintedDigest(): (uuid: string) => Buffer {
  const digest = Buffer.alloc(DIGEST_BYTES)
  return (uuid) => {
    const hex = uuid.slice(0, 8) + uuid.slice(9, 13) + uuid.slice(14, 18) + uuid.slice(19, 23) + uuid.slice(24)
    // Without this check, a value that is not a UUID would keep bytes of the previous one and count as its duplicate.
    if (digest.write(hex, 'hex') !== DIGEST_BYTES) throw new TypeError('a minted key is not a UUID')
    return digest
  }
}
