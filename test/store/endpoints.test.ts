// Conformance: endpoints and replays. Every promise of src/store/contract/endpoints.ts, and of a replay in processing.ts.

import assert from 'node:assert/strict'
import { CLOSED, type EndpointSettings, openCircuit, type PushAttempt } from '../../src/model/endpoint.ts'
import { newUuid } from '../../src/runtime/id.ts'
import type { Store } from '../../src/store/contract/store.ts'
import { idOf, item, NOON, TENANT } from './rows.ts'
import { everyDriver, everyStore, indexAll } from './suite.ts'

const QUEUE = { tenant: TENANT, subscription: 'default' } as const
const OTHER = { accountId: TENANT.accountId + 1, companyId: TENANT.companyId }

function settings(fields: Partial<EndpointSettings> = {}): EndpointSettings {
  return {
    id: 'eeeeeeeeee',
    isActive: true,
    body: 'event',
    timeoutMs: 5000,
    concurrency: 4,
    sealed: Uint8Array.of(1, 2, 255),
    disabledReason: null,
    ...fields,
  }
}

async function put(store: Store, fields: Partial<EndpointSettings> = {}, revision = 0, queue: typeof QUEUE = QUEUE) {
  const found = await store.endpoints.put(queue, settings(fields), revision, NOON)
  assert.ok(found !== null && found !== 'changed')
  return found
}

const createSubscription = (store: Store, name: string) =>
  store.processing.createSubscription({ tenant: TENANT, subscription: name }, 'beginning', NOON)

everyStore('an endpoint comes back as it was made, with its circuit closed', async (store) => {
  const made = await put(store)
  assert.deepEqual(
    { ...made, sealed: Array.from(made.sealed) },
    {
      ...settings(),
      ...TENANT,
      sealed: [1, 2, 255],
      subscription: 'default',
      createdAt: NOON,
      changedAt: NOON,
      circuit: CLOSED,
      revision: 1,
      isGone: false,
      generation: 1,
    },
  )
  assert.deepEqual(await store.endpoints.find(QUEUE), made)
  assert.deepEqual(await store.endpoints.list(null), [made])
  assert.deepEqual(await store.endpoints.list(TENANT), [made])
  assert.deepEqual(await store.endpoints.list(OTHER), [])
  assert.equal(await store.endpoints.find({ ...QUEUE, tenant: OTHER }), null)
  assert.equal(await store.endpoints.hasSealed(), true)
})

everyStore('settings change from the revision that was seen only, and close the circuit', async (store) => {
  await put(store)
  const open = openCircuit(CLOSED, NOON)
  await store.endpoints.setCircuit(QUEUE, 1, open)
  assert.deepEqual((await store.endpoints.find(QUEUE))?.circuit, open)
  for (const seen of [0, 2]) assert.equal(await store.endpoints.put(QUEUE, settings(), seen, NOON), 'changed')
  const changed = await put(store, { isActive: false, disabledReason: 'HTTP 410' }, 1)
  assert.deepEqual([changed.revision, changed.circuit, changed.isActive], [2, CLOSED, false])
  assert.equal(changed.disabledReason, 'HTTP 410')
  await store.endpoints.setCircuit(QUEUE, 1, open)
  assert.deepEqual((await store.endpoints.find(QUEUE))?.circuit, CLOSED, 'of an earlier revision')
})

everyStore('an endpoint needs its subscription, and is gone with it', async (store) => {
  const queue = { tenant: TENANT, subscription: 'crm' }
  assert.equal(await store.endpoints.put(queue, settings(), 0, NOON), null)
  await createSubscription(store, 'crm')
  assert.ok(await store.endpoints.put(queue, settings(), 0, NOON))
  await store.processing.deleteSubscription(queue, NOON)
  assert.equal(await store.endpoints.find(queue), null)
  assert.deepEqual(await store.endpoints.list(TENANT), [])
  assert.equal(await store.endpoints.hasSealed(), false)
  const [gone] = await store.endpoints.changedSince(1, 10)
  assert.deepEqual([gone?.isGone, gone?.sealed.length], [true, 0])
  await createSubscription(store, 'crm')
  assert.equal(await store.endpoints.find(queue), null, 'a new subscription of the name')
})

everyStore('a removed endpoint is gone for every node, and can be made anew', async (store) => {
  await put(store)
  assert.equal(await store.endpoints.remove(QUEUE, NOON), true)
  assert.equal(await store.endpoints.remove(QUEUE, NOON), false)
  const [gone] = await store.endpoints.changedSince(0, 10)
  assert.deepEqual([gone?.isGone, gone?.sealed.length, gone?.generation], [true, 0, 2])
  const made = await put(store, { id: 'ffffffffff' })
  assert.deepEqual([made.id, made.isGone, made.revision], ['ffffffffff', false, 2])
})

everyStore('changes are found by their generation, in order', async (store) => {
  await createSubscription(store, 'a')
  await createSubscription(store, 'b')
  for (const subscription of ['a', 'b']) {
    await store.endpoints.put({ tenant: TENANT, subscription }, settings(), 0, NOON)
  }
  assert.equal(await store.endpoints.generation(), 2)
  assert.deepEqual(
    (await store.endpoints.changedSince(0, 1)).map(({ subscription }) => subscription),
    ['a'],
  )
  await store.endpoints.setCircuit({ tenant: TENANT, subscription: 'a' }, 1, openCircuit(CLOSED, NOON))
  assert.deepEqual(
    (await store.endpoints.changedSince(1, 10)).map(({ subscription, generation }) => [subscription, generation]),
    [
      ['b', 2],
      ['a', 3],
    ],
  )
  assert.deepEqual(await store.endpoints.changedSince(3, 10), [])
})

