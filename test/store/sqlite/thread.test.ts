// The threads from the server's side: when one dies, everybody who waits is told, once, and nobody waits again.

import assert from 'node:assert/strict'
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { Worker } from 'node:worker_threads'
import type { Store } from '../../../src/store/contract/store.ts'
import { openStore } from '../../../src/store/open.ts'
import {
  CHECKPOINT_PAGES,
  JOURNAL_PAGE_BYTES,
  openConnection,
  unwrittenPages,
} from '../../../src/store/sqlite/connection.ts'
import { isServerRunning } from '../../../src/store/sqlite/lock.ts'
import { idOf, item, newToken } from '../rows.ts'
import { failure, payloadText, WIDE } from '../suite.ts'
import { tempFolder } from '../../support/temp.ts'
import { until } from '../../support/until.ts'

/** A server's store, and its threads, which it keeps to itself. */
async function openWithThread(
  t: TestContext,
  path: string,
): Promise<{ store: Store; thread: Worker; indexer: Worker }> {
  const threads: Worker[] = []
  const add = (worker: Worker) => threads.push(worker)
  process.on('worker', add)
  const store = await openStore(`sqlite:${path}`, { role: 'server' })
  t.after(() => store.close())
  await until('all threads are known', () => threads.length === 3)
  process.off('worker', add)
  return { store, indexer: threads[0]!, thread: threads[1]! }
}

const newPath = (): string => join(tempFolder('writer'), 'intray.db')

test('when the thread dies, those who wait and those who come later are told that it is fatal', async (t) => {
  const path = newPath()
  const { store, thread } = await openWithThread(t, path)
  const [kept] = await store.journal.append([item({ body: 'kept' })])
  const told: Error[] = []
  const toldToo: Error[] = []
  store.onFatal((error) => told.push(error))
  store.onFatal((error) => toldToo.push(error))

  const appends = () => Array.from({ length: 100 }, () => store.journal.append([item()]))
  const before = appends()
  const ended = thread.terminate()
  // The thread may be done with those before. It takes no more jobs, and nobody was told yet.
  const settled = Promise.allSettled([...before, ...appends()])
  await ended
  const results = await settled
  const rejected = results.filter((result) => result.status === 'rejected')
  assert.ok(rejected.length > 0, 'some were still waiting')
  for (const { reason } of rejected) failure('fatal')(reason)

  for (const write of [
    () => store.journal.append([item()]),
    () => store.tokens.create(newToken()),
    () => store.probe(),
  ]) {
    await assert.rejects(write, failure('fatal'))
  }
  assert.equal(told.length, 1, 'each listener is told once')
  assert.equal(toldToo.length, 1)
  failure('fatal')(told[0])
  // What is on disk can still be looked at.
  assert.equal(await payloadText(store, idOf(kept)), 'kept')
})

test('when the thread of the index dies it is fatal as well, and told once', async (t) => {
  const { store, thread, indexer } = await openWithThread(t, newPath())
  const told: Error[] = []
  store.onFatal((error) => told.push(error))
  const stepping = Promise.allSettled(Array.from({ length: 50 }, () => store.index.step(WIDE)))
  await indexer.terminate()
  const failed = (await stepping).filter((result) => result.status === 'rejected')
  for (const { reason } of failed) failure('fatal')(reason)
  await assert.rejects(store.index.step(WIDE), failure('fatal'))
  await thread.terminate()
  await assert.rejects(store.probe(), failure('fatal'))
  assert.equal(told.length, 1)
})

test('what was acknowledged before the thread died is there afterwards, what was not is there once or not at all', async (t) => {
  const path = newPath()
  const { store, thread } = await openWithThread(t, path)
  const items = Array.from({ length: 300 }, (_, n) => item({ sourceRef: `${n}`, body: `${n}` }))
  const settled = Promise.allSettled(items.map((one) => store.journal.append([one])))
  await thread.terminate()
  const results = await settled
  await store.close()
  const next = await openStore(`sqlite:${path}`, { role: 'server' })
  t.after(() => next.close())
  for (const [n, result] of results.entries()) {
    if (result.status === 'fulfilled') assert.equal(await payloadText(next, idOf(result.value[0])), `${n}`)
  }
  // The node's own retry: the same items, with the keys they were minted with.
  const retried = (await next.journal.append(items)).map(idOf)
  assert.equal(new Set(retried).size, items.length)
  assert.equal(await next.events.watermark(), items.length, 'nothing is stored twice')
})

test('who asks to be told after it happened is told as well', async (t) => {
  const { store, thread } = await openWithThread(t, newPath())
  await thread.terminate()
  await assert.rejects(store.probe(), failure('fatal'))
  const told = await Promise.race([
    new Promise((resolve) => store.onFatal(resolve)),
    new Promise((resolve) => setImmediate(() => resolve('nobody said anything'))),
  ])
  failure('fatal')(told)
})

