// Which refused requests an erasure takes along.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { NamedRefusals, namesEmail } from '../../../src/erasure/named-refusals.ts'
import type { StoredRefusal } from '../../../src/model/refusal.ts'

const refused = (id: number, body: string, more: Partial<StoredRefusal> = {}): StoredRefusal => ({
  ...{ id, accountId: 7, companyId: 42, receivedAt: 0, keyId: 'A', code: 'invalid_json', route: '/', requestId: 'r' },
  ...{ headers: {}, body: Buffer.from(body), bodySize: body.length, acceptedAs: null, ...more },
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

test('refusals are found by the reference in their body, however it is written', () => {
  const named = new NamedRefusals()
  for (const [n, body] of [...BODIES, ...OTHERS].entries()) named.add(refused(n, body))
  const found = named.of({ id: 1, sourceRef: 'cf:1', idempotencyKey: null })
  assert.deepEqual(
    found.toSorted((a, b) => a - b),
    BODIES.map((_, n) => n),
  )
})

test('refusals are found by the event that was created from them, and by their Idempotency-Key', () => {
  const named = new NamedRefusals()
  named.add(refused(1, '{}', { acceptedAs: 77 }))
  named.add(refused(2, '{}', { headers: { 'idempotency-key': 'k' } }))
  named.add(refused(3, '{}', { acceptedAs: 78, headers: { 'idempotency-key': 'other' } }))
  assert.deepEqual(named.of({ id: 77, sourceRef: null, idempotencyKey: null }), [1])
  assert.deepEqual(named.of({ id: 1, sourceRef: null, idempotencyKey: 'k' }), [2])
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
