// A batch, packed and unpacked: whatever goes in comes out, and it lies on disk as it always did.

import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { test } from 'node:test'
import fc from 'fast-check'
import { createIdentity, createMintedDigest } from '../../../../src/model/dedupe.ts'
import type { AppendItem } from '../../../../src/store/contract/append.ts'
import {
  type AppendRow,
  boundsOf,
  createSeal,
  digestsOf,
  packBatch,
  rowAt,
  rowOf,
  unpackBatch,
} from '../../../../src/store/sqlite/append-batch.ts'
import { item } from '../../../store/rows.ts'

const DEDUPE_KEY = new Uint8Array(32).fill(9)
const seal = createSeal(DEDUPE_KEY)

/** From the row alone, not from what crosses beside it. */
function expectedDigest(row: AppendRow): Buffer {
  return Buffer.from(createIdentity(DEDUPE_KEY)(row, createMintedDigest()(row.mintedKey)))
}

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

function asItem({ digest: _d, sha256: _s, payload, ...meta }: AppendRow): AppendItem {
  return { ...meta, payload: Uint8Array.from(payload) }
}

test('what is packed is unpacked the same, from the front, by place, and after it was sealed', () => {
  fc.assert(
    fc.property(items, (given) => {
      const batch = packBatch(given)
      const identities = seal(batch)
      const rows = [...unpackBatch(batch.bytes)]
      const expected = given.map((one) => ({ ...one, payload: Uint8Array.from(one.payload) }))
      assert.deepEqual(rows.map(asItem), expected)
      assert.deepEqual(
        given.map((_, place) => asItem(rowOf(batch.bytes, place))),
        expected,
      )
      assert.deepEqual(
        identities,
        given.map((one) => {
          const minted = one.sourceRef === null && one.idempotencyKey === null ? one.mintedKey : null
          return [one.accountId, one.companyId, one.sourceRef, one.idempotencyKey, minted]
        }),
      )
      for (const row of rows) assert.deepEqual(Buffer.from(row.digest), expectedDigest(row))
      const bounds = boundsOf(batch.bytes)
      assert.deepEqual([bounds.length, bounds.at(-1)], [given.length + 1, batch.bytes.byteLength])
      assert.deepEqual(
        bounds.slice(0, -1).map((at) => asItem(rowAt(batch.bytes, at))),
        expected,
      )
      const digests = digestsOf(batch.bytes).map((digest) => Buffer.from(digest).toString('hex'))
      assert.deepEqual(
        digests,
        rows.map(({ digest }) => Buffer.from(digest).toString('hex')),
      )
      for (const row of rows) assert.deepEqual(Buffer.from(row.sha256), hash('sha256', row.payload, 'buffer'))
    }),
  )
})

test('a text that is no text for every program is kept as it is', () => {
  const odd = '\ud800 \u0000 "\\ \u2028 é 😀'
  const [row] = unpackBatch(packBatch([item({ channelRef: odd })]).bytes)
  assert.equal(row?.channelRef, odd)
})

test('only what is not large is plain', () => {
  const plain = (...given: AppendItem[]) => packBatch(given).isPlain
  assert.equal(plain(item(), item({ payload: new Uint8Array(64 * 1024) })), true)
  assert.equal(plain(item(), item({ payload: new Uint8Array(64 * 1024 + 1) })), false)
})

/** It is on disk: a database that was left with arrivals is opened by the next version. */
test('the layout is the one it always was', () => {
  const fixed = item({
    mintedKey: '019a8f00-0000-7000-8000-000000000001',
    requestId: '019a8f00-0000-7000-8000-000000000002',
    sourceRef: 'a:1',
    body: '{}',
  })
  const batch = packBatch([fixed])
  seal(batch)
  assert.equal(hash('sha256', batch.bytes), 'cb69013f503ef5fbfae18320afb632cb4fa41ed399b8aa7f5d0d6854386c6e8c')
})
