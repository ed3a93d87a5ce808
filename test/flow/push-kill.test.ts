// Pushes under the hardest stop there is: SIGKILL in mid-delivery, again and again on one database. What the receiver saw is what counts:
// every event at least once, in the order of its conversation, each signed, a repetition under the same webhook-id.

import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { test } from 'node:test'
import { type Driver, drivers } from '../support/drivers.ts'
import { isSignedWith, type Received, startReceiver } from '../support/receiver.ts'
import { withStore } from '../support/journal.ts'
import { intray, startServer } from '../support/process.ts'
import { tempFolder } from '../support/temp.ts'
import { until } from '../support/until.ts'
import { idOf, item } from '../store/rows.ts'

const KILLS = 10
const CONVERSATIONS = 40
const EVENTS = 25

for (const driver of drivers) {
  test(`${driver.name}: a service that is killed ${KILLS} times in mid-delivery delivers everything, in order`, async (t) => {
    const env = await environment(driver)
    const receiver = await startReceiver(t)
    const secret = await setEndpoint(env, receiver.url)
    const conversations = await storeEvents(env)

    let server = await startServer(t, env)
    const caught: number[] = []
    for (let kill = 0; kill < KILLS; kill++) {
      // Requests are held back, so that the kill meets some that the receiver has and the service has no answer to.
      const held: (() => void)[] = []
      receiver.respond = (one, res) => {
        if (one.n % 3 === 0 && held.length < 4) held.push(() => res.end())
        else res.end()
      }
      const before = receiver.received.length
      await until('requests are under way', () => held.length > 0 && receiver.received.length > before + 20)
      server.child.kill('SIGKILL')
      await server.exited
      caught.push(held.length)
      for (const answer of held) answer()
      server = await startServer(t, env)
    }
    receiver.respond = (_one, res) => void res.end()
    const total = CONVERSATIONS * EVENTS
    const seen = () => new Set(receiver.received.map(({ eventId }) => eventId)).size
    await until('every event arrived', () => seen() === total)

    const { received } = receiver
    assert.ok(
      caught.every((count) => count > 0),
      `each kill met requests under way: ${caught.join(', ')}`,
    )
    t.diagnostic(`${KILLS} kills met ${caught.join(' ')} requests; ${received.length} requests for ${total} events`)
    assert.ok(received.length > total, 'some came twice: the kills did meet deliveries')
    assert.deepEqual(unsigned(received, secret), [])
    assert.deepEqual(outOfOrder(received, conversations), [])
    assert.equal(new Set(received.map(({ id }) => id)).size, total, 'a repetition has the same webhook-id')
  })
}

test('the control: what the checks must notice is noticed', () => {
  const one = (eventId: number, n: number): Received => ({
    id: `evt_${eventId}_x`,
    eventId,
    attempt: 1,
    headers: {},
    body: Buffer.from('{}'),
    json: {},
    n,
  })
  const conversations = new Map([
    [1, 'a'],
    [2, 'a'],
    [3, 'a'],
  ])
  const order = (...ids: number[]) => outOfOrder(ids.map(one), conversations)
  assert.deepEqual(order(1, 2, 3), [])
  assert.deepEqual(order(1, 2, 1, 2, 3), [], 'a repetition')
  assert.deepEqual(order(1, 3, 2), [3, 2])
  assert.deepEqual(order(2, 1, 3), [2, 1])
  assert.deepEqual(unsigned([one(1, 0)], `whsec_${randomBytes(32).toString('base64')}`), [1])
})

async function environment(driver: Driver): Promise<Record<string, string>> {
  const databaseUrl =
    driver.name === 'sqlite' ? `sqlite:${join(tempFolder('push'), 'intray.db')}` : await driver.newDatabase()
  return {
    INTRAY_DATABASE_URL: databaseUrl,
    INTRAY_SECRETS_KEY: randomBytes(32).toString('base64'),
    INTRAY_PUSH_ALLOW: 'loopback',
    INTRAY_LOG_LEVEL: 'error',
  }
}

/** A kill costs an attempt of what was under way: this many may fail. */
const RULES = ['--max-attempts', '100', '--first-delay', '1s', '--max-delay', '1s']
const TENANT = ['--account', '7', '--company', '42']

async function setEndpoint(env: Record<string, string>, url: string): Promise<string> {
  const created = await intray(['init'], env)
  assert.equal(created.code, 0, created.stderr)
  const ruled = await intray(['inbox', 'subscription', 'default', ...TENANT, ...RULES], env)
  assert.equal(ruled.code, 0, ruled.stderr)
  const set = await intray(['endpoint', 'set', '--url', url, '--timeout', '1s', ...TENANT, '--json'], env)
  assert.equal(set.code, 0, set.stderr)
  return (JSON.parse(set.stdout.toString()) as { secret: string }).secret
}

/** The conversation of each event, by its id. */
function storeEvents({ INTRAY_DATABASE_URL: url = '' }: Record<string, string>): Promise<ReadonlyMap<number, string>> {
  return withStore(url, async (store) => {
    const conversations = new Map<number, string>()
    for (let n = 0; n < EVENTS; n++) {
      const channels = Array.from({ length: CONVERSATIONS }, (_, c) => `c${c}`)
      const outcomes = await store.journal.append(channels.map((channelRef) => item({ ...OF, channelRef })))
      for (const [c, outcome] of outcomes.entries()) conversations.set(idOf(outcome), channels[c]!)
    }
    return conversations
  })
}

const OF = { accountId: 7, companyId: 42 }

/** Events whose first request came before that of an earlier event of their conversation. */
function outOfOrder(received: readonly Received[], conversations: ReadonlyMap<number, string>): number[] {
  const seen = new Set<number>()
  const last = new Map<string, number>()
  const wrong: number[] = []
  const expected = Map.groupBy(conversations.keys(), (id) => conversations.get(id)!)
  for (const { eventId } of received) {
    if (seen.has(eventId)) continue
    seen.add(eventId)
    const conversation = conversations.get(eventId)!
    const at = last.get(conversation) ?? 0
    if (expected.get(conversation)!.toSorted((a, b) => a - b)[at] !== eventId) wrong.push(eventId)
    last.set(conversation, at + 1)
  }
  return wrong
}

function unsigned(received: readonly Received[], secret: string): number[] {
  return received.filter((one) => !isSignedWith(secret, one)).map(({ eventId }) => eventId)
}
