// What becomes of events that are released, by the rules of their subscription, over HTTP.

import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { startTestApp } from '../support/app.ts'
import { TestClock } from '../support/clock.ts'
import { type Driver, drivers } from '../support/drivers.ts'
import { readerOf } from '../support/inbox.ts'
import { idOf, jsonHeaders } from '../support/intake.ts'

interface Claimed {
  readonly id: number
  readonly lease_id: string
  readonly attempts: number
}

interface Settled {
  readonly state?: string
  readonly available_at?: string
}

async function newSubject(t: TestContext, driver: Driver, channels: readonly string[]) {
  const clock = new TestClock(Date.now())
  const app = await startTestApp(t, driver, { clock, settings: { maxAttempts: '2' } })
  const reader = await readerOf(app)
  const ids: number[] = []
  for (const channel of channels) ids.push(idOf(await app.post({ channel_ref: channel })))
  await app.indexed()
  const call = (method: string, path: string, body?: object) =>
    app.send({
      method,
      path: `/v1/inbox${path}`,
      headers: jsonHeaders(reader.token),
      ...(body ? { body: JSON.stringify(body) } : {}),
    })
  const post = async (path: string, body: object) => {
    const answer = await call('POST', path, body)
    assert.equal(answer.status, 200, answer.text)
    return answer.json!
  }
  return {
    clock,
    ids,
    call,
    post,
    claim: async (body: object = {}) => (await post('/claims', body)).events as Claimed[],
    release: async (event: Claimed, more: object = {}, common: object = {}) => {
      const { id, lease_id } = event
      return (
        (await post('/claims/release', { events: [{ id, lease_id, ...more }], ...common })).events as Settled[]
      )[0]!
    },
    dead: async (more = '') => {
      const answer = await call('GET', `/events?state=dead${more}`)
      return (answer.json!.events as { id: number; last_error: string | null }[]).map((one) => [one.id, one.last_error])
    },
  }
}

