// The connection that is shared: one for all who ask, until it breaks.

import assert from 'node:assert/strict'
import test, { type TestContext } from 'node:test'
import { parseAddress } from '../../../src/store/postgres/connection/address.ts'
import { Pool } from '../../../src/store/postgres/connection/pool.ts'
import { newPostgresDatabase } from '../../support/postgres/databases.ts'
import { startProxy, through } from '../../support/postgres/proxy.ts'
import { until } from '../../support/until.ts'

async function setUp(t: TestContext, poolSize = 2) {
  const url = await newPostgresDatabase()
  const proxy = await startProxy(Number(new URL(url).port), 'nothing')
  t.after(() => proxy.close())
  const pool = new Pool(parseAddress(`${through(proxy, url)}?pool_size=${poolSize}`))
  t.after(() => pool.close())
  return { pool, proxy }
}

test('those who ask at once, and those who ask later, share one', async (t) => {
  const { pool } = await setUp(t)
  const [first, second] = await Promise.all([pool.shared(), pool.shared()])
  assert.equal(first, second)
  assert.equal(await pool.shared(), first)
  const own = await pool.acquire()
  assert.notEqual(own, first)
  pool.release(own)
  assert.equal(await pool.acquire(), own)
})

test('when it broke, those who ask share another, and its place is free', async (t) => {
  const { pool } = await setUp(t)
  for (let n = 0; n < 5; n++) {
    const broken = await pool.shared()
    broken.destroy()
    const [first, second] = await Promise.all([pool.shared(), pool.shared()])
    assert.equal(first, second)
    assert.notEqual(first, broken)
    assert.deepEqual(await first!.query('SELECT 1 AS one'), [{ one: 1 }])
    // The second of two places: were one of the broken ones still counted, this would wait in vain.
    pool.release(await pool.acquire())
  }
})

test('when it broke and nobody asks for it, its place is free as well', async (t) => {
  const { pool } = await setUp(t)
  const shared = await pool.shared()
  const own = await pool.acquire()
  const waiting = pool.acquire()
  shared.destroy()
  assert.notEqual(await waiting, own)
})

test('while none can be had all are refused, and afterwards it is there again', async (t) => {
  const { pool, proxy } = await setUp(t)
  const lost = await pool.shared()
  proxy.refuse(true)
  await until('the loss is noticed', () => lost.isBroken)
  const asked = await Promise.allSettled([pool.shared(), pool.shared()])
  assert.deepEqual(
    asked.map(({ status }) => status),
    ['rejected', 'rejected'],
  )
  proxy.refuse(false)
  await until('it is back', () =>
    pool.shared().then(
      () => true,
      () => false,
    ),
  )
  assert.deepEqual(await (await pool.shared()).query('SELECT 1 AS one'), [{ one: 1 }])
})

test('a pool that is closed has closed it as well', async (t) => {
  const { pool } = await setUp(t)
  const shared = await pool.shared()
  await pool.close()
  assert.equal(shared.isBroken, true)
  await assert.rejects(pool.shared(), /closed/)
})

test('the look-up of a token goes over the shared connection while all others are in use; other statements wait', async (t) => {
  const { pool } = await setUp(t, 3)
  await pool.shared()
  const held = [await pool.acquire(), await pool.acquire()]
  let isServed = false
  const waiting = pool.use(async () => {
    isServed = true
  })
  assert.deepEqual(await pool.lookUp((connection) => connection.query('SELECT 1 AS one')), [{ one: 1 }])
  assert.equal(isServed, false, 'control: a connection of its own is not to be had')
  for (const one of held) pool.release(one)
  await waiting
})

test('a look-up takes a free connection if there is one', async (t) => {
  const { pool } = await setUp(t, 3)
  const shared = await pool.shared()
  await pool.lookUp(async (connection) => assert.notEqual(connection, shared))
})
