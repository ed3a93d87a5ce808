// work() of the Python client: acknowledges what is done, releases what failed, extends leases in time, stops within its time.

import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { startTestApp } from '../../support/app.ts'
import { TestClock } from '../../support/clock.ts'
import { drivers } from '../../support/drivers.ts'
import { readerOf } from '../../support/inbox.ts'
import { missingPython } from '../../support/python.ts'
import { until } from '../../support/until.ts'
import { startProxy } from '../typescript/proxy.ts'
import { type PythonError, PythonKit } from './kit.ts'

const skip = missingPython()
const PATIENT = { connect_timeout: 60, request_timeout: 60 }
const MANY_TRIES = 10
const CONVERSATION = [{ channel_ref: 'c' }, { channel_ref: 'c' }, { channel_ref: 'c' }]

async function newSubject(t: TestContext, messages: readonly object[], clock?: TestClock) {
  const app = await startTestApp(t, drivers[0]!, clock ? { clock } : {})
  const proxy = await startProxy(t, app.url)
  const reader = await readerOf(app)
  const kit = new PythonKit(t, { url: proxy.url, token: reader.token, outbox: 'none', ...PATIENT })
  for (const message of messages) await app.post(message)
  const states = async () => {
    const { events } = (await reader.json('/v1/inbox/events')) as { events: { id: number; state: string }[] }
    return events
      .toReversed()
      .map(({ id, state }) => `${id} ${state}`)
      .join(', ')
  }
  return { app, proxy, reader, kit, states }
}

test('Python handles the events of a conversation one after another, conversations side by side', {
  skip,
}, async (t) => {
  const messages = Array.from({ length: 20 }, (_, n) => ({ channel_ref: `c${n % 5}` }))
  const { kit, states } = await newSubject(t, messages)
  const running = new Set<number | null>()
  let most = 0
  const seen: number[] = []
  kit.handler = async ({ id, conversation_id, payload }) => {
    assert.ok(!running.has(conversation_id), 'one at a time')
    running.add(conversation_id)
    most = Math.max(most, running.size)
    await new Promise((resolve) => setImmediate(resolve))
    // So that all that are allowed are there at once, the first time.
    if (seen.length === 0) await until('others run beside it', () => most === 3)
    running.delete(conversation_id)
    assert.deepEqual(payload, messages[id - 1])
    if (seen.push(id) === messages.length) kit.stop('s')
  }
  await kit.call('work', { concurrency: 3, stop: 's' })
  assert.equal(most, 3)
  for (let c = 0; c < 5; c++) {
    const own = seen.filter((id) => (id - 1) % 5 === c)
    assert.deepEqual(
      own,
      own.toSorted((a, b) => a - b),
    )
  }
  assert.equal((await states()).match(/done/g)?.length, 20)
})

test('a Python handler that raises: its event is released with the error, those behind it wait for it', {
  skip,
}, async (t) => {
  const { kit, reader } = await newSubject(t, CONVERSATION)
  const seen: number[] = []
  kit.handler = ({ id }) => {
    seen.push(id)
    if (seen.length === 1) throw new Error(`the CRM is down \0 ${'🙂'.repeat(600)}`)
    if (id === 3) kit.stop('s')
  }
  await kit.call('work', { stop: 's' })
  assert.deepEqual(seen, [1, 1, 2, 3])
  assert.match(JSON.stringify(await reader.jsonNow('/v1/inbox/events/1/history')), /RuntimeError: the CRM is down/)
  assert.deepEqual(kit.problems, [])
})

test('a long Python handler keeps its lease', { skip }, async (t) => {
  for (let tries = 1; ; tries += 1) {
    const { proxy, kit, states } = await newSubject(t, [{}])
    const extended = () => proxy.arrived.filter(({ path }) => path.endsWith('/extend')).length
    const seen: number[] = []
    kit.handler = async ({ id }) => {
      seen.push(id)
      await until('it was extended for several leases', () => extended() >= 4 || seen.length > 1)
      kit.stop('s')
    }
    await kit.call('work', { lease_s: 2, stop: 's' })
    // A machine that stands still for a lease loses it, but not every time.
    if (kit.problems.length > 0 && tries < MANY_TRIES) continue
    assert.deepEqual(kit.problems, [])
    assert.deepEqual(seen, [1])
    assert.equal(await states(), '1 done')
    return
  }
})

