// GET /v1/inbox/stream: every event once, in order, and an end where there has to be one.

import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { mintToken } from '../../src/auth/token.ts'
import type { Store } from '../../src/store/contract/store.ts'
import { item } from '../store/rows.ts'
import { indexAll } from '../store/suite.ts'
import { startTestApp, type TestApp, type TestAppOptions } from '../support/app.ts'
import { RawConnection } from '../support/client.ts'
import { TestClock } from '../support/clock.ts'
import { type Driver, drivers } from '../support/drivers.ts'
import { EventStream, type StreamOptions } from '../support/event-stream.ts'
import { idOf } from '../support/intake.ts'
import { until, within } from '../support/until.ts'

const PATH = '/v1/inbox/stream'
/** Timers at a pace that a test can wait for. */
const QUICK = { streamHeartbeat: '100ms', streamDrainTimeout: '1s' }

interface Followed extends TestApp {
  readonly processor: string
  open(options?: StreamOptions & { readonly token?: string }): Promise<EventStream>
  /** Posts so many messages, one after the other; their ids. */
  postSome(count: number, fields?: object): Promise<number[]>
  /** The log line of the stream that ended. */
  ended(): Promise<Record<string, unknown>>
}

async function start(t: TestContext, driver: Driver, options: TestAppOptions = {}): Promise<Followed> {
  const app = await startTestApp(t, driver, options)
  const processor = await app.createToken({ scope: 'processor' })
  return {
    ...app,
    processor,
    open: async ({ token = processor, ...more } = {}) => {
      const stream = await EventStream.open(app.port, token, more)
      t.after(() => stream.close())
      return stream
    },
    postSome: async (count, fields = {}) => {
      const ids: number[] = []
      for (let n = 0; n < count; n++) ids.push(idOf(await app.post({ ...fields, n })))
      return ids
    },
    ended: () =>
      until('the stream is logged', () => app.log.find(({ msg, route }) => msg === 'request' && route === PATH)),
  }
}

const received = (stream: EventStream, ids: readonly number[]) =>
  within(
    `the events up to ${ids.at(-1)}`,
    stream.until(() => stream.ids.at(-1)! >= ids.at(-1)!),
  )

const keyIdOf = (token: string) => token.split('_')[1]!

