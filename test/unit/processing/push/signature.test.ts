import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Webhook } from 'standardwebhooks'
import { keyOfSecret, makeSecret, sign } from '../../../../src/processing/push/signature.ts'

const NOW = Date.now()
const keysOf = (...secrets: string[]) => secrets.map((secret) => keyOfSecret(secret)!)

test('the published library verifies a signature, and no other body, id, time or secret', async () => {
  const secret = makeSecret()
  const body = Buffer.from('{"a":1}')
  const headers = await sign(keysOf(secret), 'evt_7_abc', NOW, [body])
  assert.deepEqual(new Webhook(secret).verify(body, { ...headers }), { a: 1 })
  const refused: [Buffer, object, string][] = [
    [Buffer.from('{"a":2}'), {}, secret],
    [body, { 'webhook-id': 'evt_8_abc' }, secret],
    [body, { 'webhook-timestamp': String(Math.floor(NOW / 1000) - 1) }, secret],
    [body, {}, makeSecret()],
  ]
  for (const [given, change, by] of refused) {
    assert.throws(() => new Webhook(by).verify(given, { ...headers, ...change }))
  }
})

test('an old signature is refused by the published library', async () => {
  const secret = makeSecret()
  const headers = await sign(keysOf(secret), 'evt_7_abc', NOW - 3_600_000, [Buffer.from('{}')])
  assert.throws(() => new Webhook(secret).verify('{}', { ...headers }), /too old/i)
})

test('during a rotation each of the two secrets verifies', async () => {
  const [first, second] = [makeSecret(), makeSecret()]
  const headers = await sign(keysOf(first, second), 'evt_7_abc', NOW, [Buffer.from('{}')])
  assert.equal(headers['webhook-signature'].split(' ').length, 2)
  for (const secret of [first, second]) new Webhook(secret).verify('{}', { ...headers })
})

test('a large body in several parts is signed like one', async () => {
  const secret = makeSecret()
  const parts = [Buffer.from('"'), Buffer.alloc(300_000, 'x'), Buffer.from('"')]
  const headers = await sign(keysOf(secret), 'evt_7_abc', NOW, parts)
  assert.equal(new Webhook(secret).verify(Buffer.concat(parts), { ...headers }), 'x'.repeat(300_000))
})

test('a secret has its prefix and 24 to 64 bytes in base64', () => {
  assert.equal(keyOfSecret(makeSecret())?.length, 32)
  const of = (bytes: number) => `whsec_${Buffer.alloc(bytes, 7).toString('base64')}`
  for (const secret of [of(24), of(64)]) assert.ok(keyOfSecret(secret))
  for (const secret of [of(23), of(65), of(32).slice(6), 'whsec_', 'whsec_***', `${of(24)} `]) {
    assert.equal(keyOfSecret(secret), null, secret)
  }
})
