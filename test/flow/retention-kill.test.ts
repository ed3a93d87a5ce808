// Retention under SIGKILL, again and again on one database, while messages come in and are claimed.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { NO_RETENTION } from '../../src/model/retention.ts'
import { newUuid } from '../../src/runtime/id.ts'
import type { Store } from '../../src/store/contract/store.ts'
import { openStore } from '../../src/store/open.ts'
import { backDoorOf } from '../store/back-door.ts'
import { idOf, item, TENANT } from '../store/rows.ts'
import { drawSeed, random } from '../store/seed.ts'
import { indexAll } from '../store/suite.ts'
import { send, type TestAnswer } from '../support/client.ts'
import { drivers } from '../support/drivers.ts'
import { conversationCounts, createToken } from '../support/journal.ts'
import { type ServerProcess, startServer } from '../support/process.ts'
import { until, within } from '../support/until.ts'

const KILLS = 4
const OLD = 1000
/** Old messages that were processed before the first server starts. */
const PROCESSED = 600
const CHANNELS = 25
const SENT_PER_LIFE = 60
const CLAIMS_PER_LIFE = 500
const OLD_AT = Date.now() - 10 * 86_400_000

const bodyOf = (n: number, text = 'old') => ({ source_ref: `old:${n}`, channel_ref: `c:${n % CHANNELS}`, text })

/** Messages of ten days ago, every tenth of them with a revision. Returns their ids. */
async function fill(store: Store): Promise<number[]> {
  const ids: number[] = []
  for (let from = 0; from < OLD; from += 100) {
    const fields = Array.from({ length: 100 }, (_, k) => {
      const n = from + k
      const sourceRef = `old:${n}`
      return { sourceRef, channelRef: `c:${n % CHANNELS}`, receivedAt: OLD_AT + n, body: bodyOf(n) }
    })
    ids.push(...(await store.journal.append(fields.map(item))).map(idOf))
    const revised = fields
      .filter((_, k) => k % 10 === 0)
      .map((one) => item({ ...one, body: { ...one.body, text: 'new' } }))
    await store.journal.append(revised)
  }
  await indexAll(store)
  const queue = { tenant: TENANT, subscription: 'default' }
  for (let done = 0; done < PROCESSED; ) {
    const now = Date.now()
    const lease = { leaseId: newUuid(), leaseExpiresAt: now + 60_000, keyId: 'PPPPPPPPPP', now }
    const rest = { limit: 100, maxBytes: 1 << 24, ordered: false, channelRef: null, maxAttempts: 3 }
    const claimed = (await store.processing.claim({ ...queue, ...lease, ...rest }))!
    assert.ok(claimed.length > 0)
    const items = claimed.map(({ event, leaseId }) => ({ id: event.id, leaseId }))
    await store.processing.ack({ ...queue, items, now })
    done += items.length
  }
  await store.retention.setRule({ ...NO_RETENTION, tenant: TENANT, events: 5 })
  return ids
}

const isCutOff = (error: unknown): boolean => /ECONN|socket hang up|EPIPE|aborted/.test(String(error))

/** A sender and a processor, each with one request at a time. They end when the server does. */
class Clients {
  readonly acknowledged = new Map<string, number>()
  readonly claimed: number[] = []
  readonly answers: TestAnswer[] = []
  #sent = 0

  async send(port: number, token: string): Promise<void> {
    for (let n = 0; n < SENT_PER_LIFE; n++) {
      const ref = `young:${this.#sent++}`
      const body = JSON.stringify({ source_ref: ref, channel_ref: `c:${this.#sent % CHANNELS}` })
      const answer = await this.#post(port, token, '/v1/inbox/events', body)
      if (!answer) return
      this.acknowledged.set(ref, Number(answer.json?.id))
    }
  }

