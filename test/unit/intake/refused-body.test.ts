import assert from 'node:assert/strict'
import { test } from 'node:test'
import { deflateSync, gzipSync } from 'node:zlib'
import { mintToken } from '../../../src/auth/token.ts'
import { keptBody } from '../../../src/intake/refused-body.ts'
import { REFUSAL_BODY_BYTES } from '../../../src/model/refusal.ts'

const { token } = mintToken()
const body = `{"token":"${token}"}`
const masked = body.replace(token, `itr_${'x'.repeat(token.length - 4)}`)

const kept = async (bytes: Uint8Array | string, encoding?: string) =>
  Buffer.from(await keptBody(Buffer.from(bytes), encoding)).toString()

test('plain and gzip bodies are kept as plain text with tokens masked, whatever the header says of them', async () => {
  for (const encoding of [undefined, '', 'identity', 'gzip', ' X-GZIP ']) {
    assert.equal(await kept(body, encoding), masked, `plain, ${encoding}`)
    assert.equal(await kept(gzipSync(body), encoding), masked, `gzip, ${encoding}`)
  }
})

test('of gzip that is cut off or damaged, what can be unpacked is kept', async () => {
  const packed = gzipSync(body)
  assert.equal(await kept(packed.subarray(0, -8)), masked, 'without its checksum')
  const damaged = Buffer.from(packed)
  damaged.fill(0, damaged.length - 8)
  assert.ok(['', masked].includes(await kept(damaged)), 'with a wrong checksum')
  assert.equal(await kept(packed.subarray(0, 5)), '')
})

test('much is unpacked no further than is kept', async () => {
  const bytes = await keptBody(gzipSync(Buffer.alloc(50_000_000, ' ')), 'gzip')
  assert.equal(bytes.length, REFUSAL_BODY_BYTES)
})

test('nothing is kept of gzip inside gzip, nor of another encoding', async () => {
  assert.equal(await kept(gzipSync(gzipSync(body)), 'gzip'), '')
  for (const encoding of ['br', 'deflate', 'zstd', 'gzip, gzip', token]) {
    assert.equal(await kept(deflateSync(body), encoding), '', encoding)
  }
})
