// Conformance: what becomes of events that were not acknowledged: released with an error, without one or as dead, by the rules
// of their subscription.

import assert from 'node:assert/strict'
import { EXPIRED } from '../../src/model/processing.ts'
import type { ReleaseItem, Settled } from '../../src/model/processing-plan.ts'
import { newUuid } from '../../src/runtime/id.ts'
import type { ClaimedEvent } from '../../src/store/contract/processing.ts'
import type { Store } from '../../src/store/contract/store.ts'
import { type ItemFields, idOf, item, NOON, TENANT } from './rows.ts'
import { everyStore, indexAll } from './suite.ts'

const DEFAULT = 'default'
/** Of subscriptions that set no number. */
const MAX_ATTEMPTS = 2
const DAY_MS = 86_400_000

async function appendAll(store: Store, rows: readonly ItemFields[]): Promise<number[]> {
  const ids = (await store.journal.append(rows.map(item))).map(idOf)
  await indexAll(store)
  return ids
}

async function claim(store: Store, now: number, subscription = DEFAULT): Promise<readonly ClaimedEvent[]> {
  const lease = { leaseId: newUuid(), leaseExpiresAt: now + 30_000, keyId: 'PPPPPPPPPP' }
  const request = { tenant: TENANT, subscription, ordered: true, channelRef: null, limit: 10, maxBytes: 1 << 20 }
  return (await store.processing.claim({ ...request, ...lease, maxAttempts: MAX_ATTEMPTS, now }))!
}

async function release(
  store: Store,
  claimed: readonly ClaimedEvent[],
  now: number,
  how: Partial<ReleaseItem>,
  subscription = DEFAULT,
): Promise<readonly Settled[]> {
  const items = claimed.map(({ event, leaseId }) => ({ id: event.id, leaseId, delayMs: null, error: null, ...how }))
  const rules = { maxAttempts: MAX_ATTEMPTS, keyId: 'PPPPPPPPPP', jitter: 0, now }
  return (await store.processing.release({ tenant: TENANT, subscription, items, ...rules }))!
}

/** The state and, while pending, how long it waits. */
const outcomeOf = (settled: readonly Settled[], now: number): unknown[] =>
  settled.map((one) => one.ok && (one.state === 'pending' ? one.availableAt - now : one.state))

async function entriesOf(store: Store, id: number): Promise<(string | null)[][]> {
  const [record] = await store.processing.history(TENANT, id)
  return record!.history.map(({ what, error }) => [what, error])
}

everyStore('released without an error, however often, an event keeps all its attempts', async (store) => {
  const [first, second] = await appendAll(store, [{ channelRef: 'a' }, { channelRef: 'a' }])
  let now = NOON
  for (let times = 0; times < 3 * MAX_ATTEMPTS; times++) {
    const run = await claim(store, now)
    assert.deepEqual(
      run.map(({ event, attempts }) => [event.id, attempts]),
      [
        [first, 1],
        [second, 1],
      ],
      'the run is as it was',
    )
    assert.deepEqual(outcomeOf(await release(store, run.slice(0, 1), now, {}), now), [1000])
    assert.deepEqual(await claim(store, now), [])
    now += 1000
  }
  assert.deepEqual(await entriesOf(store, first!), [], 'nothing failed')
  const [head] = await claim(store, now)
  assert.deepEqual(outcomeOf(await release(store, [head!], now, { delayMs: 0 }), now), [0])
  // The control: with an error each of them counts.
  for (let times = 1; times <= MAX_ATTEMPTS; times++) {
    const [failing] = await claim(store, now)
    assert.deepEqual([failing!.event.id, failing!.attempts], [first, times])
    const [settled] = await release(store, [failing!], now, { delayMs: 0, error: 'no' })
    assert.equal(settled!.ok && settled!.state, times === MAX_ATTEMPTS ? 'dead' : 'pending')
  }
  assert.equal((await claim(store, now))[0]?.event.id, second)
})

everyStore('given back after a failure, an event keeps the attempts that failed', async (store) => {
  await appendAll(store, [{}])
  await release(store, await claim(store, NOON), NOON, { delayMs: 0, error: 'no' })
  await release(store, await claim(store, NOON), NOON, { delayMs: 0 })
  const last = await claim(store, NOON)
  assert.equal(last[0]!.attempts, 2)
  assert.deepEqual(outcomeOf(await release(store, last, NOON, { error: 'no' }), NOON), ['dead'])
})

everyStore(
  'released as dead, an event is dead at once with its reason, and its conversation goes on',
  async (store) => {
    const [first, second] = await appendAll(store, [{ channelRef: 'a' }, { channelRef: 'a' }])
    const run = await claim(store, NOON)
    const settled = await release(store, run.slice(0, 1), NOON, { error: 'no such customer', isDead: true })
    assert.deepEqual(outcomeOf(settled, NOON), ['dead'])
    assert.deepEqual(await entriesOf(store, first!), [['released', 'no such customer']])
    const next = await claim(store, NOON)
    assert.deepEqual(
      next.map(({ event, attempts }) => [event.id, attempts]),
      [[second, 1]],
    )
  },
)

