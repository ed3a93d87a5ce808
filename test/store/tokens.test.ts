// Conformance: tokens. Every promise of src/store/contract/tokens.ts.

import assert from 'node:assert/strict'
import { importedKeyId } from '../../src/model/imported-token.ts'
import type { TokenRecord } from '../../src/model/token.ts'
import type { TokenFilter } from '../../src/store/contract/tokens.ts'
import { NOON, newToken } from './rows.ts'
import { everyDriver, everyStore, failure } from './suite.ts'

everyStore('a token comes back as it was made, active and unused', async (store) => {
  const token = newToken({
    hash: Uint8Array.from({ length: 32 }, (_, n) => n * 8),
    scope: '',
    label: 'Jürgen’s form ✉',
    expiresAt: NOON + 1,
    rotatedFrom: 'BBBBBBBBBB',
  })
  await store.tokens.create(token)
  const found = await store.tokens.find(token.keyId)
  assert.ok(found)
  assert.deepEqual(
    { ...found, hash: Array.from(found.hash) },
    {
      ...token,
      hash: Array.from(token.hash),
      isActive: true,
      disabledAt: null,
      lastUsedAt: null,
      movedTo: null,
      recipe: null,
    },
  )
})

everyStore('an unknown key id is null, and key ids are compared exactly', async (store) => {
  await store.tokens.create(newToken({ keyId: 'aBcDeFgHiJ' }))
  assert.ok(await store.tokens.find('aBcDeFgHiJ'))
  for (const other of ['ABCDEFGHIJ', 'abcdefghij', 'aBcDeFgHi', '', 'aBcDeFgHiJ ', "' OR 1=1 --"]) {
    assert.equal(await store.tokens.find(other), null)
  }
})

everyStore('an imported token is noticed, and its key id is the same in each process', async (store, database) => {
  await store.tokens.create(newToken({ keyId: 'importedAA' }))
  assert.equal(await store.tokens.hasImported(), false)
  const keyId = importedKeyId(await store.tokens.importKey(), new Uint8Array(32))
  await store.tokens.create(newToken({ keyId }))
  assert.equal(await store.tokens.hasImported(), true)
  const other = await database.open('tool')
  assert.equal(importedKeyId(await other.tokens.importKey(), new Uint8Array(32)), keyId)
})

everyStore('a key id that exists is rejected, and the token that has it stays', async (store) => {
  const token = newToken({ label: 'first' })
  await store.tokens.create(token)
  const generation = await store.tokens.generation()
  await assert.rejects(store.tokens.create(newToken({ keyId: token.keyId, label: 'second' })), failure('rejected'))
  assert.equal((await store.tokens.find(token.keyId))?.label, 'first')
  assert.equal(await store.tokens.generation(), generation)
  assert.equal((await store.tokens.list()).length, 1)
})

everyStore('tokens are listed by tenant and in the order of creation, in pages that miss none', async (store) => {
  assert.deepEqual(await store.tokens.list(), [])
  const made = [
    { companyId: 1, accountId: 1, createdAt: NOON + 9 },
    { companyId: 1, accountId: 2, createdAt: NOON, keyId: 'AAAAAAAAAA' },
    { companyId: 1, accountId: 2, createdAt: NOON, keyId: 'BBBBBBBBBB' },
    { companyId: 1, accountId: 2, createdAt: NOON + 1 },
    { companyId: 2, accountId: 1, createdAt: NOON },
  ].map((fields) => newToken(fields))
  for (const token of made.toReversed()) await store.tokens.create(token)
  const listed: string[] = []
  for (let after: TokenRecord | null = null; ; ) {
    const page: TokenRecord[] = await store.tokens.list({ after, limit: 2 })
    listed.push(...page.map(({ keyId }) => keyId))
    if (page.length < 2) break
    after = page.at(-1)!
  }
  assert.deepEqual(
    listed,
    made.map(({ keyId }) => keyId),
  )
})