test('a store whose thread died closes, and frees the database for the next server', async (t) => {
  const path = newPath()
  const { store, thread } = await openWithThread(t, path)
  await thread.terminate()
  await store.close()
  await store.close()
  assert.equal(isServerRunning(path), false)
  const next = await openStore(`sqlite:${path}`, { role: 'server' })
  await next.journal.append([item()])
  await next.close()
})

test('a thread that dies while the store is opened makes the open fail, and leaves the database free', async (t) => {
  const path = newPath()
  process.once('worker', (worker: Worker) => void worker.terminate())
  await assert.rejects(openStore(`sqlite:${path}`, { role: 'server' }))
  const { store } = await openWithThread(t, path)
  await store.journal.append([item()])
})

test('a call that comes while the store is closing is answered, one way or the other', async (t) => {
  // Between the moment the thread gives up its connection and the moment this thread, which is busy, hears of it.
  for (const busyMs of [0, 1, 3, 10, 30]) {
    const { store } = await openWithThread(t, newPath())
    await store.journal.append([item()])
    const closing = store.close()
    for (const end = performance.now() + busyMs; performance.now() < end; );
    const late = store.journal.append([item()]).then(
      () => 'stored',
      () => 'refused',
    )
    await closing
    assert.ok(['stored', 'refused'].includes(await late))
  }
})

test('a database that turns out to be damaged stops no thread: what touches no damaged page works', async (t) => {
  const path = newPath()
  const first = await openStore(`sqlite:${path}`, { role: 'server' })
  await first.journal.append(Array.from({ length: 400 }, () => item({ body: 'x'.repeat(3000) })))
  await first.close()
  const bytes = readFileSync(path)
  bytes.fill(0xff, Math.floor((0.75 * bytes.length) / JOURNAL_PAGE_BYTES) * JOURNAL_PAGE_BYTES)
  writeFileSync(path, bytes)

  const store = await openStore(`sqlite:${path}`, { role: 'server' })
  t.after(() => store.close())
  const told: Error[] = []
  store.onFatal((error) => told.push(error))
  assert.ok((await store.index.step(WIDE)).indexed > 0)
  // Enough keys to meet a damaged page of `dedupe`.
  const outcomes = await store.journal.append(Array.from({ length: 200 }, () => item()))
  assert.ok(outcomes.some((one) => one.outcome === 'failed' && one.isDamaged))
  await store.probe()
  assert.deepEqual(told, [])
})

test('a job that is rejected is nobody else’s trouble', async (t) => {
  const { store } = await openWithThread(t, newPath())
  const told: Error[] = []
  store.onFatal((error) => told.push(error))
  const token = newToken()
  const results = await Promise.allSettled([
    store.tokens.create(token),
    store.tokens.create(token),
    store.journal.append([item()]),
    store.tokens.create(newToken({ label: null as unknown as string })),
    store.probe(),
  ])
  assert.deepEqual(
    results.map(({ status }) => status),
    ['fulfilled', 'rejected', 'fulfilled', 'rejected', 'fulfilled'],
  )
  for (const result of results) if (result.status === 'rejected') failure('rejected')(result.reason)
  assert.deepEqual(told, [])
})

test('what a command writes beside an idle server leaves the WAL, which is used again', async (t) => {
  const path = newPath()
  await openWithThread(t, path)
  const command = await openStore(`sqlite:${path}`, { role: 'tool' })
  t.after(() => command.close())
  const look = openConnection(path, 'tool')
  t.after(() => look.close())
  const unwritten = () => unwrittenPages(look)
  const body = 'x'.repeat(1024 * 1024)
  const write = async (megabytes: number) => {
    for (let n = 0; n < megabytes; n++) await command.journal.append([item({ body })])
  }
  const walBytes = () => statSync(`${path}-wal`).size
  // The server looks every second: this read keeps it from writing a part of the pages before all of them are there.
  const reader = openConnection(path, 'tool')
  t.after(() => reader.close())
  reader.exec('BEGIN')
  reader.prepare('SELECT count(*) FROM events').get()

  await write(8)
  assert.ok(unwritten() > 3000, 'control: a command checkpoints nothing')
  await write(32)
  assert.ok(walBytes() > CHECKPOINT_PAGES.journal * JOURNAL_PAGE_BYTES)
  assert.ok(unwritten() > CHECKPOINT_PAGES.journal)
  reader.exec('ROLLBACK')
  await until('the server has written the pages into the database', () => unwritten() === 0)
  const before = walBytes()
  await write(8)
  assert.ok(unwritten() > 3000)
  assert.ok(walBytes() <= before, `${walBytes()} bytes after ${before}`)
})
