// The queue in front of the password check. Hashes at full cost are in test/api/password.test.ts.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PasswordVerifier } from '../../../src/auth/password.ts'

test('one is worked on at a time, and too many that wait are told so', async () => {
  const check = new PasswordVerifier()
  const cheap = 'scrypt$2$1$1$AAAAAAAAAAAAAAAAAAAAAA==$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA='
  const waiting = Array.from({ length: 8 }, () => check.matches('x', async () => cheap))
  assert.equal(check.isBusy, false)
  waiting.push(check.matches('x', async () => cheap))
  assert.equal(check.isBusy, true)
  assert.deepEqual(new Set(await Promise.all(waiting)), new Set([false]))
  assert.equal(check.isBusy, false)
})