everyStore('a list of tokens has those that match every part of its filter', async (store) => {
  const plain = newToken({ companyId: 1, accountId: 1, scope: 'cf', createdAt: NOON })
  const scopeless = newToken({ companyId: 1, accountId: 2, scope: '', createdAt: NOON })
  const expired = newToken({ companyId: 2, accountId: 1, scope: 'cf', createdAt: NOON, expiresAt: NOON + 10 })
  const disabled = newToken({ companyId: 2, accountId: 1, scope: 'processor', createdAt: NOON, expiresAt: NOON + 10 })
  const expiring = newToken({ companyId: 2, accountId: 2, scope: 'cf', createdAt: NOON + 5, expiresAt: NOON + 11 })
  const made = { plain, scopeless, expired, disabled, expiring }
  for (const token of Object.values(made)) await store.tokens.create(token)
  await store.tokens.setActive(disabled.keyId, false, NOON + 1)
  await store.tokens.touch([{ keyId: plain.keyId, usedAt: NOON + 4 }])
  const listed = async (filter: TokenFilter) => {
    const keyIds = (await store.tokens.list({ filter, now: NOON + 10 })).map(({ keyId }) => keyId)
    return Object.entries(made).flatMap(([name, { keyId }]) => (keyIds.includes(keyId) ? name : []))
  }
  assert.deepEqual(await listed({}), Object.keys(made))
  assert.deepEqual(await listed({ accountId: 1 }), ['plain', 'expired', 'disabled'])
  assert.deepEqual(await listed({ companyId: 2 }), ['expired', 'disabled', 'expiring'])
  assert.deepEqual(await listed({ companyId: 2, accountId: 2 }), ['expiring'])
  assert.deepEqual(await listed({ scope: '' }), ['scopeless'])
  assert.deepEqual(await listed({ state: 'active' }), ['plain', 'scopeless', 'expiring'])
  assert.deepEqual(await listed({ state: 'disabled' }), ['disabled'], 'disabled wins over expired')
  assert.deepEqual(await listed({ state: 'expired' }), ['expired'])
  assert.deepEqual(await listed({ unusedSince: NOON + 4 }), ['scopeless', 'expired', 'disabled'])
  assert.deepEqual(await listed({ unusedSince: NOON + 5, scope: 'cf', state: 'active' }), ['plain'])
})

everyStore('a rate of its own is kept with a token, changed, and draws a generation', async (store) => {
  const rateLimit = { requests: 100, windowMs: 1000 }
  const [limited, unlimited, plain] = [newToken({ rateLimit }), newToken({ rateLimit: 'off' }), newToken()]
  for (const token of [limited, unlimited, plain]) await store.tokens.create(token)
  const kept = () =>
    Promise.all([limited, unlimited, plain].map(async ({ keyId }) => (await store.tokens.find(keyId))?.rateLimit))
  assert.deepEqual(await kept(), [rateLimit, 'off', null])
  const generation = await store.tokens.generation()
  const other = { requests: 5, windowMs: 60_000 }
  assert.deepEqual((await store.tokens.setRateLimit(plain.keyId, other))?.rateLimit, other)
  assert.deepEqual((await store.tokens.setRateLimit(limited.keyId, null))?.rateLimit, null)
  assert.equal(await store.tokens.setRateLimit('AAAAAAAAAA', 'off'), null)
  assert.deepEqual(await kept(), [null, 'off', other])
  const changed = await store.tokens.changedSince(generation)
  assert.deepEqual(changed.map(({ keyId }) => keyId).toSorted(), [plain.keyId, limited.keyId].toSorted())
})

everyStore('a token is disabled and enabled again', async (store) => {
  const token = newToken()
  await store.tokens.create(token)
  const disabled = await store.tokens.setActive(token.keyId, false, NOON + 5)
  assert.deepEqual([disabled?.isActive, disabled?.disabledAt], [false, NOON + 5])
  assert.deepEqual(await store.tokens.find(token.keyId), disabled)
  const enabled = await store.tokens.setActive(token.keyId, true, NOON + 6)
  assert.deepEqual([enabled?.isActive, enabled?.disabledAt], [true, null])
  assert.deepEqual(await store.tokens.find(token.keyId), enabled)
})

everyStore('what is done to a token nobody knows is null and changes nothing', async (store) => {
  await store.tokens.create(newToken())
  const generation = await store.tokens.generation()
  assert.equal(await store.tokens.setActive('nobody0000', false, NOON), null)
  assert.equal(await store.tokens.rotate(newToken({ rotatedFrom: 'nobody0000' }), null, NOON), null)
  assert.equal(await store.tokens.rotate(newToken({ rotatedFrom: null }), null, NOON), null)
  assert.equal((await store.tokens.list()).length, 1)
  assert.equal(await store.tokens.generation(), generation)
})

