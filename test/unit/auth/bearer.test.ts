import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { bearerToken } from '../../../src/auth/bearer.ts'
import { anyText } from '../../support/text.ts'

const codeOf = (...headers: string[]) => {
  const found = bearerToken(headers)
  return 'problem' in found ? found.problem.code : found.token
}

test('the token of the one Authorization header is found, wherever it stands', () => {
  assert.equal(codeOf('Authorization', 'Bearer abc'), 'abc')
  assert.equal(codeOf('Host', 'x', 'authorization', 'Bearer abc', 'Accept', '*/*'), 'abc')
  assert.equal(codeOf('AUTHORIZATION', 'BEARER abc'), 'abc')
})

test('the scheme is followed by any white space, and white space at the end is no part of the token', () => {
  assert.equal(codeOf('Authorization', 'bearer   \t abc \t'), 'abc')
})

test('what follows the scheme is the token, whatever it is', () => {
  assert.equal(codeOf('Authorization', 'Bearer a b'), 'a b')
  assert.equal(codeOf('Authorization', 'Bearer "abc"'), '"abc"')
})

test('no header, another scheme or nothing after it is a missing token', () => {
  assert.equal(codeOf(), 'missing_token')
  assert.equal(codeOf('Host', 'Bearer abc'), 'missing_token')
  assert.equal(codeOf('X-Authorization', 'Bearer abc'), 'missing_token')
  for (const value of [
    '',
    'Bearer',
    'Bearer ',
    'Bearer\t',
    'Basic abc',
    'abc',
    'Bearerabc',
    'Bearer=abc',
    'xBearer abc',
  ]) {
    assert.equal(codeOf('Authorization', value), 'missing_token', JSON.stringify(value))
  }
})

test('two headers are refused, whatever they hold', () => {
  assert.equal(codeOf('Authorization', 'Bearer a', 'Authorization', 'Bearer a'), 'invalid_request')
  assert.equal(codeOf('Authorization', 'Bearer a', 'authorization', ''), 'invalid_request')
  assert.equal(codeOf('Authorization', 'Basic x', 'Host', 'y', 'AUTHORIZATION', 'Bearer a'), 'invalid_request')
})

test('no header value makes it fail', () => {
  fc.assert(
    fc.property(anyText(), (value) => {
      bearerToken(['Authorization', value])
      bearerToken(['Authorization', `Bearer ${value}`])
    }),
  )
})
