import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Claims, type ClaimCommand } from '../../../src/processing/claims.ts'
import type { ClaimedEvent, ProcessingStore } from '../../../src/store/contract/processing.ts'

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

/** A queue that has something from the so-manieth claim on, and says so when it is looked at. */
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

test('a claim that waits in vain asks once, and is answered with nothing when its time is over', async () => {
  const { claims, asked } = queueWith(Number.POSITIVE_INFINITY)
  assert.deepEqual(await claims.claim(PROCESSOR, COMMAND, NEVER), [])
  assert.equal(asked.claims, 1)
  assert.ok(asked.looks >= 1)
  await claims.stop()
})

test('one that is woken asks again, and is answered with what there is', async () => {
  const { claims, asked } = queueWith(2)
  assert.deepEqual(await claims.claim(PROCESSOR, COMMAND, NEVER), [EVENT])
  assert.equal(asked.claims, 2)
  await claims.stop()
})
