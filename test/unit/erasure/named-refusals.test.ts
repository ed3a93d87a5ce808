// Which refused requests an erasure takes along.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { NamedRefusals, Names, namesEmail } from '../../../src/erasure/named-refusals.ts'
import type { StoredRefusal } from '../../../src/model/refusal.ts'

const refused = (id: number, body: string, more: Partial<StoredRefusal> = {}): StoredRefusal => ({
  ...{ id, accountId: 7, companyId: 42, receivedAt: 0, keyId: 'A', code: 'invalid_json', route: '/', requestId: 'r' },
  ...{ headers: {}, body: Buffer.from(body), bodySize: body.length, reason: null, acceptedAs: null, ...more },
})

/** They are in the store, newest first, and are read once. */
async function namedIn(stored: StoredRefusal[]): Promise<NamedRefusals> {
  const named = new NamedRefusals(storeOf(stored), { accountId: 7, companyId: 42 })
  await named.readNew(() => false)
  return named
}

const storeOf = (stored: readonly StoredRefusal[], onRead: (read: number) => void = () => {}) => ({
  list: async (_tenant: unknown, before: number, limit: number) => {
    const page = stored
      .filter(({ id }) => id < before)
      .toSorted((a, b) => b.id - a.id)
      .slice(0, limit)
    onRead(page.length)
    return page
  },
})

const BODIES = [
  '{"source_ref":"cf:1","contact":7}',
  '{"source_ref":"c\\u0066:1"}',
  '{"text":"x","source_ref":"cf:1" broken',
  'source_ref=cf:1&text=x',
  'text=x&source_ref=cf%3A1',
  "{'source_ref': 'cf:1'}",
  '[{"source_ref":"cf:0"},{"source_ref":"cf:1"}]',
  '"{\\"source_ref\\":\\"cf:1\\"}"',
]
const OTHERS = ['{"source_ref":"cf:12"}', '{"ref":"cf:1"}', 'cf:1', '', '{"source_ref":1}', 'source_ref=cf:12', '%']

test('refusals are found by the reference in their body, however it is written', async () => {
  const named = await namedIn([...BODIES, ...OTHERS].map((body, n) => refused(n + 1, body)))
  const found = named.of(Names.of({ id: 1, sourceRef: 'cf:1', idempotencyKey: null }))
  assert.deepEqual(
    found.toSorted((a, b) => a - b),
    BODIES.map((_, n) => n + 1),
  )
})

test('refusals are found by the event that was created from them, and by their Idempotency-Key', async () => {
  const named = await namedIn([
    refused(1, '{}', { acceptedAs: 77 }),
    refused(2, '{}', { headers: { 'idempotency-key': 'k' } }),
    refused(3, '{}', { acceptedAs: 78, headers: { 'idempotency-key': 'other' } }),
  ])
  assert.deepEqual(named.of(Names.of({ id: 77, sourceRef: null, idempotencyKey: null })), [1])
  assert.deepEqual(named.of(Names.of({ id: 1, sourceRef: null, idempotencyKey: 'k' })), [2])
})

test('for all pages of an erasure refusals are read once, and those that come meanwhile are found', async () => {
  const stored = Array.from({ length: 40 }, (_, n) => refused(n + 1, `{"source_ref":"r:${n}"}`))
  let read = 0
  const named = new NamedRefusals(
    storeOf(stored, (count) => (read += count)),
    { accountId: 7, companyId: 42 },
  )
  for (let page = 0; page < 10; page++) await named.readNew(() => false)
  // Of those that are known, each look reads a few again.
  assert.ok(read < 2.5 * stored.length, String(read))
  stored.push(refused(41, '{"source_ref":"late"}'))
  assert.deepEqual(await named.readNew(() => true), [41])
  const found = named.of(Names.of({ id: 0, sourceRef: 'late', idempotencyKey: null }))
  assert.deepEqual([found, named.take(found), named.take(found)], [[41], 1, 0])
})

test('refusals are found by an address in any form, and by no other address', () => {
  for (const body of [
    '{"contact":{"email":"Ada@Example.org"}}',
    '{"contact":{"email":"ada\\u0040example.org"}}',
    'please answer to ADA@EXAMPLE.ORG',
    'email=ada%40example.org&x=1',
  ]) {
    assert.ok(namesEmail(refused(1, body), 'ada@example.org'), body)
  }
  assert.ok(!namesEmail(refused(1, '{"contact":{"email":"bob@example.org"}}'), 'ada@example.org'))
  const named = refused(1, '{"contact":{"email":"E"},"text":"hello"}')
  assert.deepEqual([namesEmail(named, 'e'), namesEmail(named, 'h')], [true, false], 'a text that is no address')
})
