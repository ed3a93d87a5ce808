// One server for one SQLite database, whatever becomes of it.

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { openStore } from '../../../src/store/open.ts'
import { acquireServerLock, isServerRunning, lockPath } from '../../../src/store/sqlite/lock.ts'
import { startChild } from '../child.ts'
import { item } from '../rows.ts'
import { tempFolder } from '../../support/temp.ts'

const newPath = (): string => join(tempFolder('lock'), 'intray.db')
const namesDatabase = (path: string) => ({
  name: 'StoreRefused',
  message: `Another Intray server is running on ${path}. Stop it first, or set INTRAY_DATABASE_URL to another database.`,
})

test('the lock lies beside the database', () => {
  assert.equal(lockPath('/var/lib/intray/intray.db'), '/var/lib/intray/intray.lock.db')
  assert.equal(lockPath('/data/other'), '/data/other.lock.db')
})

test('the lock is held until it is released, even where nobody keeps hold of it', async () => {
  setFlagsFromString('--expose-gc')
  const collectGarbage = runInNewContext('gc') as () => void
  const path = newPath()
  const dropped = new WeakRef(acquireServerLock(path))
  for (let n = 0; n < 10 && dropped.deref(); n++) {
    await new Promise((resolve) => setImmediate(resolve))
    collectGarbage()
  }
  assert.equal(dropped.deref(), undefined, 'nobody refers to it any more')
  assert.ok(isServerRunning(path))
})

test('a second server in the same process is refused with a sentence that names the database', async (t) => {
  const path = newPath()
  const first = await openStore(`sqlite:${path}`, { role: 'server' })
  t.after(() => first.close())
  await assert.rejects(openStore(`sqlite:${path}`, { role: 'server' }), namesDatabase(path))
  await first.journal.append([item()])
  assert.ok(isServerRunning(path), 'the attempt did not take the lock from the first')
  await assert.rejects(openStore(`sqlite:${path}`, { role: 'server' }), namesDatabase(path))
})

test('a second server in another process is refused, a tool is not, and a SIGKILL frees the lock', async (t) => {
  const path = newPath()
  const url = `sqlite:${path}`
  const server = startChild(t, 'serve', url)
  await server.line('ready')
  assert.ok(isServerRunning(path))
  await assert.rejects(openStore(url, { role: 'server' }), namesDatabase(path))
  const tool = await openStore(url, { role: 'tool' })
  await tool.journal.append([item()])
  await server.kill()
  assert.equal(isServerRunning(path), false)
  const next = await openStore(url, { role: 'server' })
  assert.equal(await next.events.watermark(), 1)
  await next.close()
  assert.equal(isServerRunning(path), false)
  await tool.close()
})

test('commands that look whether a server is there do not make its start fail', async (t) => {
  const url = `sqlite:${newPath()}`
  const lookers = [startChild(t, 'look', url), startChild(t, 'look', url)]
  await Promise.all(lookers.map((looker) => looker.line('looking')))
  for (let round = 0; round < 5; round++) {
    const server = await openStore(url, { role: 'server' })
    await server.close()
  }
  for (const looker of lookers) {
    assert.equal(looker.process.exitCode, null, 'it is still looking')
    await looker.kill()
  }
})

test('a tool that would have to migrate under a running server is refused', async (t) => {
  const path = newPath()
  const url = `sqlite:${path}`
  const server = await openStore(url, { role: 'server' })
  t.after(() => server.close())
  const db = new DatabaseSync(path, { timeout: 5000 })
  const count = () => Number(db.prepare('SELECT count(*) AS n FROM schema_migrations').get()?.n)
  const applied = count()
  // A server of an older version: its schema ends before the last migration.
  db.exec('DELETE FROM schema_migrations WHERE version = (SELECT max(version) FROM schema_migrations)')
  await assert.rejects(openStore(url, { role: 'tool' }), { name: 'StoreRefused', message: /Stop the server first/ })
  assert.equal(count(), applied - 1, 'nothing was migrated')
  db.close()
})
