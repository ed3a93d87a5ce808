// A damaged page of the index: reads say so with a code of their own, messages are still taken, and the index is filled again.

import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { openStore } from '../../src/store/open.ts'
import { indexPath } from '../../src/store/sqlite/index/index-file.ts'
import { item } from '../store/rows.ts'
import { indexAll } from '../store/suite.ts'
import { startTestApp } from '../support/app.ts'
import { drivers } from '../support/drivers.ts'
import { readerOf } from '../support/inbox.ts'
import { tempFolder } from '../support/temp.ts'
import { until } from '../support/until.ts'

const sqlite = drivers.find(({ name }) => name === 'sqlite')

/** A database with one event, whose index has a damaged page. */
async function damagedDatabase(): Promise<string> {
  const path = join(tempFolder('damaged-index'), 'intray.db')
  const store = await openStore(`sqlite:${path}`, { role: 'server' })
  await store.journal.append([item({ channelRef: 'page' })])
  await indexAll(store)
  await store.close()
  const db = new DatabaseSync(indexPath(path))
  const root = db.prepare("SELECT rootpage FROM sqlite_master WHERE name = 'event_index'").get()!.rootpage as number
  db.close()
  const bytes = readFileSync(indexPath(path))
  bytes.fill(0xff, (root - 1) * 4096, root * 4096)
  writeFileSync(indexPath(path), bytes)
  return `sqlite:${path}`
}

test('damaged index: a read answers 503 storage_damaged, the server stays ready, and the index is filled again', async (t) => {
  const fatal: Error[] = []
  const app = await startTestApp(
    t,
    { ...sqlite!, readyDatabase: damagedDatabase },
    {
      wrapStore: (store) => {
        store.onFatal((error) => fatal.push(error))
        return store
      },
    },
  )
  const reader = await readerOf(app)
  const read = await reader.get('/v1/inbox/events')
  assert.deepEqual([read.status, read.json?.error, read.json?.retryable], [503, 'storage_damaged', true])
  assert.ok(read.headers['retry-after'])
  assert.equal((await app.post({ text: 'still taken' })).status, 200)
  await until('both events are listed', async () => {
    const { json } = await reader.get('/v1/inbox/events')
    return (json?.events as unknown[] | undefined)?.length === 2
  })
  assert.equal((await app.send({ method: 'GET', path: '/readyz' })).status, 200)
  assert.deepEqual(fatal, [])
})
