// work(): acknowledges what is done, releases what failed, extends leases in time, and stops within its time.

import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { Intray, LeaseLost, Unavailable, type WorkContext } from '../../../kits/typescript/src/intray.ts'
import { startTestApp, type TestApp } from '../../support/app.ts'
import { TestClock } from '../../support/clock.ts'
import { drivers } from '../../support/drivers.ts'
import { readerOf } from '../../support/inbox.ts'
import { until, within } from '../../support/until.ts'
import { type FaultyProxy, startProxy } from './proxy.ts'

interface Subject {
  readonly app: TestApp
  readonly proxy: FaultyProxy
  readonly intray: Intray
  readonly problems: Error[]
  states(): Promise<string>
}

async function newSubject(t: TestContext, messages: readonly object[], clock?: TestClock): Promise<Subject> {
  const app = await startTestApp(t, drivers[0]!, clock ? { clock } : {})
  const proxy = await startProxy(t, app.url)
  const problems: Error[] = []
  const reader = await readerOf(app)
  const onProblem = (error: Error): void => void problems.push(error)
  const intray = new Intray({ url: proxy.url, token: reader.token, outbox: 'none', onProblem })
  t.after(() => intray.close({ timeoutMs: 0 }))
  for (const message of messages) await app.post(message)
  const states = async () => {
    const { events } = (await reader.json('/v1/inbox/events')) as { events: { id: number; state: string }[] }
    return events
      .toReversed()
      .map(({ id, state }) => `${id} ${state}`)
      .join(', ')
  }
  return { app, proxy, intray, problems, states }
}

/** A handler that stands still until it is let go. */
class Gate {
  readonly entered: number[] = []
  readonly #open = Promise.withResolvers<void>()
  context: WorkContext | null = null

  handler = async (event: { id: number }, context: WorkContext): Promise<void> => {
    this.entered.push(event.id)
    this.context = context
    await this.#open.promise
  }

  open(): void {
    this.#open.resolve()
  }
}

const unexpected = ({ id }: { id: number }): never => assert.fail(`event ${id} was not expected`)

const MANY_TRIES = 10
const CONVERSATION = [{ channel_ref: 'c' }, { channel_ref: 'c' }, { channel_ref: 'c' }]

test('the events of a conversation one after another; conversations side by side, as many as allowed', async (t) => {
  const messages = Array.from({ length: 30 }, (_, n) => ({ channel_ref: `c${n % 5}` }))
  const { intray, states } = await newSubject(t, messages)
  const running = new Map<number | null, number>()
  let most = 0
  const stop = new AbortController()
  const seen: number[] = []
  const work = intray.work(
    async ({ id, conversation_id, payload }) => {
      assert.ok(!running.has(conversation_id), 'one at a time')
      running.set(conversation_id, id)
      most = Math.max(most, running.size)
      await new Promise((resolve) => setImmediate(resolve))
      running.delete(conversation_id)
      assert.deepEqual(payload, messages[id - 1])
      if (seen.push(id) === messages.length) stop.abort()
    },
    { concurrency: 3, signal: stop.signal },
  )
  await within('the work to stop', work)
  assert.ok(most > 1 && most <= 3, `${most} at once`)
  for (let c = 0; c < 5; c++) {
    const own = seen.filter((id) => (id - 1) % 5 === c)
    assert.deepEqual(
      own,
      own.toSorted((a, b) => a - b),
    )
  }
  assert.equal((await states()).match(/done/g)?.length, 30)
})

test('a handler that throws: its event is released with the error, those behind it wait for it', async (t) => {
  const { app, intray } = await newSubject(t, CONVERSATION)
  const seen: number[] = []
  const stop = new AbortController()
  const handler = ({ id }: { id: number }) => {
    seen.push(id)
    if (seen.length === 1) throw new Error(`the CRM is down \0 ${'🙂'.repeat(600)}`)
    if (id === 3) stop.abort()
  }
  await within('the work to stop', intray.work(handler, { signal: stop.signal }))
  assert.deepEqual(seen, [1, 1, 2, 3])
  const reader = await readerOf(app)
  const history = JSON.stringify(await reader.jsonNow('/v1/inbox/events/1/history'))
  assert.match(history, /the CRM is down/)
})

test('a long handler keeps its lease, and no other worker gets its event', async (t) => {
  for (let tries = 1; ; tries += 1) {
    const { proxy, intray, problems, states } = await newSubject(t, [{}])
    const gate = new Gate()
    const stop = new AbortController()
    const options = { leaseS: 2, signal: stop.signal }
    const works = [intray.work(gate.handler, options), intray.work(gate.handler, options)]
    const extended = () => proxy.arrived.filter(({ path }) => path.endsWith('/extend')).length
    await until('it was extended for several leases', () => extended() >= 4)
    gate.open()
    stop.abort()
    await within('the work to stop', Promise.all(works))
    // A machine that stands still for a lease loses it, but not every time.
    if (problems.length > 0 && tries < MANY_TRIES) continue
    assert.deepEqual(problems, [])
    assert.deepEqual(gate.entered, [1])
    assert.equal(await states(), '1 done')
    return
  }
})

