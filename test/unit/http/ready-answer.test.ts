import assert from 'node:assert/strict'
import { test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { ReadyAnswer } from '../../../src/http/ready-answer.ts'

const TEXT = Buffer.from('a text that compresses. '.repeat(100))
const HEADERS = { 'Content-Type': 'text/plain', 'Cache-Control': 'no-cache', Vary: 'Accept-Encoding' }
const gzip = { headers: { 'accept-encoding': 'gzip' } }
const plain = { headers: {} }

test('every request gets the same bytes, made once, as they are or compressed', async () => {
  const ready = new ReadyAnswer(HEADERS, TEXT)
  const [first, second] = [await ready.answer(plain), await ready.answer(plain)]
  assert.equal(first.body, TEXT)
  assert.equal(second.body, first.body)
  const compressed = await Promise.all([ready.answer(gzip), ready.answer(gzip)])
  assert.equal(compressed[0], compressed[1])
  assert.equal(await ready.answer(gzip), compressed[0])
  assert.deepEqual(gunzipSync(compressed[0].body as Buffer), TEXT)
  assert.equal(compressed[0].headers['Content-Encoding'], 'gzip')
})

test('a client that names the ETag gets 304 without bytes; another ETag gets them', async () => {
  const ready = new ReadyAnswer(HEADERS, TEXT)
  const { ETag = '' } = (await ready.answer(plain)).headers
  for (const known of [ETag, `"x", ${ETag}`]) {
    const answer = await ready.answer({ headers: { 'if-none-match': known } })
    assert.deepEqual([answer.status, answer.body.length, answer.headers.ETag], [304, 0, ETag])
    assert.equal(answer.headers['Cache-Control'], 'no-cache')
  }
  const other = await new ReadyAnswer(HEADERS, Buffer.from('other')).answer({ headers: { 'if-none-match': ETag } })
  assert.equal(other.status, 200)
})

test('short answers, and those without Vary, are not compressed', async () => {
  for (const ready of [new ReadyAnswer(HEADERS, TEXT.subarray(0, 100)), new ReadyAnswer({}, TEXT)]) {
    assert.equal((await ready.answer(gzip)).headers['Content-Encoding'], undefined)
  }
})
