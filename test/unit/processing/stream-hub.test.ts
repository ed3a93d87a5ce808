// The hub against a journal in memory that moves as it likes: whatever fills, drains, fails and comes in between, a reader
// gets what is its own, once and in order. And what it costs: who is read for, and how often.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { FollowedEvent } from '../../../src/model/followed-event.ts'
import { StreamHub, type StreamHandle } from '../../../src/processing/stream-hub.ts'
import type { Follower } from '../../../src/store/contract/follow.ts'
import { drawSeed, type Random, random } from '../../store/seed.ts'
import { until } from '../../support/until.ts'

const HEARTBEAT = 'beat'

/** Rows by id; only those up to `indexed` can be read. */
class Journal {
  readonly rows: { readonly id: number; readonly companyId: number }[] = []
  readonly reads: number[] = []
  /** Tenants that are read for now, and how many it were at once. */
  readonly #reading: number[] = []
  mostAtOnce = 0
  mostOfATenant = 0
  indexed = 0
  failures = 0

  add(companyId: number): void {
    this.rows.push({ id: this.rows.length + 1, companyId })
  }

  idsOf(companyId: number, after = 0): number[] {
    return this.rows.filter((row) => row.companyId === companyId && row.id > after).map(({ id }) => id)
  }

  async #read(companyId: number): Promise<void> {
    this.#reading.push(companyId)
    this.mostAtOnce = Math.max(this.mostAtOnce, this.#reading.length)
    this.mostOfATenant = Math.max(this.mostOfATenant, this.#reading.filter((one) => one === companyId).length)
    await nextTurn()
    this.#reading.splice(this.#reading.indexOf(companyId), 1)
  }

  follower(): Follower {
    return {
      head: async () => ({ newest: this.rows.length, indexed: this.indexed }),
      after: async ({ companyId }, afterId, limit) => {
        this.reads.push(companyId)
        await this.#read(companyId)
        if (this.failures > 0) {
          this.failures -= 1
          throw new Error('away')
        }
        const found = this.idsOf(companyId, afterId).filter((id) => id <= this.indexed)
        const events = found.slice(0, limit).map((id) => ({ id, kind: 'event' }) as FollowedEvent)
        const through = events.length === limit ? events.at(-1)!.id : this.indexed
        return { events, through: Math.max(afterId, through) }
      },
      tenantsBetween: async (afterId, throughId) => {
        await nextTurn()
        const found = new Set(this.rows.slice(afterId, throughId).map(({ companyId }) => companyId))
        return Array.from(found, (companyId) => ({ accountId: 1, companyId }))
      },
    }
  }
}

function newHub(journal: Journal, maxStreams = 100, heartbeatMs = 100, drainTimeoutMs = 60_000): StreamHub {
  return new StreamHub({
    follower: journal.follower(),
    // So long that a page takes several writes, and is more than is kept for a reader that is full.
    render: ({ id }) => String(id).padEnd(2000),
    maxStreams,
    tenantShare: 100,
    heartbeat: HEARTBEAT,
    heartbeatMs,
    drainTimeoutMs,
    pollEveryMs: null,
    revocation: () => null,
    onTrouble: () => {},
  })
}

class Reader {
  readonly companyId: number
  readonly start: number
  readonly ids: number[] = []
  readonly #place: StreamHandle
  isFull = false
  ended: string | null = null
  /** Each write fills it, until it is told otherwise. */
  fills = false

  private constructor(companyId: number, place: StreamHandle) {
    this.companyId = companyId
    this.start = place.start
    this.#place = place
    place.begin({
      write: (text) => {
        assert.ok(!this.isFull, 'written to while full')
        if (text !== HEARTBEAT) this.ids.push(...text.trim().split(/ +/).map(Number))
        this.isFull = this.fills
        return !this.isFull
      },
      end: (reason) => {
        this.ended = reason
      },
    })
  }

  static async open(hub: StreamHub, companyId: number, after: number | null): Promise<Reader> {
    const place = await hub.enter({ accountId: 1, companyId, keyId: 'k', after })
    assert.ok('start' in place)
    return new Reader(companyId, place)
  }

  drain(): void {
    if (!this.isFull) return
    this.isFull = false
    this.#place.drained()
  }

