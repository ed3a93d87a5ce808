import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isEmbeddable, payloadFields } from '../../../src/model/payload.ts'

const KIB = 1024

function countedTurns() {
  const counted = { turns: 0, turn: async () => void counted.turns++ }
  return counted
}

const nested = (bytes: number) => Buffer.from(`{"a":${'['.repeat(bytes / 2)}${']'.repeat(bytes / 2)}}`)

test('a payload is checked 64 KiB a turn, a small one at once', async () => {
  const large = countedTurns()
  assert.equal(await isEmbeddable(nested(1024 * KIB), large.turn), true)
  assert.equal(large.turns, 16)
  const small = countedTurns()
  assert.equal(await isEmbeddable(nested(32 * KIB), small.turn), true)
  assert.equal(small.turns, 0)
})

for (const { text, stands, embedded } of [
  { text: '{"a":1e400,"a":2}', stands: true, embedded: '"payload":{"a":1e400,"a":2}' },
  { text: '\uFEFF{"a":1}', stands: false, embedded: '"payload":{"a":1}' },
  { text: '{"a":1', stands: false, embedded: '"payload":null,"payload_base64":"eyJhIjox"' },
  { text: '', stands: false, embedded: '"payload":null,"payload_base64":""' },
]) {
  test(`in a document, ${JSON.stringify(text)} is ${embedded}`, async () => {
    const { turn } = countedTurns()
    assert.equal(await isEmbeddable(Buffer.from(text), turn), stands)
    assert.equal(Buffer.from(await payloadFields(Buffer.from(text), turn)).toString(), embedded)
  })
}

test('bytes that are not UTF-8 do not stand in a document', async () => {
  const { turn } = countedTurns()
  const bytes = Buffer.from([0x22, 0xff, 0x22])
  assert.equal(await isEmbeddable(bytes, turn), false)
  assert.match(Buffer.from(await payloadFields(bytes, turn)).toString(), /^"payload":null,"payload_base64":"Iv8i"$/)
})
