// A read waits for the index, but not for ever, and tells a store that is away from a bug.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { StoreFailure } from '../../src/store/contract/failure.ts'
import { startTestApp } from '../support/app.ts'
import { drivers } from '../support/drivers.ts'
import { type Json, readerOf } from '../support/inbox.ts'
import { idOf } from '../support/intake.ts'
import { until } from '../support/until.ts'

for (const driver of drivers) {
  test(`${driver.name}: with an index that stands still a read answers what is there, after two seconds`, async (t) => {
    let stands = false
    let stepsUnderWay = 0
    const app = await startTestApp(t, driver, {
      wrapStore: (store) => ({
        ...store,
        index: {
          ...store.index,
          step: async (limits) => {
            if (!stands) {
              stepsUnderWay += 1
              return store.index.step(limits).finally(() => {
                stepsUnderWay -= 1
              })
            }
            return { ...(await store.index.progress()), indexed: 0, unindexed: 0, unreadable: 0, more: false }
          },
        },
      }),
    })
    const reader = await readerOf(app)
    const first = idOf(await app.post({ channel_ref: 'a' }))
    assert.deepEqual(Object.keys(await reader.json('/v1/inbox/events')), ['ok', 'events', 'next'])
    stands = true
    // A step may be under way: it covers what it can, and no more comes after it.
    await until('no step is under way', () => stepsUnderWay === 0)
    const second = idOf(await app.post({ channel_ref: 'a' }))
    const begun = performance.now()
    const list = await reader.jsonNow('/v1/inbox/events')
    const took = performance.now() - begun
    assert.ok(took >= 1900, `answered after ${took} ms`)
    assert.ok((list.index_lag as number) >= 1)
    assert.deepEqual(
      (list.events as Json[]).map(({ id }) => id),
      [first],
    )
    const [shown, conversation] = await Promise.all([
      reader.jsonNow(`/v1/inbox/events/${second}`),
      reader.jsonNow(`/v1/inbox/conversations/${first}`),
    ])
    assert.ok((shown.index_lag as number) >= 1 && (conversation.index_lag as number) >= 1)
    assert.equal((conversation.conversation as Json).event_count, 1)
    stands = false
    const caughtUp = await reader.json('/v1/inbox/events')
    assert.equal((caughtUp.events as Json[]).length, 2)
  })

  test(`${driver.name}: with words that stand still only a search waits: an event is listed and claimed`, async (t) => {
    let stands = true
    const app = await startTestApp(t, driver, {
      wrapStore: (store) => ({
        ...store,
        index: {
          ...store.index,
          stepWords: async (limits) => {
            if (!stands) return store.index.stepWords(limits)
            return { ...(await store.index.progress()), indexed: 0, unindexed: 0, unreadable: 0, more: false }
          },
        },
      }),
    })
    const reader = await readerOf(app)
    const id = idOf(await app.post({ message: { text: 'hello' } }))
    const list = await reader.json('/v1/inbox/events')
    assert.deepEqual(
      (list.events as Json[]).map((event) => event.id),
      [id],
    )
    const claim = await app.send({
      method: 'POST',
      path: '/v1/inbox/claims',
      headers: { Authorization: `Bearer ${reader.token}`, 'Content-Type': 'application/json' },
      body: '{}',
    })
    assert.deepEqual([claim.status, (claim.json!.events as Json[]).length], [200, 1])
    const behind = await reader.jsonNow('/v1/inbox/events?q=hello')
    assert.deepEqual([behind.events, behind.index_lag], [[], 1])
    stands = false
    const found = await reader.json('/v1/inbox/events?q=hello')
    assert.equal((found.events as Json[]).length, 1)
  })

  test(`${driver.name}: 503 while the store is away, and the read may be sent again`, async (t) => {
    let away = false
    const app = await startTestApp(t, driver, {
      wrapStore: (store) => ({
        ...store,
        inbox: {
          ...store.inbox,
          coverage: () =>
            away ? Promise.reject(new StoreFailure('unavailable', 'no connection')) : store.inbox.coverage(),
        },
      }),
    })
    const reader = await readerOf(app)
    assert.equal((await reader.get('/v1/inbox/events')).status, 200)
    away = true
    const answer = await reader.get('/v1/inbox/events')
    assert.deepEqual([answer.status, answer.json?.error, answer.json?.retryable], [503, 'storage_unavailable', true])
    assert.ok(answer.headers['retry-after'])
    away = false
    assert.equal((await reader.get('/v1/inbox/events')).status, 200)
  })
}
