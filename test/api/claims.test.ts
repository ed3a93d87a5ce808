import assert from 'node:assert/strict'
import { once } from 'node:events'
import { describe, test } from 'node:test'
import { startTestApp, type TestApp } from '../support/app.ts'
import type { Store } from '../../src/store/contract/store.ts'
import { RawConnection, type TestAnswer } from '../support/client.ts'
import { backDoorOf } from '../store/back-door.ts'
import { TestClock } from '../support/clock.ts'
import { drivers } from '../support/drivers.ts'
import { idOf, jsonHeaders } from '../support/intake.ts'
import { scrape } from '../support/metrics.ts'
import { until } from '../support/until.ts'

interface Event {
  readonly id: number
  readonly lease_id: string
  readonly attempts: number
  readonly conversation_id: number | null
  readonly payload?: unknown
  readonly payload_base64?: string
  readonly payload_missing?: string
}

/** Puts itself between the service and its store, and tells when a claim waits: the store is asked what is ready for claims that wait, and only then. */
function watchWaiting() {
  let looks = 0
  const wrapStore = (store: Store): Store => ({
    ...store,
    processing: {
      ...store.processing,
      ready: (queues, now) => {
        looks += 1
        return store.processing.ready(queues, now)
      },
    },
  })
  return {
    wrapStore,
    /** Resolves when a claim has waited since the call. */
    untilOneWaits: async () => {
      const before = looks
      await until('a claim waits', () => looks > before)
    },
  }
}

/** A tenant of its own: cases on one service do not get in each other's way. */
class Processor {
  static #tenants = 0
  readonly app: TestApp
  readonly token: string
  readonly #sender: string

  private constructor(app: TestApp, token: string, sender: string) {
    this.app = app
    this.token = token
    this.#sender = sender
  }

