// Conformance: refused requests. Every promise of src/store/contract/refusals.ts.

import assert from 'node:assert/strict'
import type { Tenant } from '../../src/model/principal.ts'
import { idOf, item, NOON, refusal, TENANT } from './rows.ts'
import { everyDriver, everyStore } from './suite.ts'

const BOUNDS = { maxCount: 100 } as const
const NEWEST = Number.MAX_SAFE_INTEGER
const OTHER = { accountId: 8, companyId: 42 } as const

everyStore('a refusal comes back as it was, newest first', async (store) => {
  const sent = [
    refusal({ code: 'invalid_json', headers: { 'content-type': 'text/plain', 'user-agent': 'é\u{1F600}' } }),
    refusal({ code: 'forbidden_scope', body: new Uint8Array(0), bodySize: 0, headers: {} }),
    refusal({ code: 'payload_too_large', body: Uint8Array.from({ length: 256 }, (_, n) => n), bodySize: 9_999_999 }),
  ]
  await store.refusals.add(sent, BOUNDS)
  const kept = await store.refusals.list(TENANT, NEWEST, 10)
  assert.deepEqual(
    kept.map(({ id: _, body, ...rest }) => ({ ...rest, body: Array.from(body) })),
    sent.toReversed().map((one) => ({ ...one, acceptedAs: null, body: Array.from(one.body) })),
  )
  const ids = kept.map(({ id }) => id)
  assert.deepEqual(
    ids,
    ids.toSorted((a, b) => b - a),
  )
})

everyStore(
  'a refusal that waited in memory while its tenant had something erased is not added any more',
  async (store) => {
    const [stored] = await store.journal.append([item()])
    const at = NOON + 5
    assert.equal(await store.erasures.erase(TENANT, [idOf(stored)], at), 1)
    const waited = [at - 1, at, at + 1].map((receivedAt) => refusal({ receivedAt, requestId: `${receivedAt - at}` }))
    const ofOther = refusal({ ...OTHER, receivedAt: at - 1, requestId: 'other' })
    await store.refusals.add([...waited, ofOther], BOUNDS)
    const namesOf = async (tenant: Tenant) =>
      (await store.refusals.list(tenant, NEWEST, 9)).map(({ requestId }) => requestId)
    assert.deepEqual([await namesOf(TENANT), await namesOf(OTHER)], [['1'], ['other']])
  },
)

everyStore('refusals are read in pages below the last id', async (store) => {
  const sent = Array.from({ length: 7 }, (_, n) => refusal({ requestId: `r${n}` }))
  await store.refusals.add(sent, BOUNDS)
  const pages: string[][] = []
  let before = NEWEST
  for (;;) {
    const page = await store.refusals.list(TENANT, before, 3)
    if (page.length === 0) break
    pages.push(page.map(({ requestId }) => requestId))
    before = page.at(-1)!.id
  }
  assert.deepEqual(pages, [['r6', 'r5', 'r4'], ['r3', 'r2', 'r1'], ['r0']])
})

everyStore('a tenant sees its own refusals only', async (store) => {
  const foreign = { accountId: 7, companyId: 43 }
  await store.refusals.add(
    [refusal({ requestId: 'own' }), refusal({ ...OTHER, requestId: 'other' }), refusal({ ...foreign })],
    BOUNDS,
  )
  for (const [tenant, count] of [
    [TENANT, 1],
    [OTHER, 1],
    [foreign, 1],
    [{ accountId: 42, companyId: 7 }, 0],
  ] as const) {
    const listed = await store.refusals.list(tenant, NEWEST, 10)
    assert.equal(listed.length, count)
    for (const one of listed) assert.deepEqual([one.accountId, one.companyId], [tenant.accountId, tenant.companyId])
  }
})

everyStore('past the bound of a tenant its oldest make room, and nobody else’s', async (store) => {
  const bounds = { ...BOUNDS, maxCount: 5 }
  await store.refusals.add(
    Array.from({ length: 3 }, (_, n) => refusal({ ...OTHER, requestId: `other${n}` })),
    bounds,
  )
  for (let n = 0; n < 12; n++) {
    await store.refusals.add([refusal({ requestId: `r${n}` })], bounds)
    const kept = await store.refusals.list(TENANT, NEWEST, 100)
    assert.deepEqual(
      kept.map(({ requestId }) => requestId),
      Array.from({ length: Math.min(n + 1, 5) }, (_, back) => `r${n - back}`),
    )
  }
  assert.equal((await store.refusals.list(OTHER, NEWEST, 100)).length, 3)
})

everyStore('one call with more than the bound, for two tenants, leaves the newest of each', async (store) => {
  const mixed = Array.from({ length: 40 }, (_, n) => refusal({ ...(n % 2 ? OTHER : TENANT), requestId: `r${n}` }))
  await store.refusals.add(mixed, { ...BOUNDS, maxCount: 3 })
  const requestIds = async (tenant: typeof TENANT | typeof OTHER) =>
    (await store.refusals.list(tenant, NEWEST, 100)).map(({ requestId }) => requestId)
  assert.deepEqual(await requestIds(TENANT), ['r38', 'r36', 'r34'])
  assert.deepEqual(await requestIds(OTHER), ['r39', 'r37', 'r35'])
})

everyStore('with a bound of none, none is kept', async (store) => {
  await store.refusals.add([refusal(), refusal()], BOUNDS)
  await store.refusals.add([refusal()], { ...BOUNDS, maxCount: 0 })
  assert.deepEqual(await store.refusals.list(TENANT, NEWEST, 10), [])
})

everyStore('an add of nothing is fine', async (store) => {
  await store.refusals.add([], BOUNDS)
  assert.deepEqual(await store.refusals.list(TENANT, NEWEST, 10), [])
})

everyDriver('refusals outlive the store, and their ids go on', async (database) => {
  const first = await database.open('server')
  await first.refusals.add([refusal({ requestId: 'a' })], BOUNDS)
  await first.close()
  const second = await database.open('tool')
  await second.refusals.add([refusal({ requestId: 'b' })], BOUNDS)
  const [b, a] = await second.refusals.list(TENANT, NEWEST, 10)
  assert.deepEqual([b?.requestId, a?.requestId], ['b', 'a'])
  assert.ok(b!.id > a!.id)
})

everyStore(
  'one refusal is found by its id, for its tenant alone, and keeps the first note of what it became',
  async (store) => {
    await store.refusals.add([refusal()], BOUNDS)
    const [kept] = await store.refusals.list(TENANT, NEWEST, 10)
    const found = await store.refusals.find(TENANT, kept!.id)
    assert.deepEqual(found, kept)
    const stranger = { ...TENANT, accountId: 8 }
    assert.equal(await store.refusals.find(stranger, kept!.id), null)
    assert.equal(await store.refusals.find({ ...TENANT, companyId: 43 }, kept!.id), null)
    assert.equal(await store.refusals.find(TENANT, kept!.id + 1), null)
    await store.refusals.accept(stranger, kept!.id, { eventId: 1, at: NOON, by: 'op_x' })
    assert.equal((await store.refusals.find(TENANT, kept!.id))?.acceptedAs, null)
    for (const eventId of [812, 813]) await store.refusals.accept(TENANT, kept!.id, { eventId, at: NOON, by: 'op_x' })
    assert.equal((await store.refusals.find(TENANT, kept!.id))?.acceptedAs, 812)
  },
)
