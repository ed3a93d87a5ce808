// The settings that durability rests on: set and read back on every open, and the open refused if one does not hold.

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { type TestContext, test } from 'node:test'
import { StoreRefused } from '../../../src/store/contract/failure.ts'
import { openStore } from '../../../src/store/open.ts'
import { openConnection, readSynchronous } from '../../../src/store/sqlite/connection.ts'
import { badItem, idOf, item } from '../rows.ts'
import { tempFolder } from '../../support/temp.ts'

const newPath = (): string => join(tempFolder('connection'), 'intray.db')

function pragma(db: DatabaseSync, name: string): unknown {
  return Object.values(db.prepare(`PRAGMA ${name}`).get() ?? {})[0]
}

test('every open says synchronous=full, the first and each one after it, in both roles', async () => {
  const url = `sqlite:${newPath()}`
  for (const role of ['server', 'server', 'tool', 'tool', 'server'] as const) {
    const store = await openStore(url, { role })
    assert.equal(store.facts.synchronous, 'full')
    await store.close()
  }
})

test('a connection that writes has synchronous=FULL and WAL, whatever state the file was left in', () => {
  const path = newPath()
  for (const left of ['PRAGMA synchronous = OFF', 'PRAGMA journal_mode = DELETE', 'PRAGMA synchronous = NORMAL']) {
    for (const role of ['writer', 'tool'] as const) {
      const db = openConnection(path, role)
      assert.equal(readSynchronous(db), 2)
      assert.equal(pragma(db, 'journal_mode'), 'wal')
      db.exec('CREATE TABLE IF NOT EXISTS t (a)')
      db.close()
    }
    const other = new DatabaseSync(path)
    other.exec(left)
    other.close()
  }
})

test('only the writer of the server checkpoints', () => {
  const path = newPath()
  const writer = openConnection(path, 'writer')
  const tool = openConnection(path, 'tool')
  const reader = openConnection(path, 'reader')
  assert.ok(Number(pragma(writer, 'wal_autocheckpoint')) > 0)
  assert.equal(pragma(tool, 'wal_autocheckpoint'), 0)
  assert.equal(pragma(reader, 'wal_autocheckpoint'), 0)
  for (const db of [writer, tool, reader]) {
    assert.equal(pragma(db, 'mmap_size'), 0)
    assert.ok(Number(pragma(db, 'busy_timeout')) > 0)
    db.close()
  }
})

test('a reader cannot write', () => {
  const path = newPath()
  const writer = openConnection(path, 'writer')
  writer.exec('CREATE TABLE t (a)')
  const reader = openConnection(path, 'reader')
  assert.throws(() => reader.exec('INSERT INTO t VALUES (1)'), /readonly/)
  assert.throws(() => reader.exec('DROP TABLE t'), /readonly/)
  reader.close()
  writer.close()
})

test('ids are not used again even when the newest row is gone', async () => {
  const path = newPath()
  const url = `sqlite:${path}`
  const first = await openStore(url, { role: 'server' })
  const ids = (await first.journal.append([item(), item(), item()])).map(idOf)
  await first.close()
  const db = new DatabaseSync(path)
  db.exec('DELETE FROM events WHERE id >= 2; DELETE FROM dedupe WHERE event_id >= 2')
  db.close()
  const second = await openStore(url, { role: 'server' })
  const [outcome] = await second.journal.append([item()])
  assert.ok(idOf(outcome) > ids.at(-1)!)
  await second.close()
})

test('the watermark is the last commit', async () => {
  const store = await openStore(`sqlite:${newPath()}`, { role: 'server' })
  assert.equal(await store.events.watermark(), 0)
  const outcomes = await store.journal.append([item(), badItem(), item()])
  assert.equal(await store.events.watermark(), idOf(outcomes[2]))
  await store.journal.append([badItem()])
  assert.equal(await store.events.watermark(), idOf(outcomes[2]))
  await store.close()
})

/** Makes one PRAGMA or function of SQLite answer something else. */
function lie(t: TestContext, sql: string, answer: Record<string, unknown>): void {
  const prepare = DatabaseSync.prototype.prepare
  t.mock.method(DatabaseSync.prototype, 'prepare', function (this: DatabaseSync, text: string, ...rest: []) {
    if (!text.includes(sql)) return prepare.call(this, text, ...rest)
    return { get: () => answer } as unknown as StatementSync
  })
}

const LIES: Record<string, [sql: string, answer: Record<string, unknown>, sentence: RegExp]> = {
  'synchronous stays at NORMAL': ['PRAGMA synchronous', { synchronous: 1 }, /synchronous=1 instead of 2/],
  'WAL is not to be had': ['journal_mode = WAL', { journal_mode: 'delete' }, /WAL/],
  'SQLite is a version that can corrupt': ['sqlite_version()', { version: '3.51.2' }, /3\.51\.2 .* 3\.51\.3 or newer/],
  'SQLite is much older': ['sqlite_version()', { version: '3.9.0' }, /3\.9\.0/],
}
for (const [name, [sql, answer, sentence]] of Object.entries(LIES)) {
  test(`the open is refused when ${name}`, (t) => {
    lie(t, sql, answer)
    assert.throws(
      () => openConnection(newPath(), 'writer'),
      (error) => error instanceof StoreRefused && sentence.test(error.message),
    )
  })
}

test('a version of SQLite that is safe is taken, however its numbers are written', (t) => {
  lie(t, 'sqlite_version()', { version: '3.100.0' })
  openConnection(newPath(), 'writer').close()
})