test('a lease that is lost aborts its handler: nothing is acknowledged, and it is reported', async (t) => {
  const clock = new TestClock()
  const { intray, problems, states } = await newSubject(t, CONVERSATION, clock)
  const stop = new AbortController()
  let reason: unknown
  const work = intray.work(
    async (_event, { signal }) => {
      clock.advance(10_000)
      await new Promise((resolve) => signal.addEventListener('abort', resolve))
      reason = signal.reason
      stop.abort()
    },
    // With more it would claim the events that it lost.
    { leaseS: 3, concurrency: 1, signal: stop.signal },
  )
  await within('the work to stop', work)
  assert.ok(reason instanceof LeaseLost)
  assert.deepEqual([problems.length, problems[0] instanceof LeaseLost, reason.eventId], [1, true, 1])
  assert.equal(await states(), '1 pending, 2 pending, 3 pending')
})

test('a stop lets the handler finish and gives the rest back', async (t) => {
  const { intray, states } = await newSubject(t, CONVERSATION)
  const gate = new Gate()
  const stop = new AbortController()
  const work = intray.work(gate.handler, { signal: stop.signal, stopMs: 600_000 })
  await until('it is at work', () => gate.entered.length === 1)
  stop.abort()
  gate.open()
  await within('the work to stop', work)
  assert.deepEqual(gate.entered, [1])
  assert.equal(await states(), '1 done, 2 pending, 3 pending')
})

test('a stop whose time is over gives back what a handler does not let go, for others to have at once', async (t) => {
  const { intray, problems, states } = await newSubject(t, CONVERSATION)
  const gate = new Gate()
  const stop = new AbortController()
  const work = intray.work(gate.handler, { signal: stop.signal, stopMs: 1 })
  await until('it is at work', () => gate.entered.length === 1)
  stop.abort()
  await within('the work to stop', work)
  assert.equal(gate.context?.signal.aborted, true)
  assert.equal(await states(), '1 pending, 2 pending, 3 pending')
  const seen: number[] = []
  const next = new AbortController()
  await within(
    'another one to have them',
    intray.work(({ id }) => void (seen.push(id) === 3 && next.abort()), { signal: next.signal }),
  )
  assert.deepEqual(seen, [1, 2, 3])
  assert.deepEqual(problems, [])
  gate.open()
})

test('a stop while a claim waits leaves nothing leased', async (t) => {
  const { app, intray, proxy, states } = await newSubject(t, [])
  const stop = new AbortController()
  const work = intray.work(unexpected, { signal: stop.signal, stopMs: 600_000 })
  await until('it waits for events', () => proxy.arrived.length > 0)
  stop.abort()
  await app.post({})
  await within('the work to stop', work)
  assert.equal(await states(), '1 pending')
})

test('close() stops the work', async (t) => {
  const { intray, proxy } = await newSubject(t, [])
  const work = intray.work(unexpected)
  await until('it waits for events', () => proxy.arrived.length > 0)
  await within('the client to close', intray.close())
  await within('the work to stop', work)
})

test('while the service is away claims are tried again; an acknowledgement too', async (t) => {
  const { intray, proxy, states } = await newSubject(t, [{}])
  const failed = new Set<string>()
  proxy.fate = ({ path }) => {
    if (failed.has(path)) return 'pass'
    failed.add(path)
    return { status: 503 }
  }
  const stop = new AbortController()
  let handled = 0
  const work = intray.work(() => void (handled += 1), { signal: stop.signal })
  await until('it is done', async () => (await states()) === '1 done')
  stop.abort()
  await within('the work to stop', work)
  assert.equal(handled, 1)
  assert.deepEqual([...failed].sort(), ['/v1/inbox/claims', '/v1/inbox/claims/ack'])
})

test('a token that does not work is said once, and a stop does not wait for it; an unknown subscription ends the work', async (t) => {
  const { app, intray, problems } = await newSubject(t, [])
  const sending = new Intray({
    url: app.url,
    token: app.token,
    outbox: 'none',
    onProblem: (error) => problems.push(error),
  })
  t.after(() => sending.close())
  const stop = new AbortController()
  const work = sending.work(unexpected, { signal: stop.signal })
  await until('it is said', () => problems.length === 1)
  stop.abort()
  await within('the work to stop', work)
  assert.ok(problems[0] instanceof Unavailable && problems[0].needsFix)
  await assert.rejects(intray.work(unexpected, { subscription: 'nobody' }), { name: 'Refused', code: 'not_found' })
})
