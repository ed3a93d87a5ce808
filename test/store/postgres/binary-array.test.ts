// Arrays in binary form: what PostgreSQL reads back is what was written, alone and after a batch was cut in two.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import fc from 'fast-check'
import type pg from 'pg'
import {
  ArrayWriter,
  bigints,
  byteas,
  GrowableBuffer,
  sliceArray,
  texts,
} from '../../../src/store/postgres/connection/binary-array.ts'
import { connect, newPostgresDatabase } from '../../support/postgres/databases.ts'

let client: pg.Client
before(async () => {
  client = await connect(await newPostgresDatabase())
})
after(() => client.end())

async function readBack(type: string, array: Buffer): Promise<unknown[]> {
  const { rows } = await client.query(`SELECT v FROM unnest($1::${type}[]) WITH ORDINALITY AS u (v, n) ORDER BY n`, [
    array,
  ])
  return rows.map(({ v }) => v as unknown)
}

const text = fc.option(
  fc.oneof(
    fc.constantFrom('', ' ', 'again', '{"a,b"}', 'NULL', 'é\u{1F600}', 'x'.repeat(500)),
    fc.string({ unit: 'grapheme' }).filter((value) => !value.includes('\0')),
  ),
)

test('texts, nulls and repetitions among them', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(text, { maxLength: 30 }), async (values) => {
      assert.deepEqual(await readBack('text', texts(values)), values)
    }),
    { numRuns: 100 },
  )
})

test('whole numbers up to the largest that are exact', async () => {
  const values = [
    0,
    1,
    -1,
    255,
    2 ** 31,
    2 ** 32,
    -(2 ** 32),
    2 ** 32 - 1,
    Number.MAX_SAFE_INTEGER,
    Number.MIN_SAFE_INTEGER,
    null,
  ]
  assert.deepEqual(
    (await readBack('bigint', bigints(values))).map((value) => (value === null ? null : Number(value))),
    values,
  )
  for (const value of [1.5, Number.NaN, 2 ** 53, Number.POSITIVE_INFINITY, 'soon' as unknown as number]) {
    assert.throws(() => bigints([value]), TypeError)
  }
})

test('bytes of every value, none, and many', async () => {
  const values = [new Uint8Array(0), Uint8Array.from({ length: 256 }, (_, n) => n), null, Buffer.alloc(100_000, 7)]
  const back = (await readBack('bytea', byteas(values))) as (Buffer | null)[]
  assert.deepEqual(
    back.map((value) => value?.toString('hex') ?? null),
    values.map((value) => (value === null ? null : Buffer.from(value).toString('hex'))),
  )
})

test('truth values', async () => {
  const writer = new ArrayWriter('boolean', new GrowableBuffer(0))
  for (const value of [true, false, true]) writer.boolean(value)
  assert.deepEqual(await readBack('boolean', writer.done()), [true, false, true])
})

test('an empty array is an array', async () => {
  for (const [type, array] of [
    ['text', texts([])],
    ['bigint', bigints([])],
    ['bytea', byteas([])],
  ] as const) {
    assert.deepEqual(await readBack(type, array), [])
  }
})

test('a part of an array is an array of its own', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(text, { minLength: 1, maxLength: 20 }), fc.nat(19), async (values, cut) => {
      const at = cut % values.length
      if (at > 0) assert.deepEqual(await readBack('text', sliceArray(texts(values), 0, at)), values.slice(0, at))
      assert.deepEqual(await readBack('text', sliceArray(texts(values), at, values.length)), values.slice(at))
    }),
    { numRuns: 50 },
  )
})
