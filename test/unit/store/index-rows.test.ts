// The rows of the index have a value for each of their columns, of its type.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { countRepeats, derive, type JournalRow, tallyTraffic } from '../../../src/model/index-step.ts'
import { readingOf } from '../../../src/model/payload-reading.ts'
import { createSha256 } from '../../../src/model/dedupe.ts'
import {
  CONVERSATIONS,
  conversationValues,
  ENTRIES,
  entryValues,
  type IndexTable,
  REPEATS,
  repeatValues,
  TRAFFIC,
  trafficValues,
} from '../../../src/store/index-rows.ts'

const BODY = { contact: { name: 'Ada', email: 'Ada@Example.org', more: 1 }, message: { type: 'text', text: 'hello' } }
const payload = Buffer.from(JSON.stringify({ ...BODY, meta: { form_id: 'x' } }))
const row: JournalRow = {
  id: 5,
  kind: 'event',
  revises: null,
  accountId: 7,
  companyId: 42,
  receivedAt: 1_000_000,
  channelRef: 'page',
  channelKey: 'key',
  erasedAt: null,
  size: payload.length,
  sha256: Uint8Array.from(createSha256()(payload)),
  keyId: 'AAAAAAAAAA',
  scope: 'cf',
  requestId: 'r',
  contentType: 'application/json',
  recipe: null,
  payload,
}
const read = (one: JournalRow) =>
  derive(
    one,
    readingOf(one, () => null),
  )
const derived = read(row)
const revision = read({ ...row, id: 6, kind: 'revision', revises: 5 })
const [repeats] = countRepeats([revision], [])
const [traffic] = tallyTraffic([derived], []).rows()

const CASES: Record<string, [table: IndexTable, values: readonly unknown[]]> = {
  entry: [ENTRIES, entryValues(derived, 5)],
  conversation: [CONVERSATIONS, conversationValues([derived])],
  repeats: [REPEATS, repeatValues(repeats!)],
  traffic: [TRAFFIC, trafficValues(traffic!)],
}
for (const [name, [table, values]] of Object.entries(CASES)) {
  test(`${name}: a value for each column, of its type`, () => {
    const columns = Object.entries(table.columns)
    assert.equal(values.length, columns.length)
    for (const [n, [column, type]] of columns.entries()) {
      const value = values[n]
      if (value === null) continue
      assert.equal(typeof value, type === 'integer' ? 'number' : 'string', column)
    }
  })
}

test('an entry holds the columns by name', () => {
  const entry = Object.fromEntries(Object.keys(ENTRIES.columns).map((name, n) => [name, entryValues(derived, 5)[n]]))
  assert.deepEqual(entry, {
    company_id: 42,
    account_id: 7,
    event_id: 5,
    kind: 'event',
    received_at: 1_000_000,
    key_id: 'AAAAAAAAAA',
    scope: 'cf',
    conversation_id: 5,
    contact_name: 'Ada',
    contact_email: 'Ada@Example.org',
    email_key: 'ada@example.org',
    message_type: 'text',
    snippet: 'hello',
    warnings: '[{"path":"/meta/form_id","expected":"integer","got":"string"}]',
    unindexed: null,
    erased: 0,
  })
})
