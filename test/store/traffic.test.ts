// Conformance: counts of what came in, and how deep the queue is. Every promise of src/store/contract/traffic.ts.

import assert from 'node:assert/strict'
import { HOUR_MS, MINUTE_MS } from '../../src/model/traffic.ts'
import type { Store } from '../../src/store/contract/store.ts'
import { idOf, item, NOON, refusal, TENANT } from './rows.ts'
import { everyStore, indexAll } from './suite.ts'

const STRANGERS = [
  { ...TENANT, accountId: 8 },
  { ...TENANT, companyId: 43 },
] as const

const counted = (row: { at: number; keyId: string; events: number; resends: number; revisions: number }) => [
  row.at - NOON,
  row.keyId,
  row.events,
  row.resends,
  row.revisions,
]

everyStore('messages, re-sends and revisions are counted by minute, and by hour and sender', async (store) => {
  const again = item({ sourceRef: 'a', keyId: 'A' })
  await store.journal.append([
    again,
    { ...again, mintedKey: item().mintedKey, receivedAt: NOON + MINUTE_MS, keyId: 'B' },
    item({ sourceRef: 'a', keyId: 'B', receivedAt: NOON + MINUTE_MS + 59_999, body: { other: 1 } }),
    item({ keyId: 'A', receivedAt: NOON + 59_999 }),
    item({ keyId: 'A', receivedAt: NOON + HOUR_MS }),
    item({ ...STRANGERS[0], keyId: 'C' }),
    item({ ...STRANGERS[1], keyId: 'D' }),
  ])
  // In steps of one row: what a step adds comes to what is there.
  await indexAll(store, { maxRows: 1, maxBytes: 1 << 20 })
  const minutes = (await store.traffic.minutes(TENANT, NOON)).map(counted)
  assert.deepEqual(minutes, [
    [0, '', 2, 0, 0],
    [MINUTE_MS, '', 0, 1, 1],
    [HOUR_MS, '', 1, 0, 0],
  ])
  const hours = (await store.traffic.hours(TENANT, NOON)).map(counted)
  assert.deepEqual(hours, [
    [0, 'A', 2, 0, 0],
    [0, 'B', 0, 1, 1],
    [HOUR_MS, 'A', 1, 0, 0],
  ])
  assert.deepEqual((await store.traffic.minutes(TENANT, NOON + 1)).map(counted), minutes.slice(1))
  for (const [tenant, keyId] of [
    [STRANGERS[0], 'C'],
    [STRANGERS[1], 'D'],
  ] as const) {
    assert.deepEqual((await store.traffic.hours(tenant, 0)).map(counted), [[0, keyId, 1, 0, 0]])
  }
})

everyStore('a rebuild comes to the same counts, and pruning lets go of what is old', async (store) => {
  for (const receivedAt of [NOON, NOON + MINUTE_MS, NOON + HOUR_MS]) await store.journal.append([item({ receivedAt })])
  await indexAll(store)
  const read = async () => [await store.traffic.minutes(TENANT, 0), await store.traffic.hours(TENANT, 0)]
  const before = await read()
  await store.index.requestRebuild()
  await indexAll(store)
  assert.deepEqual(await read(), before)
  await store.index.pruneTraffic(NOON + MINUTE_MS, NOON)
  assert.deepEqual(await read(), [before[0]!.slice(1), before[1]])
  await store.index.pruneTraffic(0, NOON + HOUR_MS)
  assert.deepEqual(await read(), [before[0]!.slice(1), before[1]!.slice(1)])
})

everyStore('the queue is as deep as what waits, is leased, is dead, with leases that have expired', async (store) => {
  const depth = (now = NOON) => store.traffic.queueDepth(TENANT, now)
  assert.deepEqual(await depth(), { pending: 0, leased: 0, dead: 0, oldestPendingAt: null })
  const ids: number[] = []
  for (let n = 0; n < 5; n++) {
    ids.push(idOf((await store.journal.append([item({ sourceRef: `s${n}`, receivedAt: NOON + n })]))[0]))
  }
  await store.journal.append([item({ sourceRef: 's0', body: { revised: true } })])
  for (const tenant of STRANGERS) await store.journal.append([item({ ...tenant, receivedAt: 1 })])
  await indexAll(store)
  assert.deepEqual(await depth(), { pending: 5, leased: 0, dead: 0, oldestPendingAt: NOON }, 'nobody claimed yet')
  await claim(store, 2, 'a')
  assert.deepEqual(await depth(), { pending: 3, leased: 2, dead: 0, oldestPendingAt: NOON + 2 })
  assert.deepEqual(await depth(NOON + 100), { pending: 5, leased: 0, dead: 0, oldestPendingAt: NOON }, 'all expired')
  const queue = { tenant: TENANT, subscription: 'default', now: NOON }
  await store.processing.ack({ ...queue, items: [{ id: ids[0]!, leaseId: 'a' }] })
  const released = [{ id: ids[1]!, leaseId: 'a', delayMs: 0, error: 'no' }]
  await store.processing.release({ ...queue, items: released, maxAttempts: 1, keyId: 'k', jitter: 0 })
  assert.deepEqual(await depth(), { pending: 3, leased: 0, dead: 1, oldestPendingAt: NOON + 2 })
})

async function claim({ processing }: Store, limit: number, leaseId: string): Promise<void> {
  await processing.claim({
    tenant: TENANT,
    subscription: 'default',
    limit,
    maxBytes: 1 << 20,
    ordered: true,
    channelRef: null,
    leaseId,
    leaseExpiresAt: NOON + 100,
    keyId: 'k',
    maxAttempts: 5,
    now: NOON,
  })
}

everyStore('refusals are counted by code since a time, the most frequent first', async (store) => {
  const bounds = { maxCount: 100 }
  await store.refusals.add(
    [
      refusal({ code: 'invalid_payload', receivedAt: NOON }),
      refusal({ code: 'invalid_json', receivedAt: NOON + 1 }),
      refusal({ code: 'invalid_json', receivedAt: NOON + 3 }),
      refusal({ code: 'invalid_json', receivedAt: NOON - 1 }),
      refusal({ ...STRANGERS[0], code: 'forbidden_scope' }),
    ],
    bounds,
  )
  assert.deepEqual(await store.traffic.refusalCounts(TENANT, NOON), [
    { code: 'invalid_json', count: 2, lastAt: NOON + 3 },
    { code: 'invalid_payload', count: 1, lastAt: NOON },
  ])
  assert.deepEqual(await store.traffic.refusalCounts(STRANGERS[1], NOON), [])
})
