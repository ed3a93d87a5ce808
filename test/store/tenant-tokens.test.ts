// A token that is in force is always shown to whoever asked for it, even if the store is gone right after the commit.

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { TenantTokens } from '../../src/auth/tenant-tokens.ts'
import type { TokenRecord } from '../../src/model/token.ts'
import { StoreFailure } from '../../src/store/contract/failure.ts'
import type { TokenStore } from '../../src/store/contract/tokens.ts'
import { openStore } from '../../src/store/open.ts'
import { tempFolder } from '../support/temp.ts'

const TENANT = { accountId: 7, companyId: 42 }
const TERMS = { scope: 'cf', label: 'shop', expiresAt: null, rateLimit: null }
const CHANGES = new Set<string | symbol>(['create', 'rotate', 'setActive'])

const plain = (record: TokenRecord | null) => record && { ...record, hash: Buffer.from(record.hash) }

/** The store answers until a change is made, and then no more. */
function goneAfterAChange(tokens: TokenStore): TokenStore {
  let isGone = false
  return new Proxy(tokens, {
    get:
      (target, name) =>
      async (...args: unknown[]) => {
        if (isGone) throw new StoreFailure('unavailable', 'the store is gone')
        isGone = CHANGES.has(name)
        return (target[name as keyof TokenStore] as (...args: unknown[]) => unknown)(...args)
      },
  })
}

test('a token that was made or replaced is shown, and says that nobody knows who follows', async (t) => {
  const store = await openStore(`sqlite:${join(tempFolder('tenant-tokens'), 'intray.db')}`, { role: 'server' })
  t.after(() => store.close())
  const clock = { now: () => 1_800_000_000_000 }
  const tokensOf = (tokens: TokenStore) => new TenantTokens({ tokens, nodes: store.nodes, clock })

  const issuing = tokensOf(goneAfterAChange(store.tokens))
  const { record, token } = await issuing.issue(TENANT, TERMS)
  assert.match(token, /^[a-z]+_/)
  assert.deepEqual(plain(record), plain(await store.tokens.find(record.keyId)), 'what is told is what is stored')
  assert.equal(await issuing.inEffect(), false)

  const rotating = tokensOf(goneAfterAChange(store.tokens))
  const next = await rotating.rotate(TENANT, record.keyId, { overlapMs: null, expiresAt: undefined })
  assert.ok(next && 'token' in next)
  assert.deepEqual(plain(next.record), plain(await store.tokens.find(next.record.keyId)))
  assert.equal(await rotating.inEffect(), false)

  const there = tokensOf(store.tokens)
  assert.equal(await there.inEffect(), true)
})
