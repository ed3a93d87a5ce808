// The reader thread from the server's side.

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { openStore } from '../../../src/store/open.ts'
import { tempFolder } from '../../support/temp.ts'
import { until } from '../../support/until.ts'
import { item, TENANT } from '../rows.ts'
import { failure, indexAll } from '../suite.ts'

test('a read that was cancelled ends, and the thread goes on', async (t) => {
  const store = await openStore(`sqlite:${join(tempFolder('reader'), 'intray.db')}`, { role: 'server' })
  t.after(() => store.close())
  await store.journal.append(Array.from({ length: 10 }, () => item()))
  await indexAll(store)
  const list = (gone?: AbortSignal) => store.inbox.events(TENANT, { messageType: 'none' }, null, 50, gone)
  await assert.rejects(list(AbortSignal.abort()), failure('unavailable'))
  // The thread may finish a read before it hears of the cancellation.
  await until('a read under way is cancelled', () => {
    const leaving = new AbortController()
    const read = list(leaving.signal)
    leaving.abort()
    return read.then(
      () => false,
      (error: Error) => error.message === 'the caller is gone',
    )
  })
  const caller = new AbortController()
  const finished = await list(caller.signal)
  assert.equal(finished.partial, false, 'control: a caller that stays gets its page')
  // The place of the finished job is taken by the next one, which must not be cancelled in its stead.
  caller.abort()
  assert.equal((await list()).partial, false)
})

test('reads that wait when the store closes are answered', async (t) => {
  const store = await openStore(`sqlite:${join(tempFolder('reader'), 'intray.db')}`, { role: 'server' })
  t.after(() => store.close())
  await store.journal.append([item()])
  await indexAll(store)
  const waiting = Array.from({ length: 50 }, () => store.inbox.events(TENANT, {}, null, 50))
  const closed = store.close()
  const pages = await Promise.all(waiting)
  assert.ok(pages.every(({ events }) => events.length === 1))
  await closed
  await assert.rejects(store.inbox.events(TENANT, {}, null, 50), failure('unavailable'))
})
