import assert from 'node:assert/strict'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { BodyMemory } from '../../../../src/http/wire/body-memory.ts'
import { gunzipBody, type GunzipOptions, newGunzipSlots } from '../../../../src/http/wire/gunzip.ts'

const MIB = 1_048_576
const options = (given: Partial<GunzipOptions> = {}): GunzipOptions => ({
  maxBytes: MIB,
  holder: '1/1',
  reservation: null,
  ...given,
})
const errorOf = (result: Buffer | { readonly code: string }) => (Buffer.isBuffer(result) ? 'none' : result.code)

test('what is compressed comes out, however well it was compressed', async () => {
  for (const body of [Buffer.from('{}'), Buffer.alloc(MIB, '[')]) {
    const result = await gunzipBody(gzipSync(body), options())
    assert.ok(Buffer.isBuffer(result) && result.equals(body))
  }
})

test('output over the limit is refused as too large, before it is there', async () => {
  const memory = new BodyMemory(1000 * MIB)
  const reservation = memory.newReservation('a')
  const bomb = gzipSync(Buffer.alloc(64 * MIB))
  const result = await gunzipBody(bomb, options({ reservation }))
  assert.equal(errorOf(result), 'payload_too_large')
  assert.ok(memory.bytes < 2 * MIB, `${memory.bytes} bytes`)
})

test('damaged, cut and empty input is not gzip', async () => {
  const good = gzipSync('{"a":1}')
  for (const bytes of [Buffer.from('{}'), good.subarray(0, 12), Buffer.alloc(0)]) {
    assert.equal(errorOf(await gunzipBody(bytes, options())), 'invalid_json')
  }
})

test('the output of all bodies together is bounded, and control: without a bound all of it comes out', async () => {
  const body = gzipSync(Buffer.alloc(MIB, '['))
  const unpackAll = async (memory: BodyMemory) => {
    const slots = newGunzipSlots(20)
    let most = 0
    const results = await Promise.all(
      Array.from({ length: 20 }, (_, n) => {
        const reservation = memory.newReservation('a')
        const done = gunzipBody(body, options({ reservation, holder: String(n) }), slots)
        return done.finally(() => {
          most = Math.max(most, memory.bytes)
          reservation.release()
        })
      }),
    )
    return { most, refused: results.filter((one) => errorOf(one) === 'overloaded').length }
  }
  const bounded = await unpackAll(new BodyMemory(4 * MIB))
  assert.ok(bounded.most <= 4 * MIB && bounded.refused > 0, JSON.stringify(bounded))
  const unbounded = await unpackAll(new BodyMemory(1000 * MIB))
  assert.ok(unbounded.most > 4 * MIB && unbounded.refused === 0, JSON.stringify(unbounded))
})

test('holders take turns', async () => {
  const slots = newGunzipSlots(2)
  const body = gzipSync('{}')
  const order: string[] = []
  const one = async (holder: string) => {
    await gunzipBody(body, options({ holder }), slots)
    order.push(holder)
  }
  await Promise.all([...Array.from({ length: 30 }, () => one('busy')), one('quiet')])
  assert.ok(order.indexOf('quiet') < 8, `after ${order.indexOf('quiet')} of the other's`)
})
