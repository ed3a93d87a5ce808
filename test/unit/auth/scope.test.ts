import assert from 'node:assert/strict'
import { test } from 'node:test'
import { scopeAllows } from '../../../src/auth/scope.ts'
import { isScope } from '../../../src/model/principal.ts'

test('every valid token may do what asks for any', () => {
  for (const scope of ['', 'cf', 'processor']) assert.ok(scopeAllows('any', scope, ['bot']))
})

test('without a list every scope but processor may send', () => {
  for (const scope of ['', 'cf', 'bot', 'processors']) assert.ok(scopeAllows('intake', scope, null), scope)
  assert.ok(!scopeAllows('intake', 'processor', null))
})

test('with a list only those on it may send, and processor never', () => {
  assert.ok(scopeAllows('intake', 'cf', ['bot', 'cf']))
  for (const scope of ['', 'c', 'cf2', 'CF', 'processor'])
    assert.ok(!scopeAllows('intake', scope, ['cf', 'processor']), scope)
  assert.ok(!scopeAllows('intake', 'cf', []))
})

test('a scope is lower-case letters, digits and a few signs, at most 64 of them', () => {
  for (const text of ['a', '0', 'cf', 'a_b.c:d-e', 'x'.repeat(64)]) assert.ok(isScope(text), text)
  for (const text of ['', 'A', '_a', '-a', 'a b', 'a/b', '\u00e9', 'x'.repeat(65), 'a\n', ' a'])
    assert.ok(!isScope(text), text)
})