everyStore('every change draws the next generation, and what changed since is told', async (store) => {
  assert.equal(await store.tokens.generation(), 0)
  const a = newToken()
  const b = newToken()
  const steps: [() => Promise<unknown>, string[]][] = [
    [() => store.tokens.create(a), [a.keyId]],
    [() => store.tokens.create(b), [b.keyId]],
    [() => store.tokens.setActive(a.keyId, false, NOON), [a.keyId]],
    [() => store.tokens.setActive(a.keyId, true, NOON), [a.keyId]],
    [() => store.tokens.setActive(b.keyId, false, NOON), [b.keyId]],
  ]
  const start = await store.tokens.generation()
  for (const [change, changed] of steps) {
    const before = await store.tokens.generation()
    await change()
    const after = await store.tokens.generation()
    assert.ok(after > before, 'a change moves the generation on')
    assert.deepEqual(
      (await store.tokens.changedSince(before)).map(({ keyId }) => keyId),
      changed,
    )
    assert.deepEqual(await store.tokens.changedSince(after), [])
  }
  const all = await store.tokens.changedSince(start)
  assert.deepEqual(new Set(all.map(({ keyId }) => keyId)), new Set([a.keyId, b.keyId]))
  assert.equal(all.length, 2, 'each changed token is told once, as it is now')
  assert.equal(all.find(({ keyId }) => keyId === b.keyId)?.isActive, false)
})

everyStore('a use is no change: it draws no generation', async (store) => {
  const token = newToken()
  await store.tokens.create(token)
  const generation = await store.tokens.generation()
  await store.tokens.touch([{ keyId: token.keyId, usedAt: NOON }])
  assert.equal(await store.tokens.generation(), generation)
  assert.deepEqual(await store.tokens.changedSince(generation), [])
})

everyStore('a rotation without overlap disables the old token now', async (store) => {
  const old = newToken({ expiresAt: NOON + 1000 })
  await store.tokens.create(old)
  const before = await store.tokens.generation()
  const successor = newToken({ rotatedFrom: old.keyId, label: 'successor' })
  const retired = await store.tokens.rotate(successor, null, NOON + 5)
  assert.equal(retired?.keyId, old.keyId)
  assert.deepEqual([retired.isActive, retired.disabledAt, retired.expiresAt], [false, NOON + 5, NOON + 1000])
  assert.deepEqual(await store.tokens.find(old.keyId), retired)
  const made = await store.tokens.find(successor.keyId)
  assert.deepEqual([made?.isActive, made?.rotatedFrom, made?.label], [true, old.keyId, 'successor'])
  assert.deepEqual(
    new Set((await store.tokens.changedSince(before)).map(({ keyId }) => keyId)),
    new Set([old.keyId, successor.keyId]),
  )
})

const OVERLAPS = {
  'one that never expires gets the end of the overlap': { expiresAt: null, expected: NOON + 100 },
  'one that expires later expires at the end of the overlap': { expiresAt: NOON + 500, expected: NOON + 100 },
  'one that expires before keeps its time': { expiresAt: NOON + 50, expected: NOON + 50 },
  'one that has expired stays expired': { expiresAt: NOON - 50, expected: NOON - 50 },
} as const
for (const [name, { expiresAt, expected }] of Object.entries(OVERLAPS)) {
  everyStore(`a rotation with overlap never extends the old token: ${name}`, async (store) => {
    const old = newToken({ expiresAt })
    await store.tokens.create(old)
    const retired = await store.tokens.rotate(newToken({ rotatedFrom: old.keyId }), NOON + 100, NOON)
    assert.deepEqual([retired?.isActive, retired?.disabledAt, retired?.expiresAt], [true, null, expected])
  })
}

everyStore('a token that was rotated has one successor: it cannot be rotated again', async (store) => {
  const old = newToken()
  await store.tokens.create(old)
  await store.tokens.rotate(newToken({ rotatedFrom: old.keyId }), NOON + 100, NOON)
  await assert.rejects(store.tokens.rotate(newToken({ rotatedFrom: old.keyId }), NOON + 900, NOON), failure('rejected'))
  assert.equal((await store.tokens.find(old.keyId))?.expiresAt, NOON + 100)
  assert.equal((await store.tokens.list()).length, 2)
})

everyStore('a disabled token that is rotated with overlap stays disabled', async (store) => {
  const old = newToken()
  await store.tokens.create(old)
  await store.tokens.setActive(old.keyId, false, NOON)
  const retired = await store.tokens.rotate(newToken({ rotatedFrom: old.keyId }), NOON + 100, NOON + 1)
  assert.deepEqual([retired?.isActive, retired?.disabledAt], [false, NOON])
})

everyStore('a rotation to a key id that exists is rejected and leaves the old token as it was', async (store) => {
  const old = newToken()
  const taken = newToken()
  await store.tokens.create(old)
  await store.tokens.create(taken)
  const before = await store.tokens.find(old.keyId)
  const generation = await store.tokens.generation()
  for (const oldExpiresAt of [null, NOON + 100]) {
    const successor = newToken({ keyId: taken.keyId, rotatedFrom: old.keyId })
    await assert.rejects(store.tokens.rotate(successor, oldExpiresAt, NOON), failure('rejected'))
  }
  assert.deepEqual(await store.tokens.find(old.keyId), before)
  assert.equal(await store.tokens.generation(), generation)
})