for (const driver of drivers) {
  describe(`releases on ${driver.name}`, () => {
    test('five polite stops do not kill an event; as many errors do', async (t) => {
      const { ids, claim, release, dead, clock } = await newSubject(t, driver, ['a', 'a'])
      for (let stops = 0; stops < 5; stops++) {
        const [event] = await claim()
        assert.deepEqual([event?.id, event?.attempts], [ids[0], 1])
        assert.equal((await release(event!, { delay_s: 0 })).state, 'pending')
      }
      const waiting = await release((await claim())[0]!)
      assert.equal(Date.parse(waiting.available_at!) >= clock.now() + 1000, true, 'without a delay it waits 1 s')
      clock.advance(2000)
      assert.deepEqual(await dead(), [])
      assert.equal((await release((await claim())[0]!, { delay_s: 0, error: 'the CRM is down' })).state, 'pending')
      assert.equal((await release((await claim())[0]!, { error: 'still down' })).state, 'dead')
      assert.deepEqual(await dead(), [[ids[0], 'still down']])
      assert.deepEqual(await dead('&channel_ref=a&limit=1'), [[ids[0], 'still down']])
    })

    test('"dead": true parks an event at once, with its reason, and its conversation goes on', async (t) => {
      const { ids, claim, release, dead, post, clock } = await newSubject(t, driver, ['a', 'a', 'b', 'c'])
      const [a, b, c] = await claim({ limit: 3 })
      assert.equal((await release(a!, { dead: true }, { error: 'no such customer' })).state, 'dead')
      assert.equal((await release(b!, { dead: false, delay_s: 0 }, { dead: true, error: 'later' })).state, 'pending')
      const { id, lease_id } = c!
      await post('/claims/release', { id, lease_id, dead: true, error: 'unreadable' })
      assert.deepEqual(await dead(), [
        [ids[3], 'unreadable'],
        [ids[0], 'no such customer'],
      ])
      const [next] = await claim({ filter: { channel_ref: 'a' } })
      assert.deepEqual([next?.id, next?.attempts], [ids[1], 1])
      clock.advance(60_000)
      await claim()
      clock.advance(60_000)
      await claim()
      assert.deepEqual((await dead()).slice(0, 1), [[ids[3], 'unreadable']])
      assert.deepEqual(
        (await dead()).filter(([of]) => of === ids[1] || of === ids[2]),
        [
          [ids[2], 'The lease expired.'],
          [ids[1], 'The lease expired.'],
        ],
      )
    })

    test('422: dead without an error, and rules that are out of range', async (t) => {
      const { call } = await newSubject(t, driver, [])
      const lease = { id: 1, lease_id: 'x' }
      const wrong: [path: string, body: object, fields: string[]][] = [
        ['/claims/release', { ...lease, dead: true }, ['/error']],
        ['/claims/release', { ...lease, dead: 'yes', error: 'no' }, ['/dead']],
        ['/claims/release', { events: [lease, { ...lease, dead: true }] }, ['/events/1/error']],
        ['/claims/release', { events: [{ ...lease, error: 'no' }, lease], dead: true }, ['/events/1/error']],
        ['/subscriptions', { name: 'crm', max_attempts: 0 }, ['/max_attempts']],
        ['/subscriptions', { name: 'crm', max_attempts: 1001 }, ['/max_attempts']],
        ['/subscriptions', { name: 'crm', first_delay_s: 0, max_delay_s: 43_201 }, ['/first_delay_s', '/max_delay_s']],
      ]
      for (const [path, body, expected] of wrong) {
        const answer = await call('POST', path, body)
        assert.equal(answer.status, 422, `${path} ${JSON.stringify(body)}: ${answer.text}`)
        const paths = (answer.json!.fields as { path: string }[]).map((field) => field.path)
        assert.deepEqual(paths.toSorted(), expected)
      }
    })

    test('a subscription has its own attempts and back-off, which a second command changes', async (t) => {
      const { ids, claim, release, dead, call, post, clock } = await newSubject(t, driver, ['a'])
      const rulesOf = async () =>
        ((await call('GET', '/subscriptions')).json!.subscriptions as Record<string, unknown>[]).map((one) => [
          one.name,
          one.max_attempts,
          one.first_delay_s,
          one.max_delay_s,
        ])
      assert.deepEqual(await rulesOf(), [['default', 2, 1, 3600]])
      const crm = { name: 'crm', from: 'beginning', max_attempts: 1, first_delay_s: 10 }
      assert.equal((await post('/subscriptions', crm)).created, true)
      const changed = await post('/subscriptions', { name: 'crm', max_attempts: 3, max_delay_s: 15 })
      assert.equal(changed.created, false)
      await post('/subscriptions', { name: 'default', max_attempts: 1 })
      assert.deepEqual(await rulesOf(), [
        ['default', 1, 1, 3600],
        ['crm', 3, 10, 15],
      ])
      const common = { subscription: 'crm' }
      for (const delayS of [10, 15]) {
        const settled = await release((await claim(common))[0]!, { error: 'no' }, common)
        const waitS = (Date.parse(settled.available_at!) - clock.now()) / 1000
        assert.ok(waitS >= delayS && waitS <= delayS * 1.25, `${waitS} s`)
        clock.advance(delayS * 1250)
      }
      assert.equal((await release((await claim(common))[0]!, { error: 'never' }, common)).state, 'dead')
      assert.deepEqual(await dead('&subscription=crm'), [[ids[0], 'never']])
      assert.deepEqual(await dead(), [])
      assert.equal((await release((await claim())[0]!, { error: 'once' })).state, 'dead')
      assert.deepEqual(await dead(), [[ids[0], 'once']])
      assert.deepEqual(await dead('&subscription=crm'), [[ids[0], 'never']], 'each has its own errors')
    })
  })
}
