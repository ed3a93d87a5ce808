// How often a step of the indexer and a page of a list wait for the server: each time is a turn of the event loop, however busy.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import { type TestContext, test } from 'node:test'
import { openStore } from '../../../src/store/open.ts'
import { newPostgresDatabase } from '../../support/postgres/databases.ts'
import { item, TENANT } from '../rows.ts'
import { stepOnce, stepWords } from '../suite.ts'

const TIMES = 5

/** A proxy in front of the server, and how often a client sent anything after an answer. */
async function countingProxy(t: TestContext, url: string) {
  const target = new URL(url)
  const { port, hostname } = target
  const counted = { trips: 0 }
  const proxy = createServer((client) => {
    const server = connect(Number(port), hostname)
    let isAnswered = true
    client.on('data', (bytes) => {
      if (isAnswered) counted.trips += 1
      isAnswered = false
      server.write(bytes)
    })
    server.on('data', (bytes) => {
      isAnswered = true
      client.write(bytes)
    })
    for (const [one, other] of [
      [client, server],
      [server, client],
    ] as const) {
      one.on('error', () => other.destroy()).on('close', () => other.destroy())
    }
  })
  await once(proxy.listen(0, '127.0.0.1'), 'listening')
  t.after(() => proxy.close())
  target.host = `127.0.0.1:${(proxy.address() as AddressInfo).port}`
  return { url: target.href, counted }
}

test('a step of the indexer and a page of a list wait for the server a few times', async (t) => {
  const { url, counted } = await countingProxy(t, await newPostgresDatabase())
  const store = await openStore(url, { role: 'tool' })
  t.after(() => store.close())
  /** The fewest of some runs: a step looks again while any transaction of the server is open. */
  const trips = async (work: () => Promise<unknown>): Promise<number> => {
    const found: number[] = []
    for (let n = 0; n < TIMES; n += 1) {
      await store.journal.append([item({ channelRef: 'a' }), item({ channelRef: 'b' })])
      const before = counted.trips
      await work()
      found.push(counted.trips - before)
    }
    return Math.min(...found)
  }
  const step = await trips(async () => assert.ok((await stepOnce(store)).indexed > 0))
  assert.ok(step <= 9, `${step} for a step`)
  await stepWords(store)
  const words = await trips(async () => {
    await stepOnce(store)
    assert.ok((await stepWords(store)).indexed > 0)
  })
  assert.ok(words - step <= 5, `${words - step} for a step of words`)
  const list = await trips(() => store.inbox.events(TENANT, {}, null, 10))
  assert.equal(list, 2)
  const twice = await trips(async () => {
    for (let n = 0; n < 2; n += 1) await store.inbox.events(TENANT, {}, null, 10)
  })
  assert.equal(twice, 4, 'control: those that follow each other are counted')
})
