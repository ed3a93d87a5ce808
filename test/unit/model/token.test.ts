import assert from 'node:assert/strict'
import { test } from 'node:test'
import { tokenState } from '../../../src/model/token.ts'

test('a token is active until it is disabled or its time has come', () => {
  assert.equal(tokenState({ isActive: true, expiresAt: null }, 1000), 'active')
  assert.equal(tokenState({ isActive: true, expiresAt: 1001 }, 1000), 'active')
  assert.equal(tokenState({ isActive: true, expiresAt: 1000 }, 1000), 'expired')
  assert.equal(tokenState({ isActive: false, expiresAt: null }, 1000), 'disabled')
})

test('disabled wins over expired', () => {
  assert.equal(tokenState({ isActive: false, expiresAt: 1 }, 1000), 'disabled')
})
