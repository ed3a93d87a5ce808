// Which age is in force for a tenant.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  NO_RETENTION,
  type RetentionRule,
  RetentionRules,
  type RetentionSettings,
} from '../../../src/model/retention.ts'

const DAY = 86_400_000
const TENANT = { accountId: 7, companyId: 42 }
const REFUSALS_MS = 5 * DAY

function inForce(own: Partial<RetentionSettings> | null, fallback: Partial<RetentionSettings> | null) {
  const rules: RetentionRule[] = [{ ...NO_RETENTION, events: 1, tenant: { ...TENANT, companyId: 43 } }]
  if (own) rules.push({ ...NO_RETENTION, ...own, tenant: TENANT })
  if (fallback) rules.push({ ...NO_RETENTION, ...fallback, tenant: null })
  return new RetentionRules(rules, REFUSALS_MS).of(TENANT)
}

test('without a rule everything is kept, except refusals, which have a setting', () => {
  assert.deepEqual(inForce(null, null), {
    events: null,
    refusals: REFUSALS_MS,
    history: null,
    purgesUnprocessed: false,
  })
})

test('the default is in force for a tenant without a rule of its own', () => {
  const fallback = { events: 30, refusals: 2, history: 7, unprocessed: 'purge' } as const
  const expected = { events: 30 * DAY, refusals: 2 * DAY, history: 7 * DAY, purgesUnprocessed: true }
  assert.deepEqual(inForce(null, fallback), expected)
})

test('what a rule does not say is taken from the default, and never means never', () => {
  const own = { events: 'never', history: 1, unprocessed: 'keep' } as const
  const fallback = { events: 30, refusals: 'never', history: 'never', unprocessed: 'purge' } as const
  assert.deepEqual(inForce(own, fallback), { events: null, refusals: null, history: DAY, purgesUnprocessed: false })
})