everyStore('the newest attempts are kept, newest first', async (store) => {
  await put(store)
  const attempt = (n: number): PushAttempt => ({
    at: NOON + n,
    eventId: n,
    attempt: 1,
    status: 200,
    failure: null,
    ms: 3,
  })
  await store.endpoints.addAttempts(QUEUE, [1, 2, 3].map(attempt), 4)
  await store.endpoints.addAttempts(QUEUE, [5, 4].map(attempt), 4)
  assert.deepEqual(await store.endpoints.attempts(QUEUE, 3), [5, 4, 3].map(attempt))
  assert.equal((await store.endpoints.attempts(QUEUE, 10)).length, 4)
  await store.endpoints.remove(QUEUE, NOON)
  assert.deepEqual(await store.endpoints.attempts(QUEUE, 10), [])
})

everyDriver('two nodes that change an endpoint at once: one of them sees the other', async (database) => {
  const [one, other] = [await database.open('tool'), await database.open('tool')]
  await put(one)
  const changes = await Promise.all(
    [one, other].map((store, n) => store.endpoints.put(QUEUE, settings({ timeoutMs: 1000 + n }), 1, NOON)),
  )
  assert.equal(changes.filter((change) => change === 'changed').length, 1)
})

async function appendAll(store: Store, count: number, fields: Parameters<typeof item>[0]): Promise<number[]> {
  const ids = (await store.journal.append(Array.from({ length: count }, () => item(fields)))).map(idOf)
  await indexAll(store)
  return ids
}

function claim(store: Store, limit: number) {
  const claimed = store.processing.claim({
    ...QUEUE,
    limit,
    maxBytes: 1 << 20,
    ordered: true,
    channelRef: null,
    leaseId: newUuid(),
    leaseExpiresAt: NOON + 30_000,
    keyId: 'p',
    maxAttempts: 3,
    now: NOON,
  })
  return claimed.then((found) => found!)
}

everyStore('a replay hands out done and dead events of a range again, in their order', async (store) => {
  const ids = await appendAll(store, 8, { channelRef: 'c' })
  const taken = await claim(store, 8)
  const leases = taken.map(({ event, leaseId }) => ({ id: event.id, leaseId }))
  await store.processing.ack({ ...QUEUE, items: leases.slice(0, 6), now: NOON })
  const dead = { ...leases[6]!, delayMs: 0, error: 'no', isDead: true }
  await store.processing.release({ ...QUEUE, items: [dead], now: NOON, maxAttempts: 3, keyId: 'p', jitter: 0 })

  const range = { fromId: ids[2]!, toId: ids[7]! }
  assert.equal(await store.processing.countSettled(QUEUE, range), 5, 'the last one is pending')
  const replayed = await store.processing.replay({ ...QUEUE, range, limit: 4, keyId: 'op', now: NOON })
  assert.deepEqual(replayed, { count: 4, lastId: ids[5] })
  const rest = { ...range, fromId: ids[5]! + 1 }
  assert.deepEqual(await store.processing.replay({ ...QUEUE, range: rest, limit: 4, keyId: 'op', now: NOON }), {
    count: 1,
    lastId: ids[6],
  })
  const [lane] = (await store.processing.counts(QUEUE, [ids[0]!])).values()
  assert.deepEqual(lane, { done: 2, dead: 0 })
  const again = [...(await claim(store, 8)), ...(await claim(store, 8))]
  assert.deepEqual(
    again.map(({ event }) => event.id),
    ids.slice(2),
  )
  const late = await store.processing.ack({ ...QUEUE, items: leases.slice(2, 3), now: NOON })
  assert.deepEqual(late, [{ id: ids[2], ok: false }], 'the lease of the first time is over')
  const [history] = await store.processing.history(TENANT, ids[2]!)
  assert.deepEqual(
    history?.history.map(({ what, keyId }) => [what, keyId]),
    [['requeued', 'op']],
  )
})

everyStore('a replay changes nothing of other tenants and subscriptions', async (store) => {
  const ids = await appendAll(store, 3, { channelRef: 'c' })
  const range = { fromId: 1, toId: ids[2]! }
  const taken = await claim(store, 3)
  const items = taken.map(({ event, leaseId }) => ({ id: event.id, leaseId }))
  await store.processing.ack({ ...QUEUE, items, now: NOON })
  await createSubscription(store, 'other')
  for (const queue of [
    { ...QUEUE, tenant: OTHER },
    { ...QUEUE, subscription: 'other' },
  ]) {
    assert.equal(await store.processing.countSettled(queue, range), 0)
    const replayed = await store.processing.replay({ ...queue, range, limit: 10, keyId: 'op', now: NOON })
    assert.deepEqual(replayed, { count: 0, lastId: null })
  }
  assert.equal(await store.processing.countSettled({ ...QUEUE, subscription: 'none' }, range), null)
  assert.deepEqual(await claim(store, 3), [])
})
