// The walk of retention: every tenant once, step after step to the end, one walk at a time, and none after a stop.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Retention } from '../../../src/maintenance/retention.ts'
import type { Tenant } from '../../../src/model/principal.ts'
import type { PurgeRequest, PurgeStep } from '../../../src/model/retention-plan.ts'
import { NO_RETENTION, type RetentionKind, type RetentionRule } from '../../../src/model/retention.ts'
import type { RetentionStore } from '../../../src/store/contract/retention.ts'
import { TestClock } from '../../support/clock.ts'

const DAY = 86_400_000
const A = { accountId: 1, companyId: 1 }
const B = { accountId: 2, companyId: 1 }
const NOTHING: PurgeStep = { messages: 0, rows: 0, held: 0, oldest: null, next: null }

interface Setup {
  readonly rules: readonly RetentionRule[]
  readonly tenants?: Partial<Record<RetentionKind, readonly Tenant[]>>
  readonly steps?: readonly (PurgeStep | Error)[]
  readonly onPurge?: () => void
}

function setUp({ rules, tenants = { events: [A] }, steps = [], onPurge = () => {} }: Setup) {
  const left = [...steps]
  const asked: PurgeRequest[] = []
  const deleted: string[] = []
  const told: string[] = []
  const troubles: string[] = []
  let follows = 0
  const store: RetentionStore = {
    rules: async () => [...rules],
    setRule: async () => {},
    tenants: async (kind, after) => (after ? [] : [...(tenants[kind] ?? [])]),
    purgeStep: async (request) => {
      asked.push(request)
      onPurge()
      const step = left.shift() ?? NOTHING
      if (step instanceof Error) throw step
      return step
    },
    deleteOld: async (kind, { accountId }, before) => {
      deleted.push(`${kind} of ${accountId} before ${before}`)
      return 3
    },
    countOld: async () => ({ count: 0, oldest: null }),
    followPurges: async () => {
      follows += 1
      return false
    },
  }
  const clock = new TestClock()
  const retention = new Retention({
    ...{ store, clock, everyMs: DAY, refusalsMaxAgeMs: 5 * DAY, onDeleted: () => {} },
    onTenant: async ({ accountId }, { events, refusals }, held) => {
      told.push(`${accountId}: ${events} events, ${refusals} refusals, ${held} held`)
    },
    onTrouble: (doing) => troubles.push(doing),
  })
  return { retention, clock, asked, deleted, told, troubles, follows: () => follows }
}

const EVENTS: RetentionRule = { ...NO_RETENTION, tenant: null, events: 10, refusals: 'never' }

test('a walk takes steps to the end of what is too old, and the index follows', async () => {
  const next = { receivedAt: 5, id: 5 }
  const steps = [
    { messages: 1, rows: 2, held: 1, oldest: 3, next },
    { messages: 1, rows: 1, held: 1, oldest: 6, next: null },
  ]
  const { retention, clock, asked, told, follows } = setUp({ rules: [EVENTS], steps })
  await Promise.all([retention.run(), retention.run()])
  assert.deepEqual(
    asked.map(({ tenant, before, after }) => ({ tenant, before, after })),
    [
      { tenant: A, before: clock.now() - 10 * DAY, after: null },
      { tenant: A, before: clock.now() - 10 * DAY, after: next },
    ],
  )
  assert.deepEqual(told, ['1: 3 events, 0 refusals, 2 held'])
  assert.deepEqual([retention.held, retention.overdueMs, retention.lastAt], [2, 0, clock.now()])
  assert.equal(follows(), 4, 'at the start, after each step that deleted, and at the end')
})

test('each tenant has its turn once, with its own ages, whatever it has rows of', async () => {
  const { retention, clock, asked, deleted, told } = setUp({
    rules: [EVENTS, { ...NO_RETENTION, tenant: B, events: 'never', refusals: 1 }],
    tenants: { events: [A, B], refusals: [B], history: [A] },
  })
  await retention.run()
  assert.deepEqual(
    asked.map(({ tenant }) => tenant),
    [A],
  )
  assert.deepEqual(deleted, [`refusals of 2 before ${clock.now() - DAY}`])
  assert.deepEqual(told, ['2: 0 events, 3 refusals, 0 held'])
})

test('a failure is reported, and the next walk begins again', async () => {
  const { retention, troubles, asked } = setUp({ rules: [EVENTS], steps: [new Error('no database')] })
  await retention.run()
  assert.deepEqual([troubles, retention.lastAt], [['delete what is too old'], null])
  await retention.run()
  assert.deepEqual([troubles.length, asked.length], [1, 2])
  assert.ok(retention.lastAt !== null)
})

test('a stop ends a walk after its step', async () => {
  const endless = { ...NOTHING, next: { receivedAt: 1, id: 1 } }
  const steps = Array.from({ length: 10 }, () => endless)
  const made = setUp({ rules: [EVENTS], steps, onPurge: () => void made.retention.stop() })
  await made.retention.run()
  assert.equal(made.asked.length, 1)
  assert.equal(made.retention.lastAt, null)
})