for (const driver of drivers) {
  describe(`the stream on ${driver.name}`, () => {
    test('200: begins with what is stored from now on, and says after which id', async (t) => {
      const app = await start(t, driver)
      const before = await app.postSome(3)
      await app.indexed()
      const stream = await app.open()
      assert.equal(stream.status, 200)
      assert.equal(stream.headers['content-type'], 'text/event-stream')
      assert.equal(stream.headers['cache-control'], 'no-store')
      assert.equal(stream.headers['x-accel-buffering'], 'no')
      await stream.until(({ blocks }) => blocks.length > 0)
      assert.deepEqual(stream.blocks[0], { retry: '3000', id: String(before.at(-1)) })
      const after = await app.postSome(3)
      await received(stream, after)
      assert.deepEqual(stream.ids, after)
      assert.equal(stream.lastEventId, String(after.at(-1)))
    })

    test('200: a block tells what is known of an event in one line, whatever the event holds', async (t) => {
      const app = await start(t, driver)
      const sourceRef = 'a\nid: 9\r\n\ndata: b\u2028\u2029\u0085"é🙂'
      const contact = { name: 'Ada\r\n\r\nevent: end', email: 'a@b.example' }
      const posted = await app.post({
        source_ref: sourceRef,
        channel_ref: 'page',
        contact,
        message: { type: 'text', text: 'Hello,\n\nid: 7' },
      })
      const revision = await app.post({ source_ref: sourceRef, second: true })
      assert.equal(revision.json?.conflict, true)
      const stream = await app.open({ after: 0 })
      await within(
        'both',
        stream.until(({ ids }) => ids.length === 2),
      )
      const [first, second] = stream.events
      const { received_at: receivedAt, sha256, request_id: requestId, ...rest } = first!
      assert.ok(Date.parse(String(receivedAt)) <= Date.now())
      assert.match(String(sha256), /^[0-9a-f]{64}$/)
      assert.equal(requestId, posted.headers['x-request-id'])
      assert.deepEqual(rest, {
        id: idOf(posted),
        kind: 'event',
        revises: null,
        source_ref: sourceRef,
        channel_ref: 'page',
        conversation_id: idOf(posted),
        contact,
        message_type: 'text',
        snippet: 'Hello, id: 7',
        size: first!.size,
        erased_at: null,
        scope: 'cf',
        key_id: keyIdOf(app.token),
      })
      assert.deepEqual([second!.kind, second!.revises], ['revision', idOf(posted)])
      assert.deepEqual(
        stream.blocks.slice(1).map(({ id, event }) => [id, event]),
        [
          [String(first!.id), 'event'],
          [String(second!.id), 'revision'],
        ],
      )
    })

    test('200: goes on after the id that after or Last-Event-ID names; the header wins', async (t) => {
      const app = await start(t, driver)
      const ids = await app.postSome(450)
      await app.indexed()
      for (const [options, expected] of [
        [{ after: 0 }, ids],
        [{ after: ids[9]! }, ids.slice(10)],
        [{ lastEventId: ids[9]! }, ids.slice(10)],
        [{ after: 0, lastEventId: ids[440]! }, ids.slice(441)],
        [{ after: ids[440]!, lastEventId: 0 }, ids],
        [{ after: ids[444]!, lastEventId: '' }, ids.slice(445)],
      ] as const) {
        const stream = await app.open(options)
        await received(stream, expected)
        assert.deepEqual(stream.ids, expected)
      }
    })

    test('409: an id that was never given out, by whichever way it is named', async (t) => {
      const app = await start(t, driver)
      const [id] = await app.postSome(1)
      for (const from of [{ after: id! + 1 }, { lastEventId: id! + 1 }]) {
        assert.equal((await app.open(from)).status, 409)
      }
      assert.equal((await app.open({ after: id! })).status, 200)
    })

    test('200: an id that is given out but not indexed yet', async (t) => {
      const app = await start(t, driver)
      const [first] = await app.postSome(1)
      const stream = await app.open({ after: first! })
      const ids = await app.postSome(4)
      await received(stream, ids)
      assert.deepEqual(stream.ids, ids)
    })

    test('a client that is cut off before its first event misses nothing when it comes back', async (t) => {
      const app = await start(t, driver)
      await app.postSome(2)
      const stream = await app.open()
      await stream.until(({ lastEventId }) => lastEventId !== undefined)
      stream.close()
      const missed = await app.postSome(3)
      await app.indexed()
      const again = await app.open({ lastEventId: stream.lastEventId! })
      await received(again, missed)
      assert.deepEqual(again.ids.slice(-3), missed)
    })

    test('readers of many tenants each get their own, once and in order, wherever they began', async (t) => {
      const app = await start(t, driver)
      const tenants = await Promise.all(
        Array.from({ length: 8 }, async (_, n) => ({
          tenant: { accountId: n % 2, companyId: 100 + Math.floor(n / 2) },
          token: await app.createToken({ accountId: n % 2, companyId: 100 + Math.floor(n / 2), scope: 'processor' }),
          ids: [] as number[],
        })),
      )
      const appendToEach = async (rounds: number) => {
        for (let round = 0; round < rounds; round++) {
          const outcomes = await app.store.journal.append(tenants.map(({ tenant }) => item({ ...tenant })))
          for (const [n, outcome] of outcomes.entries()) tenants[n]!.ids.push('id' in outcome ? outcome.id : 0)
        }
      }
      await appendToEach(30)
      await app.indexed()
      const streams = await Promise.all(
        tenants.flatMap(({ token, ids }) => [
          app.open({ token, after: 0 }),
          app.open({ token, after: ids[19]! }),
          app.open({ token }),
        ]),
      )
      await appendToEach(30)
      for (const [n, stream] of streams.entries()) {
        const { ids } = tenants[Math.floor(n / 3)]!
        const from = [0, 20, 30][n % 3]!
        await received(stream, ids)
        assert.deepEqual(stream.ids, ids.slice(from))
      }
    })

    test('a rebuild of the index repeats nothing and skips nothing', async (t) => {
      const app = await start(t, driver, { settings: { ...QUICK, indexBatchRows: '20' } })
      const ids = await app.postSome(60)
      await app.indexed()
      const live = await app.open({ after: 0 })
      await received(live, ids)
      await app.store.index.requestRebuild()
      const behind = await app.open({ lastEventId: ids[29]! })
      const more = await app.postSome(5)
      for (const stream of [live, behind]) await received(stream, more)
      assert.deepEqual(live.ids, [...ids, ...more])
      assert.deepEqual(behind.ids, [...ids.slice(30), ...more])
    })

    test('400: a start that is no id, given twice, or a parameter that is not known', async (t) => {
      const app = await start(t, driver)
      const headers = { Authorization: `Bearer ${app.processor}` }
      for (const after of ['-1', 'x', '1.5', '', '1e3', '0x10', '1000000000000000', ' 1']) {
        const answer = await app.send({ path: `${PATH}?after=${encodeURIComponent(after)}`, headers })
        assert.equal(answer.status, 400, after)
        assert.match(String(answer.json?.message), /after must be a whole number/)
      }
      for (const query of ['after=1&after=1', 'afer=1', `token=${app.processor}`]) {
        const answer = await app.send({ path: `${PATH}?${query}`, headers })
        assert.deepEqual([answer.status, answer.json?.error], [400, 'invalid_request'], query)
        assert.ok(!answer.text.includes(app.processor))
      }
      for (const lastEventId of ['-1', 'x', '1.5', '1, 2', '1000000000000000']) {
        const answer = await app.send({
          path: `${PATH}?after=0`,
          headers: { ...headers, 'Last-Event-ID': lastEventId },
        })
        assert.equal(answer.status, 400, lastEventId)
        assert.match(String(answer.json?.message), /Last-Event-ID must be a whole number/)
      }
      const twice = await app.send({ path: PATH, headers: { ...headers, 'Last-Event-ID': ['1', '2'] } })
      assert.equal(twice.status, 400)
    })

    test('401 and 403: without a token, and with one that may send', async (t) => {
      const app = await start(t, driver)
      assert.equal((await app.send({ path: PATH })).json?.error, 'missing_token')
      for (const token of [app.token, await app.createToken({ scope: '' })]) {
        const answer = await app.send({ path: PATH, headers: { Authorization: `Bearer ${token}` } })
        assert.deepEqual([answer.status, answer.json], [403, { ok: false, error: 'forbidden_scope' }])
      }
      const inQuery = await app.send({ path: `${PATH}?token=${app.processor}` })
      assert.deepEqual([inQuery.status, inQuery.json?.error], [401, 'missing_token'])
    })

    test('HEAD answers with the head and comes to an end', async (t) => {
      const app = await start(t, driver, { settings: { maxStreams: '0' } })
      const stream = await app.open({ method: 'HEAD' })
      assert.equal(stream.status, 200)
      assert.equal(stream.headers['content-type'], 'text/event-stream')
      assert.equal(await within('its end', stream.closed), 'end')
      assert.deepEqual(stream.blocks, [])
    })

    test('a stream on which nothing happens gets comments', async (t) => {
      const app = await start(t, driver, { settings: QUICK })
      const stream = await app.open()
      await within(
        'three comments',
        stream.until(({ blocks }) => blocks.filter(({ comment }) => comment === '').length >= 3),
      )
      assert.deepEqual(stream.events, [])
    })

    test('503 overloaded: more streams than there is room for, until one of them is gone', async (t) => {
      const app = await start(t, driver, { settings: { maxStreams: '2', tenantShare: '100' } })
      const streams = [await app.open(), await app.open()]
      const headers = { Authorization: `Bearer ${app.processor}` }
      const refused = await app.send({ path: PATH, headers })
      assert.deepEqual([refused.status, refused.json?.error], [503, 'overloaded'])
      assert.ok(refused.headers['retry-after'])
      assert.match(String(refused.json?.message), /streams/)
      streams[0]!.close()
      const third = await until('there is room again', async () => {
        const stream = await app.open()
        return stream.status === 200 && stream
      })
      const ids = await app.postSome(1)
      await received(third, ids)
      await received(streams[1]!, ids)
    })

    test('503 storage_unavailable: the store cannot be asked where to begin', async (t) => {
      const broken = { head: async () => Promise.reject(new Error('the disk is on fire')) }
      const wrapStore = (store: Store): Store => ({ ...store, follow: { ...store.follow, ...broken } })
      const app = await start(t, driver, { wrapStore })
      const answer = await app.send({ path: PATH, headers: { Authorization: `Bearer ${app.processor}` } })
      assert.deepEqual([answer.status, answer.json?.error], [503, 'storage_unavailable'])
      assert.ok(!answer.text.includes('fire'))
      assert.ok(app.log.some(({ msg }) => msg === 'could not begin a stream'))
    })

    test('a store that fails for a while holds a stream up, and loses nothing of it', async (t) => {
      let failures = 0
      const wrapStore = (store: Store): Store => ({
        ...store,
        follow: {
          ...store.follow,
          after: async (...args) => {
            if (failures++ < 3) throw new Error('away for a moment')
            return store.follow.after(...args)
          },
        },
      })
      const app = await start(t, driver, { settings: QUICK, wrapStore })
      const live = await app.open()
      const ids = await app.postSome(5)
      await received(live, ids)
      assert.deepEqual(live.ids, ids)
      assert.ok(failures > 3)
    })

    test('a token that is disabled, or expires, ends its streams and no others', async (t) => {
      const clock = new TestClock(Date.now())
      const app = await start(t, driver, { settings: QUICK, clock })
      const [disabled, expiring] = [
        await app.createToken({ scope: 'processor' }),
        await app.createToken({ scope: 'processor', expiresAt: clock.now() + 60_000 }),
      ]
      const other = await app.open()
      const streams = [await app.open({ token: disabled }), await app.open({ token: disabled })]
      const last = await app.open({ token: expiring })
      await app.store.tokens.setActive(keyIdOf(disabled), false, clock.now())
      for (const stream of streams) {
        assert.equal(await within('its end', stream.closed), 'end')
        assert.equal(stream.blocks.at(-1)?.comment, 'token_disabled')
      }
      clock.advance(60_000)
      assert.equal(await within('its end', last.closed), 'end')
      assert.equal(last.blocks.at(-1)?.comment, 'token_expired')
      await received(other, await app.postSome(1))
      assert.equal((await app.ended()).outcome, 'token_disabled')
      const again = await app.send({ path: PATH, headers: { Authorization: `Bearer ${disabled}` } })
      assert.equal(again.json?.error, 'token_disabled')
    })

    test('a stop ends every stream in order, one that nobody reads among them', async (t) => {
      const reads = { rows: 0 }
      const app = await start(t, driver, { wrapStore: (store) => counting(store, reads) })
      await storeLarge(app.store, LARGE_COUNT)
      const stuck = await app.open({ after: 0 })
      stuck.pause()
      const stream = await app.open()
      await until('much is on its way to the one that does not read', () => reads.rows > 200)
      await within('the stop', app.app.stop())
      assert.equal(await stream.closed, 'end')
      assert.equal(stream.blocks.at(-1)?.comment, 'stopping')
      const line = app.log.find(({ msg, outcome }) => msg === 'request' && outcome === 'stopping')
      assert.equal(line?.status, 200)
    })

    test('one line in the log when a stream is over: how long it was, and how far it came', async (t) => {
      const app = await start(t, driver)
      const stream = await app.open()
      const ids = await app.postSome(2)
      await received(stream, ids)
      assert.equal(
        app.log.some(({ route }) => route === PATH),
        false,
      )
      stream.close()
      const line = await app.ended()
      assert.deepEqual(
        [line.status, line.client_gone, line.event_id, line.key_id, line.scope],
        [200, true, ids.at(-1), keyIdOf(app.processor), 'processor'],
      )
    })

    test('a reader that takes nothing is cut off, is not read for meanwhile, and goes on where it was', async (t) => {
      const reads = { rows: 0 }
      const app = await start(t, driver, { settings: QUICK, wrapStore: (store) => counting(store, reads) })
      const ids = await storeLarge(app.store, LARGE_COUNT)
      const slow = await app.open({ after: 0 })
      slow.pause()
      const line = await app.ended()
      assert.deepEqual([line.outcome, line.client_gone], ['slow_reader', true])
      const rowsRead = reads.rows
      t.diagnostic(`${rowsRead} of ${LARGE_COUNT} rows were read for a reader that took nothing`)
      assert.ok(rowsRead < LARGE_COUNT / 2, `${rowsRead} rows were read for nobody`)
      slow.resume()
      assert.equal(await within('its end', slow.closed), 'cut')
      const again = await app.open({ lastEventId: slow.lastEventId! })
      await received(again, ids)
      assert.deepEqual([...slow.ids, ...again.ids], ids)
      assert.ok(slow.ids.length > 0 && slow.ids.length < ids.length)
    })

    test('a reader that takes its time but takes is not cut off', async (t) => {
      const app = await start(t, driver, { settings: QUICK })
      const ids = await storeLarge(app.store, LARGE_COUNT)
      const stream = await app.open({ after: 0 })
      while (stream.ids.at(-1) !== ids.at(-1)) {
        const count = stream.ids.length
        await within(
          'more of it',
          stream.until((one) => one.ids.length > count),
        )
        stream.pause()
        await new Promise((resolve) => setImmediate(resolve))
        stream.resume()
      }
      assert.deepEqual(stream.ids, ids)
    })
  })
}

