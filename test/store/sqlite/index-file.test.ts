// The file of the index: made, and made again, whatever is found in its place; never a reason to lose a message.

import assert from 'node:assert/strict'
import { copyFileSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { newUuid } from '../../../src/runtime/id.ts'
import { StoreRefused } from '../../../src/store/contract/failure.ts'
import type { ClaimRequest } from '../../../src/store/contract/processing.ts'
import type { Store } from '../../../src/store/contract/store.ts'
import { openStore } from '../../../src/store/open.ts'
import { indexPath, openReader } from '../../../src/store/sqlite/index/index-file.ts'
import { item, NOON, TENANT } from '../rows.ts'
import { indexAll } from '../suite.ts'
import { tempFolder } from '../../support/temp.ts'

const CLAIM: ClaimRequest = {
  tenant: TENANT,
  subscription: 'default',
  limit: 10,
  maxBytes: 1 << 20,
  ordered: true,
  channelRef: null,
  leaseId: newUuid(),
  leaseExpiresAt: NOON + 30_000,
  keyId: 'PPPPPPPPPP',
  maxAttempts: 3,
  now: NOON,
}

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
    const progress = { cursor: 10, lag: 0, searchable: 10, searchLag: 0, clearing: false }
    assert.deepEqual(await store.index.progress(), progress)
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

/** Overwrites the first page of a table. */
function damage(file: string, table: string): void {
  const db = new DatabaseSync(file)
  const root = db.prepare('SELECT rootpage FROM sqlite_master WHERE name = ?').get(table)!.rootpage as number
  const pageSize = Object.values(db.prepare('PRAGMA page_size').get()!)[0] as number
  db.close()
  const bytes = readFileSync(file)
  bytes.fill(0xff, (root - 1) * pageSize, root * pageSize)
  writeFileSync(file, bytes)
}

for (const [what, meet] of [
  ['a step', (store: Store) => store.index.step({ maxRows: 10, maxBytes: 1 << 20 })],
  ['a read', (store: Store) => store.inbox.events(TENANT, {}, null, 10)],
  ['a claim', (store: Store) => store.processing.claim(CLAIM)],
] as const) {
  test(`damage inside the index that ${what} meets: the index is emptied and filled again, and the store stays open`, async () => {
    const path = await filled()
    damage(indexPath(path), 'event_index')
    await withStore(path, async (store) => {
      const fatal: Error[] = []
      store.onFatal((error) => fatal.push(error))
      const looked = new Promise<string>((resolve) => store.onDamage(resolve))
      await append(store, 11, 11)
      await assert.rejects(meet(store), { kind: 'damaged' })
      assert.match(await looked, /^the index is damaged; it was emptied/)
      await indexAll(store)
      assert.deepEqual([await countOf(store), fatal], [11, []])
    })
    await assertFilledAgain(path, 11)
  })
}

test('damage in the journal fails the read that meets it, and nothing else: the index is kept', async () => {
  const path = await filled()
  damage(path, 'dedupe')
  await withStore(path, async (store) => {
    const told: Error[] = []
    store.onFatal((failure) => told.push(failure))
    await assert.rejects(store.inbox.events(TENANT, { sourceRef: '1' }, null, 10), { kind: 'damaged' })
    // The indexer works one job after the other: after this one the index was checked.
    await store.index.requestRebuild()
    assert.deepEqual(told, [])
    assert.equal((await store.inbox.conversations(TENANT, Number.MAX_SAFE_INTEGER, 10)).length, 1)
  })
})

for (const [what, lose] of [
  ['missing', (path: string) => rmSync(path)],
  ['empty', (path: string) => writeFileSync(path, '')],
] as const) {
  test(`a journal that is ${what} beside its index is not taken for a new database`, async () => {
    const path = await filled()
    lose(path)
    const before = readFileSync(indexPath(path))
    for (const role of ['server', 'tool'] as const) {
      await assert.rejects(openStore(`sqlite:${path}`, { role }), (error: Error) => {
        assert.ok(error instanceof StoreRefused)
        assert.ok(error.message.includes(`The database ${path} is ${what}`), error.message)
        assert.ok(error.message.includes(`delete ${indexPath(path)}`), error.message)
        return true
      })
    }
    assert.deepEqual(readFileSync(indexPath(path)), before)
    rmSync(indexPath(path))
    await withStore(path, async (store) => assert.equal((await store.index.progress()).cursor, 0))
  })
}

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

test('an index that followed more of retention than the journal put back from a backup is filled again', async () => {
  const path = await filled()
  const backup = `${path}.backup`
  copyFileSync(path, backup)
  await withStore(path, async (store) => {
    const request = { tenant: TENANT, before: Date.now(), now: Date.now(), purgesUnprocessed: true }
    const { rows } = await store.retention.purgeStep({ ...request, after: null, dryRun: false })
    assert.equal(rows, 10)
    for (let steps = 0; steps < 100 && (await store.retention.followPurges()); steps++);
    assert.equal(await countOf(store), undefined)
  })
  copyFileSync(backup, path)
  await assertFilledAgain(path, 10)
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
