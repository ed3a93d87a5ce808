// Passwords of operators, hashed at full cost (about 0.3 s of CPU each).

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { hashPassword, PasswordVerifier } from '../../src/auth/password.ts'

test('a password is known by its hash, which has a salt of its own, names its cost, and holds no part of it', async () => {
  const check = new PasswordVerifier()
  const password = 'Zoë’s horse battery'
  const [first, second] = [await hashPassword(password), await hashPassword(password)]
  assert.match(first, /^scrypt\$32768\$8\$3\$[\w+/=]{24}\$[\w+/=]{44}$/)
  assert.notEqual(first, second)
  assert.equal(await check.matches(password, async () => first), true)
  assert.equal(
    await check.matches(password.normalize('NFD'), async () => second),
    true,
    'letters in another form are the same',
  )
  for (const wrong of ['', 'zoë’s horse battery', `${password} `])
    assert.equal(await check.matches(wrong, async () => first), false)
})

test('without a hash nothing matches, not even what the placeholder would be', async () => {
  const check = new PasswordVerifier()
  for (const password of ['', 'x', '\0'.repeat(32)])
    assert.equal(await check.matches(password, async () => null), false)
})
