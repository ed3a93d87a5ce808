// A batch, packed and unpacked: whatever goes in comes out.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { AppendItem } from '../../../../src/store/contract/append.ts'
import { type AppendRow, packBatch, unpackBatch } from '../../../../src/store/sqlite/journal/append-batch.ts'
import { item } from '../../../store/rows.ts'

const text = fc.string({ unit: 'binary', maxLength: 40 })
const maybe = fc.option(text, { nil: null })
const items: fc.Arbitrary<AppendItem[]> = fc.array(
  fc
    .record({
      accountId: fc.maxSafeInteger(),
      companyId: fc.maxSafeInteger(),
      receivedAt: fc.maxSafeInteger(),
      keyId: text,
      scope: text,
      sourceRef: maybe,
      channelRef: maybe,
      idempotencyKey: maybe,
      contentType: text,
      traceparent: maybe,
      userAgent: maybe,
      remoteAddr: maybe,
      payload: fc.uint8Array({ maxLength: 300 }),
    })
    .map((fields) => item(fields)),
  { maxLength: 8 },
)

function asItem({ meta, mintedKey, payload }: AppendRow): AppendItem {
  return { ...meta, mintedKey, payload: Uint8Array.from(payload) }
}

test('what is packed is unpacked the same, in its order', () => {
  fc.assert(
    fc.property(items, (given) => {
      const rows = unpackBatch(packBatch(given))
      assert.deepEqual(
        rows.map(asItem),
        given.map((one) => ({ ...one, payload: Uint8Array.from(one.payload) })),
      )
      for (const { meta, values } of rows) assert.deepEqual(values, Object.values(meta))
    }),
  )
})

test('a batch holds each payload once, and nothing of the buffers they came in', () => {
  const shared = Buffer.from('....{"n":1}....{"n":2}....')
  const batch = packBatch([item({ payload: shared.subarray(4, 11) }), item({ payload: shared.subarray(15, 22) })])
  assert.equal(Buffer.from(batch.payloads).toString(), '{"n":1}{"n":2}')
  assert.notEqual(batch.payloads.buffer, shared.buffer)
})