  leave(): void {
    this.#place.leave()
  }
}

/** One step of a history: something comes in, is indexed, fails, fills, drains, comes or goes. */
async function step(journal: Journal, hub: StreamHub, readers: Reader[], draw: Random): Promise<void> {
  const reader = readers.length > 0 ? draw.pick(readers) : null
  switch (draw.below(9)) {
    case 0:
    case 1:
      for (let n = draw.below(300); n >= 0; n--) journal.add(draw.below(8))
      break
    case 2:
    case 3:
      journal.indexed += draw.below(journal.rows.length - journal.indexed + 1)
      hub.wake(journal.indexed)
      break
    case 4:
      journal.failures = draw.below(3)
      break
    case 5:
      if (reader) reader.fills = !reader.fills
      break
    case 6:
      reader?.drain()
      break
    case 7:
      readers.push(await Reader.open(hub, draw.below(8), draw.pick([null, 0, draw.below(journal.rows.length + 1)])))
      break
    default:
      await nextTurn()
  }
}

test('100 random histories: every reader gets its own, once and in order', async (t) => {
  const draw = random(drawSeed(t))
  let told = 0
  for (let history = 0; history < 100; history++) {
    const journal = new Journal()
    const hub = newHub(journal)
    const readers: Reader[] = []
    for (let n = 0; n < 60; n++) await step(journal, hub, readers, draw)
    journal.failures = 0
    journal.add(draw.below(8))
    journal.indexed = journal.rows.length
    hub.wake(journal.indexed)
    for (const reader of readers) reader.fills = false
    for (const reader of readers) {
      const expected = journal.idsOf(reader.companyId, reader.start)
      await until('it has been told all', () => {
        for (const one of readers) one.drain()
        return reader.ids.length >= expected.length
      })
      assert.deepEqual(reader.ids, expected)
      told += expected.length
    }
    await hub.stop()
  }
  t.diagnostic(`${told} events told`)
  assert.ok(told > 10_000)
})

test('only for tenants that got something is anything read, and once for all of their streams', async () => {
  const journal = new Journal()
  const hub = newHub(journal)
  for (let companyId = 0; companyId < 20; companyId++) {
    for (let n = 0; n < 5; n++) await Reader.open(hub, companyId, null)
  }
  assert.deepEqual(journal.reads, [])
  for (const companyId of [3, 3, 7, 99]) journal.add(companyId)
  journal.indexed = 4
  hub.wake(4)
  await until('both were read for', () => journal.reads.length >= 2)
  await nextTurn()
  assert.deepEqual(
    journal.reads.toSorted((a, b) => a - b),
    [3, 7],
  )
  await hub.stop()
})

test('a stream waits for one page of another tenant, however many streams of it are behind', async () => {
  const journal = new Journal()
  const hub = newHub(journal)
  for (let n = 0; n < 1000; n++) journal.add(1)
  journal.add(2)
  journal.indexed = journal.rows.length
  const behind: Reader[] = []
  for (let n = 0; n < 50; n++) behind.push(await Reader.open(hub, 1, 0))
  const alone = await Reader.open(hub, 2, 0)
  await until('the tenant with one stream has its event', () => alone.ids.length === 1)
  assert.ok(journal.reads.indexOf(2) <= 1, `it was read for after ${journal.reads.indexOf(2)} pages`)
  await until('the others have theirs', () => behind.every(({ ids }) => ids.length === 1000))
  await hub.stop()
})

test('for each tenant one page is read at a time, and for several tenants beside each other', async () => {
  const journal = new Journal()
  const hub = newHub(journal)
  for (let n = 0; n < 2000; n++) journal.add(n % 5)
  journal.indexed = journal.rows.length
  const behind: Reader[] = []
  for (let n = 0; n < 50; n++) behind.push(await Reader.open(hub, n % 5, 0))
  await until('all have their events', () => behind.every(({ ids }) => ids.length === 400))
  assert.deepEqual([journal.mostOfATenant, journal.mostAtOnce], [1, 4])
  await hub.stop()
})

test('a reader is not slow because this process stood still, and is when it takes nothing', async () => {
  const journal = new Journal()
  const hub = newHub(journal, 1, 10, 100)
  const reader = await Reader.open(hub, 1, null)
  reader.fills = true
  journal.add(1)
  journal.indexed = 1
  hub.wake(1)
  await until('it is full', () => reader.isFull)
  for (const began = performance.now(); performance.now() - began < 300; );
  // The hub's timer is due before this one.
  await new Promise((resolve) => setTimeout(resolve, 1))
  assert.equal(reader.ended, null)
  await until('it is cut off', () => reader.ended === 'slow_reader')
  await hub.stop()
})

test('a place is given back once, whoever ends the stream', async () => {
  const journal = new Journal()
  const hub = newHub(journal, 2)
  const first = await Reader.open(hub, 1, null)
  const second = await Reader.open(hub, 1, null)
  first.leave()
  first.leave()
  const third = await Reader.open(hub, 1, null)
  const refused = await hub.enter({ accountId: 1, companyId: 1, keyId: 'k', after: null })
  assert.equal('code' in refused && refused.code, 'overloaded')
  journal.add(1)
  journal.indexed = 1
  hub.wake(1)
  await until('the others are told', () => second.ids.length === 1 && third.ids.length === 1)
  assert.deepEqual(first.ids, [])
  await hub.stop()
  const late = await hub.enter({ accountId: 1, companyId: 1, keyId: 'k', after: null })
  assert.equal('code' in late && late.code, 'shutting_down')
})
