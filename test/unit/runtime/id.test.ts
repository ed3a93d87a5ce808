import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { base62, newUuid, randomBase62 } from '../../../src/runtime/id.ts'

test('uuids are version 7 and no two are alike', () => {
  const ids = Array.from({ length: 1000 }, newUuid)
  assert.equal(new Set(ids).size, 1000)
  for (const id of ids) assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
})

test('random text has the length asked for and uses the whole alphabet', () => {
  for (const length of [0, 1, 10, 36]) assert.match(randomBase62(length), new RegExp(`^[0-9A-Za-z]{${length}}$`))
  assert.equal(new Set(randomBase62(5000)).size, 62)
})

test('a number in base62 has its fixed length and keeps its order', () => {
  assert.equal(base62(0, 6), '000000')
  assert.equal(base62(61, 2), '0z')
  assert.equal(base62(62, 2), '10')
  assert.equal(base62(0xffff_ffff, 6).length, 6)
  fc.assert(
    fc.property(fc.nat({ max: 0xffff_ffff }), fc.nat({ max: 0xffff_ffff }), (a, b) => {
      assert.equal(a < b, base62(a, 6) < base62(b, 6))
    }),
  )
})