everyStore('the last errors of events, in one subscription', async (store) => {
  const ids = await appendAll(store, [{}, {}, {}, {}])
  const [failed, expired, , fine] = ids as [number, number, number, number]
  const queue = { tenant: TENANT, subscription: DEFAULT }
  const claimed = await claim(store, NOON)
  const of = (id: number) => claimed.filter(({ event }) => event.id === id)
  await release(store, of(failed), NOON, { delayMs: 0, error: 'first' })
  await release(store, await claim(store, NOON), NOON, { delayMs: DAY_MS, error: 'second' })
  await store.processing.ack({ ...queue, items: [{ id: fine, leaseId: of(fine)[0]!.leaseId }], now: NOON })
  await claim(store, NOON + 30_000)
  const errors = await store.processing.lastErrors(queue, [...ids, 999_999])
  assert.deepEqual(
    Array.from(errors)
      .toSorted(([a], [b]) => a - b)
      .slice(0, 2),
    [
      [failed, 'second'],
      [expired, EXPIRED],
    ],
  )
  assert.ok(!errors.has(fine))
  for (const name of [
    { tenant: TENANT, subscription: 'other' },
    { tenant: { ...TENANT, accountId: TENANT.accountId + 1 }, subscription: DEFAULT },
  ]) {
    assert.equal((await store.processing.lastErrors(name, ids)).size, 0)
  }
})

everyStore('a subscription has its own attempts and delays; others have the default', async (store) => {
  await store.processing.createSubscription({ tenant: TENANT, subscription: 'own' }, 'beginning', NOON, {
    maxAttempts: 4,
    firstDelayMs: 5000,
    maxDelayMs: 8000,
  })
  await appendAll(store, [{ channelRef: 'a' }])
  const waits = async (subscription: string): Promise<unknown[]> => {
    const all: unknown[] = []
    for (let now = NOON; all.at(-1) !== 'dead'; now += DAY_MS) {
      const claimed = await claim(store, now, subscription)
      all.push(...outcomeOf(await release(store, claimed, now, { error: 'no' }, subscription), now))
    }
    return all
  }
  assert.deepEqual(await waits('own'), [5000, 8000, 8000, 'dead'])
  assert.deepEqual(await waits(DEFAULT), [1000, 'dead'])
})

everyStore('expired leases count against the attempts of the subscription', async (store) => {
  await store.processing.createSubscription({ tenant: TENANT, subscription: 'own' }, 'beginning', NOON, {
    maxAttempts: 3,
  })
  await appendAll(store, [{}])
  const attemptsOf = async (subscription: string): Promise<number> => {
    for (let times = 0; ; times++) {
      if ((await claim(store, NOON + times * DAY_MS, subscription)).length === 0) return times
    }
  }
  assert.deepEqual([await attemptsOf('own'), await attemptsOf(DEFAULT)], [3, MAX_ATTEMPTS])
})

everyStore('rules can be changed, one by one; default has them too, before its first use', async (store) => {
  const { createSubscription, subscriptions } = store.processing
  const queue = { tenant: TENANT, subscription: DEFAULT }
  const [id] = await appendAll(store, [{}])
  const none = { maxAttempts: null, firstDelayMs: null, maxDelayMs: null }
  const [unused] = await subscriptions(TENANT)
  assert.deepEqual(unused, { name: DEFAULT, createdAt: null, enqueuedUpTo: 0, ...none })
  const made = await createSubscription(queue, 'now', NOON, { max: 1, maxAttempts: 1 })
  assert.deepEqual(made, {
    subscription: { name: DEFAULT, createdAt: NOON, enqueuedUpTo: 0, ...none, maxAttempts: 1 },
    created: false,
  })
  await createSubscription(queue, 'now', NOON + 1, { firstDelayMs: 2000, maxDelayMs: 3000 })
  await createSubscription(queue, 'beginning', NOON + 2)
  const rules = { maxAttempts: 1, firstDelayMs: 2000, maxDelayMs: 3000 }
  assert.deepEqual(await subscriptions(TENANT), [{ ...made!.subscription, ...rules }])
  const claimed = await claim(store, NOON)
  assert.equal(claimed[0]?.event.id, id, 'it begins with the first event')
  assert.deepEqual(outcomeOf(await release(store, claimed, NOON, { error: 'no' }), NOON), ['dead'])
  const stranger = { accountId: TENANT.accountId + 1, companyId: TENANT.companyId }
  assert.deepEqual(await subscriptions(stranger), [unused], 'no other tenant has them')
})