  static async of(app: TestApp): Promise<Processor> {
    const tenant = { accountId: 3, companyId: 9000 + ++Processor.#tenants }
    return new Processor(app, await app.createToken({ ...tenant, scope: 'processor' }), await app.createToken(tenant))
  }

  async store(body: object | string | Uint8Array): Promise<number> {
    const bytes = typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body)
    const answer = await this.app.send({
      method: 'POST',
      path: '/v1/inbox/events',
      headers: jsonHeaders(this.#sender),
      body: bytes,
    })
    assert.equal(answer.status, 200)
    await this.app.indexed()
    return idOf(answer)
  }

  call(method: string, path: string, body?: unknown): Promise<TestAnswer> {
    return this.app.send({
      method,
      path: `/v1/inbox${path}`,
      headers: jsonHeaders(this.token),
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
  }

  async claim(body: object = {}): Promise<Event[]> {
    const answer = await this.call('POST', '/claims', body)
    assert.equal(answer.status, 200, answer.text)
    return answer.json?.events as Event[]
  }

  async settle(what: 'ack' | 'extend' | 'release', events: readonly Event[], more: object = {}): Promise<unknown[]> {
    const items = events.map(({ id, lease_id }) => ({ id, lease_id }))
    const answer = await this.call('POST', `/claims/${what}`, { events: items, ...more })
    assert.equal(answer.status, 200, answer.text)
    return answer.json?.events as unknown[]
  }
}

for (const driver of drivers) {
  describe(`claims on ${driver.name}`, () => {
    test('an event is claimed, acknowledged and never seen again', async (t) => {
      const processor = await Processor.of(await startTestApp(t, driver))
      const id = await processor.store({ source_ref: 'a:1', channel_ref: 'page', message: { text: 'Hello' } })
      const [event, ...others] = await processor.claim()
      assert.equal(others.length, 0)
      assert.deepEqual([event?.id, event?.attempts, event?.conversation_id], [id, 1, id])
      assert.deepEqual(event?.payload, { source_ref: 'a:1', channel_ref: 'page', message: { text: 'Hello' } })
      assert.deepEqual(await processor.claim(), [])
      assert.deepEqual(await processor.settle('ack', [event!]), [{ id, ok: true, state: 'done' }])
      assert.deepEqual(await processor.settle('ack', [event!]), [{ id, ok: true, state: 'done' }])
      assert.deepEqual(await processor.claim(), [])
    })

    test('a payload comes byte for byte, as base64 where it cannot stand inside JSON', async (t) => {
      const processor = await Processor.of(await startTestApp(t, driver))
      const exact = '{"n": 12345678901234567890.000,\n "a":1, "a":2}'
      await processor.store(exact)
      await processor.store('\uFEFF{"bom":true}')
      const answer = await processor.call('POST', '/claims', {})
      assert.ok(answer.text.includes(`"payload":${exact}}`))
      const [, bom] = answer.json!.events as Event[]
      assert.equal(Buffer.from(bom!.payload_base64!, 'base64').toString(), '\uFEFF{"bom":true}')
    })

    test('bytes that no longer match their digest are never handed out; the event says so, and so does the log', async (t) => {
      const app = await startTestApp(t, driver)
      const processor = await Processor.of(app)
      const id = await processor.store({ channel_ref: 'page', a: 'true' })
      await backDoorOf(driver).replacePayload(app.databaseUrl, id, Buffer.from('{"channel_ref":"page","a":"fake"}'))
      const answer = await processor.call('POST', '/claims', {})
      assert.ok(!answer.text.includes('fake'))
      const [event] = answer.json!.events as Event[]
      assert.deepEqual([event?.id, event?.payload, event?.payload_missing], [id, null, 'damaged'])
      assert.ok(app.log.some((line) => String(line.msg).includes(`event ${id}`) && /digest/.test(String(line.error))))
      assert.deepEqual(await processor.settle('ack', [event!]), [{ id, ok: true, state: 'done' }])
    })

    test('inside a conversation events come in order, and to one processor at a time', async (t) => {
      const processor = await Processor.of(await startTestApp(t, driver))
      const ids: number[] = []
      for (const channel of ['a', 'a', 'b', 'a']) ids.push(await processor.store({ channel_ref: channel }))
      const heads = await processor.claim({ limit: 2 })
      assert.deepEqual(
        heads.map(({ id }) => id),
        [ids[0], ids[2]],
      )
      assert.deepEqual(await processor.claim(), [], 'both conversations are held')
      await processor.settle('ack', heads)
      const run = await processor.claim({ filter: { channel_ref: 'a' } })
      assert.deepEqual(
        run.map(({ id }) => id),
        [ids[1], ids[3]],
      )
      assert.deepEqual(
        await processor.claim({ ordered: false }),
        [],
        'nothing of a conversation under an ordered lease',
      )
    })

    test('a released event comes back after its delay, and is dead after its attempts', async (t) => {
      const clock = new TestClock(Date.now())
      const app = await startTestApp(t, driver, { clock, settings: { maxAttempts: '2' } })
      const processor = await Processor.of(app)
      const id = await processor.store({ channel_ref: 'a' })
      const behind = await processor.store({ channel_ref: 'a' })
      const first = await processor.claim()
      const released = (await processor.settle('release', first.slice(0, 1), { error: 'no luck', delay_s: 5 })) as {
        state: string
        available_at: string
      }[]
      assert.equal(released[0]?.state, 'pending')
      assert.equal(Date.parse(released[0]!.available_at), clock.now() + 5000)
      assert.deepEqual(await processor.claim(), [], 'what is behind it waits')
      clock.advance(5000)
      const [again, ...none] = await processor.claim()
      assert.deepEqual([again?.id, again?.attempts, none.length], [id, 2, 0], 'what failed comes alone')
      clock.advance(31_000)
      const [next] = await processor.claim()
      assert.equal(next?.id, behind, 'the lease expired, the event is dead, and its conversation goes on')

      const history = await processor.call('GET', `/events/${id}/history`)
      const [delivery] = history.json!.deliveries as {
        state: string
        history: { what: string; error: string | null }[]
      }[]
      assert.equal(delivery?.state, 'dead')
      assert.deepEqual(
        delivery?.history.map(({ what, error }) => [what, error]),
        [
          ['released', 'no luck'],
          ['expired', null],
        ],
      )
      const dry = await processor.call('POST', '/requeue', { dry_run: true, filter: { channel_ref: 'a' } })
      assert.deepEqual(dry.json, { ok: true, dry_run: true, matched: 1, requeued: 0 })
      assert.equal((await processor.call('POST', '/requeue', { filter: { channel_ref: 'b' } })).json?.matched, 0)
      const back = await processor.call('POST', `/events/${id}/requeue`, {})
      assert.deepEqual(back.json, { ok: true, id, requeued: true })
      assert.equal((await processor.call('POST', `/events/${id}/requeue`, {})).json?.requeued, false)
      await processor.settle('ack', [next!])
      assert.equal((await processor.claim())[0]?.id, id)
    })

    test('a lost lease is 409 for one event, and told per event in a list; nothing is changed', async (t) => {
      const clock = new TestClock(Date.now())
      const processor = await Processor.of(await startTestApp(t, driver, { clock }))
      const id = await processor.store({})
      const [event] = await processor.claim({ lease_s: 10 })
      assert.deepEqual(await processor.settle('extend', [event!], { lease_s: 20 }), [
        { id, ok: true, state: 'leased', lease_expires_at: new Date(clock.now() + 20_000).toISOString() },
      ])
      clock.advance(20_000)
      for (const what of ['ack', 'extend', 'release'] as const) {
        assert.deepEqual(await processor.settle(what, [event!]), [{ id, ok: false, error: 'lease_lost' }])
        const single = { id, lease_id: event!.lease_id }
        const answer = await processor.call('POST', `/claims/${what}`, single)
        assert.equal(answer.status, 409)
        assert.equal(answer.json?.error, 'lease_lost')
      }
      const [again] = await processor.claim()
      assert.deepEqual([again?.id, again?.attempts], [id, 2])
      const done = await processor.call('POST', '/claims/ack', { id, lease_id: again!.lease_id })
      assert.deepEqual(done.json, { ok: true, events: [{ id, ok: true, state: 'done' }] })
    })

    test('subscriptions see events on their own, from now or from the beginning', async (t) => {
      const processor = await Processor.of(await startTestApp(t, driver))
      const early = await processor.store({})
      const made = await processor.call('POST', '/subscriptions', { name: 'crm' })
      assert.equal(made.json?.created, true)
      await processor.call('POST', '/subscriptions', { name: 'audit', from: 'beginning' })
      assert.equal((await processor.call('POST', '/subscriptions', { name: 'crm' })).json?.created, false)
      const late = await processor.store({})
      const seen = async (subscription: string) => (await processor.claim({ subscription })).map(({ id }) => id)
      assert.deepEqual(await seen('crm'), [late])
      assert.deepEqual(await seen('audit'), [early, late])
      assert.deepEqual(await seen('default'), [early, late])
      const list = await processor.call('GET', '/subscriptions')
      assert.deepEqual(
        (list.json!.subscriptions as { name: string }[]).map(({ name }) => name),
        ['default', 'crm', 'audit'],
      )
      assert.equal((await processor.call('DELETE', '/subscriptions/crm')).status, 200)
      assert.equal((await processor.call('DELETE', '/subscriptions/crm')).status, 404)
      assert.equal((await processor.call('DELETE', '/subscriptions/default')).status, 400)
      assert.equal((await processor.call('POST', '/claims', { subscription: 'crm' })).status, 404)
      await processor.call('POST', '/subscriptions', { name: 'crm', from: 'beginning' })
      assert.deepEqual(await seen('crm'), [early, late], 'a name that is used again knows nothing of the old')
    })

    test('another tenant sees nothing: its ids are unknown, its leases lost', async (t) => {
      const app = await startTestApp(t, driver)
      const processor = await Processor.of(app)
      const stranger = await Processor.of(app)
      const id = await processor.store({})
      const [event] = await processor.claim()
      assert.deepEqual(await stranger.claim(), [])
      assert.deepEqual(await stranger.settle('ack', [event!]), [{ id, ok: false, error: 'lease_lost' }])
      for (const [method, path, body] of [
        ['GET', 'history', undefined],
        ['POST', 'requeue', {}],
      ] as const) {
        const theirs = await stranger.call(method, `/events/${id}/${path}`, body)
        const unknown = await stranger.call(method, `/events/999999999/${path}`, body)
        assert.equal(theirs.status, 404)
        assert.deepEqual({ ...theirs.json, request_id: '' }, { ...unknown.json, request_id: '' })
      }
      assert.deepEqual(await processor.settle('ack', [event!]), [{ id, ok: true, state: 'done' }])
    })

    test('403: no other scope may process', async (t) => {
      const app = await startTestApp(t, driver)
      const headers = jsonHeaders(app.token)
      const answer = await app.send({ method: 'POST', path: '/v1/inbox/claims', headers, body: '{}' })
      assert.equal(answer.status, 403)
    })

    test('422: every field must be known and in its range, and the answer names each that is not', async (t) => {
      const processor = await Processor.of(await startTestApp(t, driver))
      const lease = { id: 1, lease_id: 'x' }
      const cases: [path: string, body: object, fields: string[]][] = [
        [
          '/claims',
          { limit: 0, lease_s: 43_201, wait_s: 21, ordered: 'yes', max: 1 },
          ['/max', '/limit', '/lease_s', '/wait_s', '/ordered'],
        ],
        ['/claims', { subscription: 'No Name', filter: { channel: 'a' } }, ['/filter/channel', '/subscription']],
        ['/claims', { filter: 'a', limit: 1.5 }, ['/filter', '/limit']],
        ['/claims/ack', {}, ['/id', '/lease_id']],
        ['/claims/ack', { events: [] }, ['/events']],
        ['/claims/ack', { events: [lease, { id: '1' }, 7] }, ['/events', '/events/1/id', '/events/1/lease_id']],
        ['/claims/ack', { ...lease, events: [lease] }, ['/id', '/lease_id']],
        ['/claims/extend', { ...lease, lease_s: 0 }, ['/lease_s']],
        ['/claims/release', { ...lease, delay_s: -1, error: 5 }, ['/delay_s', '/error']],
        ['/claims/release', { events: [{ ...lease, error: 'x'.repeat(1001) }] }, ['/events/0/error']],
        ['/requeue', { filter: { dead_after: 'yesterday' }, limit: 1001 }, ['/filter/dead_after', '/limit']],
        ['/subscriptions', {}, ['/name']],
        ['/subscriptions', { name: 'a/b', from: 'then' }, ['/name', '/from']],
      ]
      for (const [path, body, expected] of cases) {
        const answer = await processor.call('POST', path, body)
        assert.equal(answer.status, 422, `${path} ${JSON.stringify(body)}: ${answer.text}`)
        const paths = (answer.json!.fields as { path: string }[]).map((field) => field.path)
        assert.deepEqual(paths.toSorted(), expected.toSorted())
      }
      const query = await processor.call('GET', '/subscriptions?limit=1')
      assert.equal(query.status, 400)
      for (const bad of ['', '[]', '{', 'nonsense']) {
        const headers = jsonHeaders(processor.token)
        const answer = await processor.app.send({ method: 'POST', path: '/v1/inbox/claims', headers, body: bad })
        assert.equal(answer.json?.error, 'invalid_json')
      }
    })

    test('a long poll ends when something comes in, when its time is over, and when the server stops', async (t) => {
      const { wrapStore, untilOneWaits } = watchWaiting()
      const app = await startTestApp(t, driver, { wrapStore })
      const processor = await Processor.of(app)
      const began = performance.now()
      assert.deepEqual(await processor.claim({ wait_s: 1 }), [])
      assert.ok(performance.now() - began > 900)
      const asked = performance.now()
      const waiting = processor.claim({ wait_s: 20 })
      const id = await processor.store({})
      assert.deepEqual(
        (await waiting).map((event) => event.id),
        [id],
      )
      assert.ok(performance.now() - asked < 20_000, 'it did not wait for its whole time')
      const last = processor.claim({ wait_s: 20 })
      await untilOneWaits()
      const stopping = performance.now()
      const [events] = await Promise.all([last, app.app.stop()])
      assert.deepEqual(events, [])
      assert.ok(performance.now() - stopping < 19_000, 'nor did this one')
    })

    test('a released event wakes who waits when its delay is over', async (t) => {
      const processor = await Processor.of(await startTestApp(t, driver))
      const id = await processor.store({})
      const held = await processor.claim()
      const waiting = processor.claim({ wait_s: 20 })
      await processor.settle('release', held, { delay_s: 1 })
      assert.deepEqual(
        (await waiting).map((event) => event.id),
        [id],
      )
    })

    test('nothing is leased to a client that left while it waited', async (t) => {
      const { wrapStore, untilOneWaits } = watchWaiting()
      const app = await startTestApp(t, driver, { wrapStore, settings: { metrics: '127.0.0.1:0' } })
      const processor = await Processor.of(app)
      const body = '{"wait_s":20}'
      const head = `POST /v1/inbox/claims HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${processor.token}\r\n`
      const more = `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`
      for (const leave of ['destroy', 'end'] as const) {
        const connection = await RawConnection.open(app.port)
        connection.write(head + more)
        await untilOneWaits()
        if (leave === 'destroy') connection.destroy()
        else connection.socket.end()
        if (leave === 'destroy') await once(connection.socket, 'close')
        await until('its claim is over', async () => (await scrape(app)).get('intray_inbox_claims') === 0)
        const id = await processor.store({})
        const events = await processor.claim({ wait_s: 5 })
        assert.deepEqual(
          events.map((event) => [event.id, event.attempts]),
          [[id, 1]],
          leave,
        )
        await processor.settle('ack', events)
        connection.destroy()
      }
    })
  })
}
