// By which columns of its key a table is paged.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ownKey } from '../../../src/store/contract/copy.ts'
import { COPY_TABLES } from '../../../src/store/copy-tables.ts'

const TENANT = { accountId: 7, companyId: 42 }
const ownKeys = (names: readonly string[], tenant?: typeof TENANT) =>
  names.map((name) => ownKey(COPY_TABLES.find((table) => table.name === name)!, tenant))

test('pages of one tenant go on after what differs among its own rows, so that an index finds the place', () => {
  const names = ['dedupe', 'refusals', 'deliveries', 'events']
  assert.deepEqual(ownKeys(names, TENANT), [['digest'], ['id'], ['event_id', 'subscription'], ['id']])
  assert.deepEqual(ownKeys(['dedupe']), [['company_id', 'digest']])
})

test('a table with one row for a tenant is paged by its whole key', () => {
  assert.deepEqual(ownKeys(['retention_rules'], TENANT), [['company_id', 'account_id']])
})
