import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { test } from 'node:test'
import fc from 'fast-check'
import { createDedupeDigest, createMintedDigest, DIGEST_BYTES, type KeySpace } from '../../../src/model/dedupe.ts'
import type { Tenant } from '../../../src/model/principal.ts'
import { anyText } from '../../support/text.ts'

const KEY = Buffer.alloc(32, 7)
const TENANT = { accountId: 7, companyId: 42 }
const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex')

/** As the design writes it, with the library's own HMAC. */
function expected(key: Uint8Array, tenant: Tenant, space: KeySpace, value: string): string {
  const parts = [String(tenant.accountId), String(tenant.companyId), space, value]
  const text = parts.map((part) => `${Buffer.byteLength(part)}:${part}`).join('')
  return createHmac('sha256', key).update(text).digest('hex').slice(0, 32)
}

test('a digest is what it always was: stored ones must stay comparable for ever', () => {
  const digest = createDedupeDigest(KEY)
  const known = createHmac('sha256', KEY).update('1:72:423:ref10:cf:12:9001').digest('hex').slice(0, 32)
  assert.equal(hex(digest(TENANT, 'ref', 'cf:12:9001')), known)
  assert.equal(DIGEST_BYTES, 16)
})

test('a digest is the first half of HMAC-SHA-256, for any key, tenant and text, one after the other', () => {
  const tenant = fc.record({ accountId: fc.maxSafeNat(), companyId: fc.maxSafeNat() })
  const message = fc.tuple(tenant, fc.constantFrom<KeySpace>('ref', 'key'), fc.oneof(anyText(20), anyText(3000)))
  fc.assert(
    fc.property(
      fc.uint8Array({ minLength: 1, maxLength: 64 }),
      fc.array(message, { maxLength: 8 }),
      (key, messages) => {
        const digest = createDedupeDigest(key)
        for (const [owner, space, value] of messages) {
          assert.equal(hex(digest(owner, space, value)), expected(key, owner, space, value))
        }
      },
    ),
  )
})

test('tenant, key space, text and key all count', () => {
  const digest = createDedupeDigest(KEY)
  const digests = [
    hex(digest(TENANT, 'ref', 'a')),
    hex(digest(TENANT, 'key', 'a')),
    hex(digest(TENANT, 'ref', 'A')),
    hex(digest(TENANT, 'ref', ' a')),
    hex(digest({ ...TENANT, accountId: 8 }, 'ref', 'a')),
    hex(digest({ ...TENANT, companyId: 43 }, 'ref', 'a')),
    hex(createDedupeDigest(Buffer.alloc(32, 8))(TENANT, 'ref', 'a')),
    hex(digest(TENANT, 'ref', '\u00e9')),
    hex(digest(TENANT, 'ref', 'e\u0301')),
  ]
  assert.equal(new Set(digests).size, digests.length)
})

test('parts that run together are not confused', () => {
  const digest = createDedupeDigest(KEY)
  assert.notEqual(
    hex(digest({ accountId: 1, companyId: 23 }, 'ref', 'x')),
    hex(digest({ accountId: 12, companyId: 3 }, 'ref', 'x')),
  )
  assert.notEqual(hex(digest(TENANT, 'ref', '1:a')), hex(digest(TENANT, 'ref', 'a')))
})

test('a minted key is its own digest', () => {
  assert.equal(hex(createMintedDigest()('01a1defb-2435-71e4-8a9b-8db1bc8f43e4')), '01a1defb243571e48a9b8db1bc8f43e4')
})
