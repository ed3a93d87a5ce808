import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { Claims, type ClaimCommand } from '../../../src/processing/claims.ts'
import type { ClaimedEvent, ProcessingStore } from '../../../src/store/contract/processing.ts'
import { stopTime } from '../../support/clock.ts'

const NEVER = new AbortController().signal
const PROCESSOR = { accountId: 1, companyId: 1, keyId: 'k' }
const COMMAND: ClaimCommand = {
  limit: 1,
  leaseMs: 1000,
  waitMs: 600,
  ordered: true,
  subscription: 'default',
  channelRef: null,
}
const EVENT = { event: { id: 1, erasedAt: null }, payload: new Uint8Array() } as unknown as ClaimedEvent

/** A queue that has something from the given claim on, and says so when it is looked at. */
function queueWith(from: number) {
  const asked = { claims: 0, looks: 0 }
  const store = {
    claim: async () => (++asked.claims >= from ? [EVENT] : []),
    ready: async (queues: readonly unknown[]) => {
      asked.looks += 1
      return queues.map(() => ({ ready: from < Number.POSITIVE_INFINITY, at: null }))
    },
  } as unknown as ProcessingStore
  const claims = new Claims({
    store,
    clock: { now: () => 0 },
    maxAttempts: 5,
    maxSubscriptions: 5,
    onTrouble: (doing, error) => assert.fail(`${doing}: ${error}`),
  })
  return { claims, asked }
}

test('a claim that waits in vain asks once, and is answered with nothing when its time is over', async (t) => {
  const pass = stopTime(t)
  const { claims, asked } = queueWith(Number.POSITIVE_INFINITY)
  const waiting = claims.claim(PROCESSOR, COMMAND, NEVER)
  await pass(COMMAND.waitMs)
  assert.deepEqual(await waiting, [])
  assert.equal(asked.claims, 1)
  assert.ok(asked.looks >= 1)
  await claims.stop()
})

test('one that is woken asks again, and is answered with what there is', async (t) => {
  const pass = stopTime(t)
  const { claims, asked } = queueWith(2)
  const waiting = claims.claim(PROCESSOR, COMMAND, NEVER)
  await pass(COMMAND.waitMs)
  assert.deepEqual(await waiting, [EVENT])
  assert.equal(asked.claims, 2)
  await claims.stop()
})

test('of a hundred that would wait for the same a few ask; a hint, another conversation, or no wish to wait, and they ask', async (t) => {
  const pass = stopTime(t)
  const { claims, asked } = queueWith(Number.POSITIVE_INFINITY)
  const claim = (more: Partial<ClaimCommand> = {}) => claims.claim(PROCESSOR, { ...COMMAND, ...more }, NEVER)
  await claim({ waitMs: 0 })
  assert.equal(asked.claims, 1)
  const waiting = Array.from({ length: 100 }, () => claim())
  assert.equal(asked.claims, 1, 'it was known a moment ago')
  waiting.push(claim({ channelRef: 'page 1' }), claim({ waitMs: 0 }))
  assert.equal(asked.claims, 3)
  claims.hint()
  waiting.push(claim())
  assert.equal(asked.claims, 4)
  await pass(COMMAND.waitMs)
  await Promise.all(waiting)
  assert.equal(asked.claims, 4)
  const late = claim()
  assert.equal(asked.claims, 5, 'that was long ago')
  await claims.stop()
  await late
})

test('a claim that found nothing while a hint came in says nothing of the next', async () => {
  const { claims, asked } = queueWith(Number.POSITIVE_INFINITY)
  const first = claims.claim(PROCESSOR, { ...COMMAND, waitMs: 0 }, NEVER)
  claims.hint()
  await first
  const next = claims.claim(PROCESSOR, COMMAND, NEVER)
  assert.equal(asked.claims, 2)
  await claims.stop()
  await next
})

test('one whose time is over while the store tells nothing asks it, and fails as it does', async (t) => {
  const pass = stopTime(t)
  let isAway = false
  const troubles: unknown[] = []
  const answer = async <T>(told: T): Promise<T> => {
    if (isAway) throw new Error('away')
    return told
  }
  const store = { claim: () => answer([]), ready: () => answer([{ ready: false, at: null }]) }
  const claims = new Claims({
    store: store as unknown as ProcessingStore,
    clock: { now: () => 0 },
    maxAttempts: 5,
    maxSubscriptions: 5,
    onTrouble: (_doing, error) => troubles.push(error),
  })
  const waiting = claims.claim(PROCESSOR, { ...COMMAND, waitMs: 3000 }, NEVER)
  await nextTurn()
  isAway = true
  const failed = assert.rejects(waiting, /away/)
  await pass(3000)
  await failed
  assert.ok(troubles.length >= 1)
  await claims.stop()
})

test('a long ack or extend is carried out in parts, one after the other, and answered as a whole', async () => {
  const parts: number[] = []
  let underWay = 0
  const settle = async ({ items }: { readonly items: readonly { readonly id: number }[] }) => {
    assert.equal(++underWay, 1)
    await nextTurn()
    underWay -= 1
    parts.push(items.length)
    return parts.length > 6 ? null : items.map(({ id }) => ({ id, ok: id % 2 === 0 }))
  }
  const claims = new Claims({
    store: { ack: settle, extend: settle } as unknown as ProcessingStore,
    clock: { now: () => 0 },
    maxAttempts: 5,
    maxSubscriptions: 5,
    onTrouble: (doing, error) => assert.fail(`${doing}: ${error}`),
  })
  const items = Array.from({ length: 900 }, (_, n) => ({ id: n + 1, leaseId: 'lease' }))
  const settled = await claims.ack(PROCESSOR, 'default', items)
  assert.deepEqual(
    settled,
    items.map(({ id }) => ({ id, ok: id % 2 === 0 })),
  )
  assert.deepEqual(parts.splice(0), [200, 200, 200, 200, 100])
  await claims.extend(PROCESSOR, 'default', items.slice(0, 200), 1000)
  assert.deepEqual(parts, [200], 'control: a short one is one part')
  parts.push(1, 1, 1, 1, 1)
  assert.equal(await claims.extend(PROCESSOR, 'default', items, 1000), null, 'the subscription was deleted')
  await claims.stop()
})
