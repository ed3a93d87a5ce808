import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { SecretBox, SecretUnreadable } from '../../../src/runtime/secret-box.ts'

const KEY = randomBytes(32)
const box = new SecretBox(KEY)

test('a sealed secret opens again, whatever is in it', () => {
  for (const secret of ['', 'x', 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLEAJ', 'ключ 🔑\n\u0000', 'x'.repeat(5000)])
    assert.equal(new SecretBox(KEY).open('hook', 'row', box.seal('hook', 'row', secret)), secret)
})

test('a sealed secret shows nothing of the secret and never repeats itself', () => {
  const secret = 'sixteen letters!'
  const [one, other] = [Buffer.from(box.seal('hook', 'row', secret)), Buffer.from(box.seal('hook', 'row', secret))]
  assert.ok(!one.includes('sixteen') && !one.includes(Buffer.from('sixteen').toString('base64')))
  assert.notDeepEqual(one, other)
  assert.equal(one.length, secret.length + 29)
})

test('it opens for no other row, purpose or key', () => {
  const sealed = box.seal('hook', 'row', 'secret')
  assert.equal(box.open('hook', 'row', sealed), 'secret')
  assert.throws(() => box.open('hook', 'other', sealed), SecretUnreadable)
  assert.throws(() => box.open('endpoint', 'row', sealed), SecretUnreadable)
  assert.throws(() => new SecretBox(randomBytes(32)).open('hook', 'row', sealed), SecretUnreadable)
})

test('it does not open after any one byte was changed or cut off', () => {
  const sealed = box.seal('hook', 'row', 'secret')
  for (let at = 0; at < sealed.length; at += 1) {
    const changed = Buffer.from(sealed)
    changed[at]! ^= 1
    assert.throws(() => box.open('hook', 'row', changed), SecretUnreadable, `byte ${at}`)
    assert.throws(() => box.open('hook', 'row', sealed.subarray(0, at)), SecretUnreadable, `${at} bytes`)
  }
})

test('a key of another length is refused', () => {
  assert.throws(() => new SecretBox(randomBytes(16)), /32 bytes/)
})
