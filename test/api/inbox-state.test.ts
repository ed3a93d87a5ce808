import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { startTestApp } from '../support/app.ts'
import { TestClock } from '../support/clock.ts'
import { type Driver, drivers } from '../support/drivers.ts'
import { idsOf, type Json, readerOf } from '../support/inbox.ts'
import { idOf, jsonHeaders } from '../support/intake.ts'

const STATES = ['pending', 'leased', 'done', 'dead'] as const

async function start(t: TestContext, driver: Driver) {
  const clock = new TestClock(Date.now())
  const app = await startTestApp(t, driver, { clock, settings: { maxAttempts: '1' } })
  const reader = await readerOf(app)
  const command = async (path: string, body: object): Promise<Json> => {
    const answer = await app.send({
      method: 'POST',
      path: `/v1/inbox${path}`,
      headers: jsonHeaders(reader.token),
      body: JSON.stringify(body),
    })
    assert.equal(answer.status, 200, answer.text)
    return answer.json!
  }
  const claim = async (fields: object = {}) => {
    const { events } = await command('/claims', { lease_s: 10, ...fields })
    return (events as Json[]).map(({ id, lease_id: lease }) => ({ id: id as number, lease_id: lease as string }))
  }
  /** What each filter finds, and that what it finds says so itself. */
  const byState = async (more = '') => {
    const found: Record<string, number[]> = {}
    for (const state of STATES) {
      const events = await reader.all(`/v1/inbox/events?state=${state}&limit=2${more}`, 'events')
      for (const event of events) assert.equal(event.state, state)
      found[state] = idsOf(events)
    }
    return found
  }
  const shownState = async (id: number) =>
    ((await reader.json(`/v1/inbox/events/${id}`)) as { event: Json }).event.state
  const unprocessed = async (channel: string) => {
    const { conversations } = (await reader.json(`/v1/inbox/conversations?channel_ref=${channel}`)) as {
      conversations: Json[]
    }
    const id = conversations[0]!.id as number
    const { conversation } = (await reader.json(`/v1/inbox/conversations/${id}`)) as { conversation: Json }
    assert.deepEqual(conversation, conversations[0])
    const listed = await reader.all('/v1/inbox/conversations', 'conversations')
    assert.deepEqual(
      listed.find((one) => one.id === id),
      conversation,
    )
    return [conversation.unprocessed, conversation.event_count]
  }
  return { app, clock, reader, command, claim, byState, shownState, unprocessed }
}

for (const driver of drivers) {
  describe(`the state of events on ${driver.name}`, () => {
    test('goes from pending to done or dead, in lists, in the event and in the count of its conversation', async (t) => {
      const { app, clock, reader, command, claim, byState, shownState, unprocessed } = await start(t, driver)
      const ids: number[] = []
      for (let n = 0; n < 3; n++) ids.push(idOf(await app.post({ channel_ref: 'talk', source_ref: `talk:${n}` })))
      const [a, b, c] = ids as [number, number, number]
      await app.post({ channel_ref: 'talk', source_ref: 'talk:0', other: true })
      const none = { pending: [], leased: [], done: [], dead: [] }
      assert.deepEqual(await byState(), { ...none, pending: [c, b, a] })
      assert.deepEqual(await unprocessed('talk'), [3, 3])

      const [first] = await claim({ limit: 1 })
      assert.equal(first!.id, a)
      assert.deepEqual(await byState(), { ...none, pending: [c, b], leased: [a] })
      assert.equal(await shownState(a), 'leased')
      assert.deepEqual(await unprocessed('talk'), [3, 3])
      await command('/claims/ack', { events: [first] })
      const [second] = await claim({ limit: 1 })
      await command('/claims/release', { events: [second], error: 'no luck' })
      assert.deepEqual(await byState(), { ...none, pending: [c], done: [a], dead: [b] })
      assert.deepEqual([await shownState(a), await shownState(b), await shownState(c)], ['done', 'dead', 'pending'])
      assert.deepEqual(await unprocessed('talk'), [1, 3])

      await claim({ limit: 1 })
      assert.deepEqual(await byState('&channel_ref=talk'), { ...none, leased: [c], done: [a], dead: [b] })
      clock.advance(10_000)
      assert.deepEqual(await byState('&channel_ref=talk'), { ...none, pending: [c], done: [a], dead: [b] })
      assert.equal(await shownState(c), 'pending', 'its lease has expired')

      await command(`/events/${b}/requeue`, {})
      assert.deepEqual(await unprocessed('talk'), [2, 3])
      const all = await reader.all('/v1/inbox/events?limit=3', 'events')
      assert.deepEqual(
        all.map(({ kind, state }) => [kind, state]),
        [
          ['revision', null],
          ['event', 'pending'],
          ['event', 'pending'],
          ['event', 'done'],
        ],
      )
      assert.equal(await shownState(all[0]!.id as number), null)
      const { revisions } = (await reader.json(`/v1/inbox/events/${a}/revisions`)) as { revisions: Json[] }
      assert.equal(revisions[0]!.state, null)
      const inside = await reader.all(`/v1/inbox/conversations/${a}/events`, 'events')
      assert.deepEqual(
        inside.map(({ state }) => state),
        ['done', 'pending', 'pending'],
      )
    })

    test('is that of another subscription if one is named; 404 if there is none', async (t) => {
      const { app, reader, command, claim, byState, shownState, unprocessed } = await start(t, driver)
      await command('/subscriptions', { name: 'crm', from: 'now' })
      const id = idOf(await app.post({ channel_ref: 'crm' }))
      const pending = '/v1/inbox/events?state=pending&subscription=crm'
      assert.deepEqual(idsOf(await reader.all(pending, 'events')), [id])
      const events = await claim({ subscription: 'crm' })
      await command('/claims/ack', { subscription: 'crm', events })
      assert.deepEqual(await byState('&subscription=crm'), { pending: [], leased: [], done: [id], dead: [] })
      assert.equal(await shownState(id), 'pending', 'in the default')
      assert.deepEqual(await unprocessed('crm'), [1, 1])
      const unknown = await reader.get('/v1/inbox/events?state=done&subscription=erp')
      assert.deepEqual([unknown.status, unknown.json?.error], [404, 'not_found'])
      const stranger = await readerOf(app, { accountId: 77, companyId: 78 })
      assert.deepEqual(await stranger.all('/v1/inbox/events?state=pending', 'events'), [])
      assert.equal((await stranger.get(pending)).status, 404)
    })
  })
}