test('a lease that is lost: Python acknowledges nothing, reports it, and tells the handler', { skip }, async (t) => {
  const clock = new TestClock()
  const { kit, states } = await newSubject(t, CONVERSATION, clock)
  kit.handler = async ({ id }) => {
    clock.advance(10_000)
    await until('its context is over', () => kit.over.has(id))
    kit.stop('s')
    // The stop is read before the answer: with more room it would claim the events that it lost.
  }
  await kit.call('work', { lease_s: 3, concurrency: 1, stop: 's' })
  assert.ok(kit.problems.length > 0)
  assert.ok(kit.problems.every(({ shape }) => shape.name === 'LeaseLost'))
  assert.equal(kit.problems[0]!.shape.event_id, 1)
  assert.match(await states(), /^1 pending, 2 pending, 3 pending$/)
})

test('a stop lets the Python handler finish and gives the rest back', { skip }, async (t) => {
  const { kit, states } = await newSubject(t, CONVERSATION)
  const seen: number[] = []
  kit.handler = ({ id }) => {
    seen.push(id)
    return new Promise<void>((resolve) => (goOn = resolve))
  }
  let goOn = (): void => {}
  const work = kit.call('work', { stop: 's', stop_s: 600 })
  await until('it is at work', () => seen.length === 1)
  kit.stop('s')
  // No second answer before the stop has begun: Python reads its lines in order.
  goOn()
  await work
  assert.deepEqual(seen, [1])
  assert.equal(await states(), '1 done, 2 pending, 3 pending')
})

test('a stop whose time is over gives back what a Python handler does not let go, for others to have at once', {
  skip,
}, async (t) => {
  const { kit, states } = await newSubject(t, CONVERSATION)
  const seen: number[] = []
  let isBlocked = true
  kit.handler = ({ id }) => {
    seen.push(id)
    if (isBlocked) return new Promise(() => {})
    if (id === 3) kit.stop('next')
  }
  const work = kit.call('work', { stop: 's', stop_s: 0.001 })
  await until('it is at work', () => seen.length === 1)
  kit.stop('s')
  await work
  assert.equal(await states(), '1 pending, 2 pending, 3 pending')
  isBlocked = false
  await kit.call('work', { stop: 'next' })
  assert.deepEqual(seen, [1, 1, 2, 3])
  assert.deepEqual(kit.problems, [])
})

test('close() stops the work of Python, and a claim that waits leaves nothing leased', { skip }, async (t) => {
  const { app, proxy, kit, states } = await newSubject(t, [])
  kit.handler = () => {}
  const work = kit.call('work', { stop_s: 600 })
  await until('it waits for events', () => proxy.arrived.length > 0)
  const closed = kit.call('close', { timeout: 600 })
  await app.post({})
  await Promise.all([closed, work])
  assert.match(await states(), /^1 (pending|done)$/)
})

test('while the service is away Python tries claims and acknowledgements again', { skip }, async (t) => {
  const { kit, proxy, states } = await newSubject(t, [{}])
  const failed = new Set<string>()
  proxy.fate = ({ path }) => {
    if (failed.has(path)) return 'pass'
    failed.add(path)
    return { status: 503 }
  }
  let handled = 0
  kit.handler = () => void (handled += 1)
  const work = kit.call('work', { stop: 's' })
  await until('it is done', async () => (await states()) === '1 done')
  kit.stop('s')
  await work
  assert.equal(handled, 1)
  assert.deepEqual([...failed].sort(), ['/v1/inbox/claims', '/v1/inbox/claims/ack'])
})

test('Python says once that a token does not work; an unknown subscription ends the work', { skip }, async (t) => {
  const { app, kit } = await newSubject(t, [])
  const sending = new PythonKit(t, { url: app.url, token: app.token, outbox: 'none' })
  const work = sending.call('work', { stop: 's' })
  await until('it is said', () => sending.problems.length === 1)
  sending.stop('s')
  await work
  assert.deepEqual([sending.problems[0]!.shape.name, sending.problems[0]!.shape.needs_fix], ['Unavailable', true])
  await assert.rejects(kit.call('work', { subscription: 'nobody' }), ({ shape }: PythonError) => {
    assert.deepEqual([shape.name, shape.code], ['Refused', 'not_found'])
    return true
  })
})