for (const [name, rest] of [
  ['and nothing more', ''],
  ['and more requests', 'GET /livez HTTP/1.1\r\nHost: a\r\n\r\n'],
]) {
  test(`a client that asks for a stream ${name}, and closes its side before the stream begins, keeps none open`, async (t) => {
    const [asked, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const wrapStore = waitingFor(gate.promise, asked.resolve)
    // The heartbeat, which finds clients that are gone, comes too late.
    const app = await start(t, drivers[0]!, { wrapStore, settings: { streamHeartbeat: '5m' } })
    const client = await RawConnection.open(app.port)
    t.after(() => client.destroy())
    client.write(`GET ${PATH} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${app.processor}\r\n\r\n${rest}`)
    await asked.promise
    client.socket.end(rest ?? '')
    // An answer on another connection: the end has arrived too.
    await app.send({ path: '/livez' })
    gate.resolve()
    await within('the end of the connection', client.closed)
    const { outcome } = await app.ended()
    assert.equal(outcome, undefined)
  })
}

/** More than all buffers between two processes hold: every event is about 11 kB on the stream. */
const LARGE_COUNT = 3000

async function storeLarge(store: Store, count: number): Promise<number[]> {
  // A control character is six characters in JSON.
  const long = (length: number) => '\u0001'.repeat(length)
  const contact = { name: long(256), email: long(320) }
  const body = { contact, message: { type: long(64), text: long(200) } }
  const ids: number[] = []
  for (let at = 0; at < count; at += 200) {
    const items = Array.from({ length: Math.min(200, count - at) }, () => item({ body, channelRef: long(512) }))
    const outcomes = await store.journal.append(
      items.map((one) => ({ ...one, sourceRef: `${mintToken().token}${long(400)}` })),
    )
    ids.push(...outcomes.map((outcome) => ('id' in outcome ? outcome.id : 0)))
  }
  await indexAll(store)
  return ids.toSorted((a, b) => a - b)
}

/** The hub learns where a stream begins once the gate is open. */
function waitingFor(gate: Promise<unknown>, onAsked: () => void): (store: Store) => Store {
  return (store) => ({
    ...store,
    follow: {
      ...store.follow,
      head: async () => {
        onAsked()
        await gate
        return store.follow.head()
      },
    },
  })
}

/** Counts the rows that are read for streams. */
function counting(store: Store, reads: { rows: number }): Store {
  return {
    ...store,
    follow: {
      ...store.follow,
      after: async (...args) => {
        const page = await store.follow.after(...args)
        reads.rows += page.events.length
        return page
      },
    },
  }
}