everyStore('last use moves forward and never back', async (store) => {
  const token = newToken()
  const other = newToken()
  await store.tokens.create(token)
  await store.tokens.create(other)
  const lastUsed = async () => (await store.tokens.find(token.keyId))?.lastUsedAt
  for (const [usedAt, expected] of [
    [NOON, NOON],
    [NOON - 1, NOON],
    [NOON, NOON],
    [NOON + 7, NOON + 7],
    [0, NOON + 7],
  ] as const) {
    await store.tokens.touch([{ keyId: token.keyId, usedAt }])
    assert.equal(await lastUsed(), expected)
  }
  await store.tokens.touch([
    { keyId: token.keyId, usedAt: NOON + 20 },
    { keyId: 'nobody0000', usedAt: NOON },
    { keyId: token.keyId, usedAt: NOON + 10 },
  ])
  assert.equal(await lastUsed(), NOON + 20)
  assert.equal((await store.tokens.find(other.keyId))?.lastUsedAt, null)
  await store.tokens.touch([])
})

everyDriver('tokens and generations outlive the store', async (database) => {
  const token = newToken()
  const first = await database.open('tool')
  await first.tokens.create(token)
  await first.tokens.setActive(token.keyId, false, NOON)
  const generation = await first.tokens.generation()
  await first.close()
  const second = await database.open('server')
  assert.equal(await second.tokens.generation(), generation)
  assert.equal((await second.tokens.find(token.keyId))?.isActive, false)
  await second.tokens.create(newToken())
  assert.ok((await second.tokens.generation()) > generation)
})

everyDriver('two stores that create one key id at once: one of them is rejected', async (database) => {
  const stores = [await database.open('server'), await database.open('tool'), await database.open('tool')]
  for (let n = 0; n < 20; n++) {
    const { keyId } = newToken()
    const results = await Promise.allSettled(stores.map((store) => store.tokens.create(newToken({ keyId }))))
    assert.equal(results.filter(({ status }) => status === 'fulfilled').length, 1)
    for (const result of results) if (result.status === 'rejected') failure('rejected')(result.reason)
  }
})

everyDriver('of several that make the first token at once, one does', async (database) => {
  const stores = [await database.open('server'), await database.open('tool'), await database.open('tool')]
  const made = await Promise.all(stores.map((store) => store.tokens.createFirst(newToken())))
  assert.deepEqual(made.toSorted(), [false, false, true])
  assert.equal((await stores[0]!.tokens.list()).length, 1)
  assert.equal(await stores[1]!.tokens.createFirst(newToken()), false)
})

everyStore('the tokens of a tenant are listed newest first, page by page, without those of others', async (store) => {
  const own = [NOON, NOON, NOON + 1, NOON + 2].map((createdAt, n) => newToken({ createdAt, keyId: `own${n}000000` }))
  for (const token of own) await store.tokens.create(token)
  await store.tokens.create(newToken({ accountId: 8 }))
  await store.tokens.create(newToken({ companyId: 43 }))
  const first = await store.tokens.listOf({ accountId: 7, companyId: 42 }, null, 3)
  const rest = await store.tokens.listOf({ accountId: 7, companyId: 42 }, first.at(-1)!, 3)
  assert.deepEqual(
    [...first, ...rest].map(({ keyId }) => keyId),
    own.toReversed().map(({ keyId }) => keyId),
  )
})

everyStore('the tenants are those that have a token, each once, page by page', async (store) => {
  assert.deepEqual(await store.tokens.tenants(null, 10), [])
  const tenants = [
    { accountId: 9, companyId: 1 },
    { accountId: 1, companyId: 2 },
    { accountId: 2, companyId: 2 },
    { accountId: 1, companyId: 3 },
  ]
  for (const tenant of tenants.toReversed()) for (let n = 0; n < 3; n++) await store.tokens.create(newToken(tenant))
  const first = await store.tokens.tenants(null, 3)
  assert.deepEqual([...first, ...(await store.tokens.tenants(first.at(-1)!, 3))], tenants)
  assert.equal(await store.tokens.hasTenant({ accountId: 2, companyId: 2 }), true)
  assert.equal(await store.tokens.hasTenant({ accountId: 3, companyId: 2 }), false)
})

everyStore('a rotated token knows its successor', async (store) => {
  const [old, successor] = [newToken(), newToken()]
  await store.tokens.create(old)
  assert.equal(await store.tokens.successorOf(old.keyId), null)
  await store.tokens.rotate({ ...successor, rotatedFrom: old.keyId }, null, NOON)
  assert.equal(await store.tokens.successorOf(old.keyId), successor.keyId)
})
