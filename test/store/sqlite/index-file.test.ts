// The file of the index: made, and made again, whatever is found in its place; never a reason to lose a message.

import assert from 'node:assert/strict'
import { copyFileSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import type { Store } from '../../../src/store/contract/store.ts'
import { openStore } from '../../../src/store/open.ts'
import { JOURNAL_PAGE_BYTES } from '../../../src/store/sqlite/connection.ts'
import { indexPath, openReader } from '../../../src/store/sqlite/index/index-file.ts'
import { item, TENANT } from '../rows.ts'
import { indexAll } from '../suite.ts'
import { tempFolder } from '../../support/temp.ts'

const newPath = (): string => join(tempFolder('index-file'), "it's 50% #1.db")

async function withStore<T>(path: string, use: (store: Store) => Promise<T>): Promise<T> {
  const store = await openStore(`sqlite:${path}`, { role: 'server' })
  try {
    return await use(store)
  } finally {
    await store.close()
  }
}

async function append(store: Store, from: number, to: number): Promise<void> {
  for (let n = from; n <= to; n++) await store.journal.append([item({ sourceRef: `${n}`, channelRef: 'page' })])
}

const countOf = async (store: Store) => (await store.events.conversation(TENANT, 'page'))?.eventCount

/** A database with ten events, indexed, and closed. */
async function filled(): Promise<string> {
  const path = newPath()
  await withStore(path, async (store) => {
    await append(store, 1, 10)
    await indexAll(store)
  })
  return path
}

async function assertFilledAgain(path: string, events: number): Promise<void> {
  await withStore(path, async (store) => {
    await indexAll(store)
    assert.equal(await countOf(store), events)
    assert.equal((await store.inbox.events(TENANT, {}, null, 100)).events.length, events)
  })
}

test('the index lies beside the database', () => {
  assert.equal(indexPath('/var/lib/intray/intray.db'), '/var/lib/intray/intray.index.db')
  assert.equal(indexPath('/data/other'), '/data/other.index.db')
})

test('an index that is what it should be is kept as it is', async () => {
  const path = await filled()
  await withStore(path, async (store) => {
    assert.deepEqual(await store.index.progress(), { cursor: 10, lag: 0, clearing: false })
    assert.equal(await countOf(store), 10)
  })
})

test('an index that was deleted is filled again', async () => {
  const path = await filled()
  rmSync(indexPath(path))
  await assertFilledAgain(path, 10)
})

test('an index that is no database is replaced and filled again', async () => {
  const path = await filled()
  writeFileSync(indexPath(path), 'dear diary, '.repeat(1000))
  await assertFilledAgain(path, 10)
})

/** Overwrites the first page of the table that lists read. */
function damageIndex(path: string): void {
  const db = new DatabaseSync(indexPath(path))
  const root = db.prepare("SELECT rootpage FROM sqlite_master WHERE name = 'event_index'").get()!.rootpage as number
  const pageSize = Object.values(db.prepare('PRAGMA page_size').get()!)[0] as number
  db.close()
  const bytes = readFileSync(indexPath(path))
  bytes.fill(0xff, (root - 1) * pageSize, root * pageSize)
  writeFileSync(indexPath(path), bytes)
}

test('damage inside the index ends the server once: the next start fills it again', async () => {
  const path = await filled()
  damageIndex(path)
  await withStore(path, async (store) => {
    const told = new Promise<Error>((resolve) => store.onFatal(resolve))
    await append(store, 11, 11)
    await assert.rejects(store.index.step({ maxRows: 10, maxBytes: 1 << 20 }), { kind: 'fatal' })
    assert.match((await told).message, /malformed/)
  })
  await assertFilledAgain(path, 11)
})

test('damage that a read meets in the index ends the server once: the next start fills it again', async () => {
  const path = await filled()
  damageIndex(path)
  await withStore(path, async (store) => {
    const told = new Promise((resolve) => store.onFatal(resolve))
    await assert.rejects(store.inbox.events(TENANT, {}, null, 100), { kind: 'fatal' })
    await told
  })
  await assertFilledAgain(path, 10)
})

test('damage that a read meets in the journal fails that read alone, and the index stays', async () => {
  const path = newPath()
  const body = 'x'.repeat(20_000)
  await withStore(path, async (store) => {
    await append(store, 1, 10)
    await store.journal.append([item({ sourceRef: 'large', body: { body } })])
    await append(store, 11, 20)
    await indexAll(store)
  })
  const bytes = readFileSync(path)
  // The pages that only continue the large payload name a next page that there is not.
  let damaged = 0
  for (let at = 0; at < bytes.length; at += JOURNAL_PAGE_BYTES) {
    if (!bytes.subarray(at + 4, at + JOURNAL_PAGE_BYTES).every((byte) => byte === 0x78)) continue
    bytes.writeUInt32BE(0x7fffffff, at)
    damaged += 1
  }
  assert.ok(damaged > 5)
  writeFileSync(path, bytes)
  await withStore(path, async (store) => {
    let told = 0
    store.onFatal(() => (told += 1))
    await assert.rejects(store.events.payload(11, TENANT), { kind: 'rejected' })
    assert.equal((await store.inbox.events(TENANT, {}, null, 100)).events.length, 21)
    assert.equal(told, 0)
  })
})

test('an index that another version made is replaced and filled again', async () => {
  const path = await filled()
  const db = new DatabaseSync(indexPath(path))
  db.exec("UPDATE index_origin SET schema = 'of another version'; DROP TABLE repeats; CREATE TABLE later (a)")
  db.close()
  await assertFilledAgain(path, 10)
  const after = new DatabaseSync(indexPath(path))
  assert.equal(after.prepare("SELECT 1 FROM sqlite_master WHERE name = 'later'").get(), undefined)
  after.close()
})

test('an index of another database is filled again', async () => {
  const path = await filled()
  const other = newPath()
  await withStore(other, (store) => append(store, 1, 12))
  copyFileSync(indexPath(path), indexPath(other))
  await assertFilledAgain(other, 12)
})

test('an index that is ahead of a journal put back from a backup is filled again', async () => {
  const path = await filled()
  const backup = `${path}.backup`
  copyFileSync(path, backup)
  await withStore(path, async (store) => {
    await append(store, 11, 15)
    await indexAll(store)
    assert.equal(await countOf(store), 15)
  })
  copyFileSync(backup, path)
  await assertFilledAgain(path, 10)
})

test('an index that knows another event than the journal put back from a backup is filled again', async () => {
  const path = await filled()
  const [journal, index] = [`${path}.backup`, `${path}.index-backup`]
  copyFileSync(path, journal)
  await withStore(path, async (store) => {
    await append(store, 11, 12)
    await indexAll(store)
  })
  copyFileSync(indexPath(path), index)
  copyFileSync(journal, path)
  await withStore(path, (store) => append(store, 21, 25))
  copyFileSync(index, indexPath(path))
  await assertFilledAgain(path, 15)
})

test('whoever reads both files sees the index first: what it names is in the journal', async (t) => {
  const path = await filled()
  await withStore(path, async () => {
    const db = openReader(path)
    t.after(() => db.close())
    const program = db.prepare('EXPLAIN SELECT * FROM events e JOIN event_index i ON i.event_id = e.id').all()
    const files = program.filter(({ opcode }) => opcode === 'Transaction').map(({ p1 }) => p1)
    const names = db.prepare('PRAGMA database_list').all()
    const named = files.map((seq) => names.find((one) => one.seq === seq)?.name)
    assert.deepEqual(named, ['main', 'journal'])
    assert.match(db.location() ?? '', /\.index\.db$/)
  })
})

test('a step writes the words of all its rows at once', async () => {
  const path = newPath()
  await withStore(path, async (store) => {
    const rows = Array.from({ length: 100 }, (_, n) =>
      item({ channelRef: `page ${n}`, body: { message: { text: `word${n}` } } }),
    )
    await store.journal.append(rows)
    await indexAll(store)
  })
  const index = new DatabaseSync(indexPath(path), { readOnly: true })
  const { segments } = index.prepare('SELECT count(DISTINCT segid) AS segments FROM event_words_idx').get()!
  index.close()
  assert.equal(segments, 1)
})
