import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { test } from 'node:test'
import { crc32 } from 'node:zlib'
import fc from 'fast-check'
import { mintToken, tokenKeyId } from '../../../src/auth/token.ts'
import { anyText } from '../../support/text.ts'

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/** Written down here once more: tokens in the field must stay valid whatever becomes of the code. */
function checksum(body: string): string {
  let value = crc32(body)
  let text = ''
  for (let digit = 0; digit < 6; digit += 1) {
    text = BASE62[value % 62]! + text
    value = Math.floor(value / 62)
  }
  return text
}

test('a token is prefix, key id, secret and checksum', () => {
  const { token, keyId } = mintToken()
  const match = /^itr_([0-9A-Za-z]{10})_([0-9A-Za-z]{30})([0-9A-Za-z]{6})$/.exec(token)
  assert.equal(match?.[1], keyId)
  assert.equal(match?.[3], checksum(token.slice(0, -6)))
})

test('a token that was once made stays valid', () => {
  assert.equal(
    tokenKeyId(
      `itr_0123456789_abcdefghijklmnopqrstuvwxyzABCD${checksum('itr_0123456789_abcdefghijklmnopqrstuvwxyzABCD')}`,
    ),
    '0123456789',
  )
})

test('what is kept is the digest of the whole token', () => {
  const { token, hash: kept } = mintToken()
  assert.ok(Buffer.from(kept).equals(hash('sha256', token, 'buffer')))
})

test('the key id of a well-formed token is found', () => {
  for (let count = 0; count < 200; count += 1) {
    const { token, keyId } = mintToken()
    assert.equal(tokenKeyId(token), keyId)
  }
})

test('no two tokens are alike, and all letters are used', () => {
  const tokens = Array.from({ length: 500 }, () => mintToken())
  assert.equal(new Set(tokens.map(({ keyId }) => keyId)).size, 500)
  const letters = new Set(tokens.flatMap(({ token }) => [...token.split('_')[2]!]))
  assert.equal(letters.size, 62)
})

test('one changed character anywhere is noticed', () => {
  const { token } = mintToken()
  for (let at = 0; at < token.length; at += 1) {
    for (const letter of ['0', 'Z', 'a', '_', ' ']) {
      if (letter === token[at]) continue
      assert.equal(tokenKeyId(token.slice(0, at) + letter + token.slice(at + 1)), null, `${letter} at ${at}`)
    }
  }
})

test('two neighbours that changed places are noticed', () => {
  const { token } = mintToken()
  for (let at = 0; at + 1 < token.length; at += 1) {
    if (token[at] === token[at + 1]) continue
    const swapped = token.slice(0, at) + token[at + 1] + token[at] + token.slice(at + 2)
    assert.equal(tokenKeyId(swapped), null, `at ${at}`)
  }
})

test('anything longer, shorter or padded is not a token', () => {
  const { token } = mintToken()
  for (const text of [
    '',
    'itr_',
    token.slice(1),
    token.slice(0, -1),
    `${token}0`,
    ` ${token}`,
    `${token}\n`,
    `${token}\0`,
  ]) {
    assert.equal(tokenKeyId(text), null, JSON.stringify(text))
  }
})

test('no text at all makes it fail', () => {
  fc.assert(fc.property(anyText(60), (text) => tokenKeyId(text) === null && tokenKeyId(`itr_${text}`) === null))
})
