// The dedupe digest: what stands for "the same message" for ever, and says nothing about a person.
//
// First 16 bytes of HMAC-SHA-256 under the database's own key over length-prefixed account, company, key space and the
// decoded string, byte-exact: no trimming, folding or normalisation. Without the key a digest cannot be tested against
// a guess, so it may outlive the event it came from.

import { createHmac } from 'node:crypto'
import type { Tenant } from './principal.ts'

export const DIGEST_BYTES = 16

/** `ref`: a source_ref. `key`: an Idempotency-Key. The same text in both is two messages. */
export type KeySpace = 'ref' | 'key'

export function dedupeDigest(hmacKey: Uint8Array, tenant: Tenant, space: KeySpace, value: string): Uint8Array {
  const parts = [String(tenant.accountId), String(tenant.companyId), space, value]
  let text = ''
  for (const part of parts) text += `${Buffer.byteLength(part)}:${part}`
  return createHmac('sha256', hmacKey).update(text).digest().subarray(0, DIGEST_BYTES)
}

/**
 * An event without source_ref and Idempotency-Key is deduplicated by the key its node minted, so that the node's own
 * retry after an unknown commit cannot store it twice. A UUIDv7 has 16 bytes, the length of a digest, and is used as it is.
 */
export function mintedDigest(mintedKey: string): Buffer {
  return Buffer.from(mintedKey.replaceAll('-', ''), 'hex')
}
