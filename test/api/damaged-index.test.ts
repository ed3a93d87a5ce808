// A damaged page of the index: reads say so with a code of their own, messages are still taken, and `/readyz` says what to do.

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

test('damaged index: reads answer 503 storage_damaged, readyz 503, and the next start rebuilds', async (t) => {
  const databaseUrl = await damagedDatabase()
  const fatal = Promise.withResolvers<Error>()
  const app = await startTestApp(
    t,
    { ...sqlite!, readyDatabase: async () => databaseUrl },
    {
      wrapStore: (store) => {
        store.onFatal(fatal.resolve)
        return store
      },
    },
  )
  const readyz = () => app.send({ method: 'GET', path: '/readyz' })
  assert.equal((await readyz()).status, 200)
  const reader = await readerOf(app)
  const read = await reader.get('/v1/inbox/events')
  assert.deepEqual([read.status, read.json?.error, read.json?.retryable], [503, 'storage_damaged', true])
  assert.ok(read.headers['retry-after'])
  await fatal.promise
  const ready = await readyz()
  assert.deepEqual([ready.status, ready.json?.error], [503, 'storage_unavailable'])
  assert.match(String(ready.json?.message), /intray serve.*rebuilds the index/)
  assert.equal((await app.post({ text: 'still taken' })).status, 200)
  await app.app.stop()

  const store = await openStore(databaseUrl, { role: 'server' })
  t.after(() => store.close())
  await indexAll(store)
  const { events } = await store.inbox.events({ accountId: 7, companyId: 42 }, {}, null, 10)
  assert.equal(events.length, 2)
})
