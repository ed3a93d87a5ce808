import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { mintToken } from '../../../src/auth/token.ts'
import { readIdempotencyKey } from '../../../src/intake/idempotency-key.ts'
import { anyText } from '../../support/text.ts'

const keyOf = (...values: string[]) => {
  const read = readIdempotencyKey(values)
  return 'key' in read ? read.key : 'unusable'
}

test('quoted and bare are the same key', () => {
  assert.equal(keyOf('abc'), 'abc')
  assert.equal(keyOf('"abc"'), 'abc')
  assert.equal(keyOf('  abc '), 'abc')
  assert.equal(keyOf('"a b"'), 'a b')
})

test('escapes inside quotes are undone', () => {
  assert.equal(keyOf('"a\\"b\\\\c"'), 'a"b\\c')
})

test('quotes that do not match are part of the key', () => {
  assert.equal(keyOf('"abc'), '"abc')
  assert.equal(keyOf('a"b'), 'a"b')
  assert.equal(keyOf('"'), '"')
})

test('no header, an empty and a blank one are no key', () => {
  for (const values of [[], [''], ['  '], ['""'], ['"  "']]) assert.equal(keyOf(...values), null)
})

test('255 characters are the most, without the quotes', () => {
  const longest = 'k'.repeat(255)
  assert.equal(keyOf(longest), longest)
  assert.equal(keyOf(`"${longest}"`), longest)
  assert.equal(keyOf(`${longest}k`), 'unusable')
  assert.equal(keyOf(`"${longest}k"`), 'unusable')
})

test('anything but printable ASCII, and two headers, are unusable', () => {
  for (const value of ['caf\u00e9', 'a\tb', 'a\u0000b', '\u{1F600}', '\u007fx'])
    assert.equal(keyOf(value), 'unusable', value)
  assert.equal(keyOf('a', 'a'), 'unusable')
  assert.equal(keyOf('', ''), 'unusable')
})

test('any value gets an answer, and a key is 1 to 255 printable characters', () => {
  fc.assert(
    fc.property(anyText(300), (value) => {
      const key = keyOf(value)
      assert.ok(key === null || /^[\x20-\x7e]{1,255}$/.test(key))
    }),
  )
})

test('a key with a token in it is replaced by its digest, and still tells messages apart', () => {
  const { token } = mintToken()
  const keys = [token, `"${token}"`, `Bearer ${token}`, token.slice(0, 40), token.toUpperCase()].map((value) =>
    keyOf(value),
  )
  for (const key of keys) assert.match(String(key), /^sha256:[0-9a-f]{64}$/)
  assert.equal(keys[0], keys[1], 'quoted or bare')
  assert.equal(new Set(keys).size, 4)
  for (const other of [
    'itr_',
    'citron_abcdefghij_x',
    'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
  ])
    assert.equal(keyOf(other), other)
})