  /** Ends as well when nothing is left to claim. */
  async process(port: number, token: string): Promise<void> {
    for (let n = 0; n < CLAIMS_PER_LIFE; n++) {
      const claim = JSON.stringify({ limit: 20, lease_s: 5, wait_s: 1, ordered: false })
      const claimed = await this.#post(port, token, '/v1/inbox/claims', claim)
      if (!claimed) return
      const events = claimed.json!.events as { readonly id: number; readonly lease_id: string }[]
      if (events.length === 0) return
      this.claimed.push(...events.map(({ id }) => id))
      const items = events.map(({ id, lease_id }) => ({ id, lease_id }))
      if (!(await this.#post(port, token, '/v1/inbox/claims/ack', JSON.stringify({ events: items })))) return
    }
  }

  /** Null: the server was killed. */
  async #post(port: number, token: string, path: string, body: string): Promise<TestAnswer | null> {
    const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' }
    try {
      const answer = await send(port, { method: 'POST', path, headers, body })
      this.answers.push(answer)
      return answer
    } catch (error) {
      if (!isCutOff(error)) throw error
      return null
    }
  }
}

for (const driver of drivers) {
  test(`${driver.name}: retention that is killed ends when it is started again, and nothing that it leaves is lost or wrong`, async (t) => {
    const dice = random(drawSeed(t))
    const url = await driver.readyDatabase()
    const door = backDoorOf(driver)
    const store = await openStore(url, { role: 'tool' })
    const ids = await fill(store)
    const token = await createToken(store)
    const processor = await createToken(store, { scope: 'processor' })
    await store.close()
    const clients = new Clients()
    const env = { INTRAY_DATABASE_URL: url, INTRAY_RETENTION_EVERY: '1s', INTRAY_MAX_ATTEMPTS: '100' }
    const all = await door.countJournal(url)
    assert.equal(all.events, OLD + OLD / 10)
    /** Rows that are gone, of the old ones: the young ones never go. */
    const left = async () => (await door.countJournal(url)).events - clients.acknowledged.size
    let inTheMiddle = 0

    for (let kill = 0; kill < KILLS; kill++) {
      const server = await startServer(t, env)
      const before = await left()
      const goal = Math.max(1, before - 50 - dice.below(200))
      const working = Promise.all([clients.send(server.port, token), clients.process(server.port, processor)])
      await until('some of it to be deleted', async () => (await left()) <= goal)
      server.child.kill('SIGKILL')
      await within('the killed server to be gone', server.exited)
      await within('its clients to notice', working)
      const after = await left()
      if (after > 0 && after < before) inTheMiddle += 1
    }
    t.diagnostic(`${inTheMiddle} of ${KILLS} kills while some was deleted and some was not`)
    assert.ok(inTheMiddle > 0, 'no kill fell into the work of retention')

    const last: ServerProcess = await startServer(t, env)
    await clients.send(last.port, token)
    // Leases of killed processors expire.
    await until('everything to be processed and everything old to be gone', async () => {
      await clients.process(last.port, processor)
      return withOpen(url, async ({ events }) => {
        for (const id of ids) if (await events.find(id)) return false
        return true
      })
    })
    const statuses = new Set(clients.answers.map(({ status }) => status))
    assert.deepEqual(Array.from(statuses), [200], 'no claim, ack or message was answered otherwise')
    assert.ok(clients.claimed.length >= clients.acknowledged.size + OLD - PROCESSED)

    const again = JSON.stringify(bodyOf(7))
    const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' }
    const resent = await send(last.port, { method: 'POST', path: '/v1/inbox/events', headers, body: again })
    assert.deepEqual(resent.json, { ok: true, id: ids[7], duplicate: true })
    last.child.kill('SIGTERM')
    assert.equal(await within('the last server to stop', last.exited), 0)

    await withOpen(url, async (opened) => {
      for (const id of clients.acknowledged.values()) assert.ok(await opened.events.find(id), `${id} was acknowledged`)
      await indexAll(opened)
      while (await opened.retention.followPurges());
      const { traffic: _, cursors: __, ...before } = await door.dumpIndex(url)
      assert.equal(before.event_index!.length, (await door.countJournal(url)).events)
      const { indexed, rows } = await conversationCounts(url)
      assert.deepEqual(indexed, rows)
      await opened.index.requestRebuild()
      await indexAll(opened)
      const { traffic: ___, cursors: ____, ...after } = await door.dumpIndex(url)
      assert.deepEqual(after, before, 'a rebuild finds the same index')
    })
    await door.deleteEvent(url, Array.from(clients.acknowledged.values())[0]!)
    const { indexed, rows } = await conversationCounts(url)
    assert.notDeepEqual(indexed, rows, 'the control: a row that is deleted by hand is found')
  })
}

async function withOpen<T>(url: string, use: (store: Store) => Promise<T>): Promise<T> {
  const store = await openStore(url, { role: 'tool' })
  try {
    return await use(store)
  } finally {
    await store.close()
  }
}
