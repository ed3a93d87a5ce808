// From arrival to its place in the journal: a message is always in one of the two, and known in both.

import assert from 'node:assert/strict'
import { copyFileSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { type TestContext, test } from 'node:test'
import { newUuid } from '../../../../src/runtime/id.ts'
import type { Store } from '../../../../src/store/contract/store.ts'
import { openStore } from '../../../../src/store/open.ts'
import { RecentKeys } from '../../../../src/store/recent-keys.ts'
import { outcomeOf, prepareAppend } from '../../../../src/store/sqlite/append.ts'
import { packBatch } from '../../../../src/store/sqlite/append-batch.ts'
import { openConnection } from '../../../../src/store/sqlite/connection.ts'
import { openSqliteCopy } from '../../../../src/store/sqlite/copy.ts'
import { prepareFiling } from '../../../../src/store/sqlite/filing.ts'
import { openIndexWriter } from '../../../../src/store/sqlite/index-file.ts'
import { prepareIndexOperations } from '../../../../src/store/sqlite/operations.ts'
import { migrate } from '../../../../src/store/sqlite/schema.ts'
import { idOf, item, TENANT } from '../../../store/rows.ts'
import { append, failure, indexAll, outcomesOf, payloadText, WIDE } from '../../../store/suite.ts'
import { tempFolder } from '../../../support/temp.ts'

interface Opened {
  readonly path: string
  readonly store: Store
  count(table: 'arrivals' | 'events' | 'dedupe' | 'unsorted_keys'): number
}

async function open(t: TestContext): Promise<Opened> {
  const path = join(tempFolder('filing'), 'intray.db')
  const store = await openStore(`sqlite:${path}`, { role: 'server' })
  t.after(() => store.close())
  return {
    path,
    store,
    count: (table) => inFile(path, (db) => Number(db.prepare(`SELECT count(*) AS n FROM ${table}`).get()!.n)),
  }
}

function inFile<T>(path: string, use: (db: DatabaseSync) => T): T {
  const db = new DatabaseSync(path, { timeout: 5000 })
  try {
    return use(db)
  } finally {
    db.close()
  }
}

const LARGE = 'x'.repeat(70_000)

test('a batch is one row until it is filed, and each of its messages is found before and after', async (t) => {
  const { store, count } = await open(t)
  const items = Array.from({ length: 20 }, (_, n) => item({ sourceRef: `a:${n}`, body: `${n}` }))
  const ids = (await store.journal.append(items)).map(idOf)
  assert.deepEqual([count('arrivals'), count('events'), count('dedupe')], [1, 0, 0])
  const look = async () =>
    Promise.all(
      ids.map(async (id) => ({ event: await store.events.find(id, TENANT), text: await payloadText(store, id) })),
    )
  const before = await look()
  assert.deepEqual(
    before.map(({ text }) => text),
    items.map((_, n) => `${n}`),
  )
  assert.equal(await store.events.find(ids[0]!, { ...TENANT, accountId: 8 }), null)
  assert.equal(await store.events.payload(ids[0]!, { ...TENANT, companyId: 43 }), null)
  assert.equal(await store.events.find(ids.at(-1)! + 1), null)
  assert.equal(await store.events.watermark(), 20)
  await indexAll(store)
  assert.deepEqual([count('arrivals'), count('events'), count('unsorted_keys'), count('dedupe')], [0, 20, 1, 0])
  assert.deepEqual(await look(), before)
  assert.equal(await store.events.watermark(), 20)
})

test('a large message goes to its place at once, and the index still takes none before its turn', async (t) => {
  const { path, store, count } = await open(t)
  const small = await append(store, { body: 'small' })
  const large = await append(store, { body: LARGE })
  assert.deepEqual([count('arrivals'), count('events')], [1, 1])
  const index = openIndexWriter(path)
  const { cursor, indexed, lag } = prepareIndexOperations(index).indexStep(WIDE)
  index.close()
  assert.deepEqual({ cursor, indexed, lag }, { cursor: 0, indexed: 0, lag: 2 }, 'the one before it is not filed')
  await indexAll(store)
  for (const id of [small, large]) assert.ok(await store.events.indexEntry((await store.events.find(id))!), `${id}`)
})

test('a key is known before it is filed, after, and to whoever opens the file next', async (t) => {
  const { path, store, count } = await open(t)
  const first = item({ sourceRef: 'a:1', body: 'one' })
  const [stored] = await store.journal.append([first])
  const again = [first, item({ sourceRef: 'a:1', body: 'one' }), item({ sourceRef: 'a:1', body: 'two' })]
  const outcomes = ['stored', 'duplicate', 'conflict']
  assert.deepEqual(outcomesOf(await store.journal.append(again)), outcomes)
  assert.equal(count('arrivals'), 1)
  await store.close()

  const next = await openStore(`sqlite:${path}`, { role: 'server' })
  t.after(() => next.close())
  assert.deepEqual(outcomesOf(await next.journal.append(again)), outcomes)
  assert.equal(count('arrivals'), 1, 'still not filed')
  await indexAll(next)
  const last = await next.journal.append(again)
  assert.deepEqual(outcomesOf(last), outcomes)
  assert.ok(last.every((outcome) => idOf(outcome) === idOf(stored)))
  await indexAll(next)
  const repeats = await next.events.repeats((await next.events.find(idOf(stored)))!)
  assert.deepEqual([repeats?.resends, repeats?.revisions], [5, 1])
})

test('a re-send is not counted before the message it repeats is filed', async (t) => {
  const { path, store } = await open(t)
  await store.journal.append([item({ sourceRef: 'a:1', body: 'one' })])
  await store.journal.append([item({ sourceRef: 'a:1', body: 'one' })])
  const index = openIndexWriter(path)
  assert.equal(prepareIndexOperations(index).indexStep(WIDE).lag, 2)
  index.close()
  const traffic = async () => (await store.traffic.hours(TENANT, 0)).map(({ events, resends }) => [events, resends])
  assert.deepEqual(await traffic(), [])
  await indexAll(store)
  assert.deepEqual(await traffic(), [[1, 1]])
})

test('what another process files under a server is known to it all the same', async (t) => {
  const { path, store, count } = await open(t)
  const id = await append(store, { sourceRef: 'a:1', body: 'one' })
  inFile(path, (db) => prepareFiling(db, null).fileSome(10))
  assert.deepEqual([count('arrivals'), count('dedupe')], [0, 1])
  const [outcome] = await store.journal.append([item({ sourceRef: 'a:1', body: 'one' })])
  assert.deepEqual(outcome, { outcome: 'duplicate', id })
  await indexAll(store)
})

test('a command that stores beside a server knows what has arrived there', async (t) => {
  const { path, store, count } = await open(t)
  const id = await append(store, { sourceRef: 'a:1', body: 'one' })
  const tool = await openStore(`sqlite:${path}`, { role: 'tool' })
  t.after(() => tool.close())
  const outcomes = await tool.journal.append([item({ sourceRef: 'a:1', body: 'one' }), item({ body: 'two' })])
  assert.deepEqual(outcomes, [
    { outcome: 'duplicate', id },
    { outcome: 'stored', id: id + 1 },
  ])
  assert.deepEqual([count('arrivals'), count('events')], [0, 2])
  assert.equal(await append(store), id + 2)
})

test('what cannot be filed stays where it is, and messages go on coming in', async (t) => {
  const { path, store, count } = await open(t)
  const id = await append(store, { sourceRef: 'a:1', body: 'one' })
  inFile(path, (db) =>
    db
      .prepare(
        "INSERT INTO events SELECT ?, 'event', NULL, 1, 1, 1, '', '', '', NULL, NULL, NULL, '', 0, x'', NULL, '', '', NULL, NULL, NULL, x''",
      )
      .run(id),
  )
  await assert.rejects(store.index.step(WIDE), failure('rejected'))
  assert.deepEqual([count('arrivals'), count('unsorted_keys'), count('dedupe')], [1, 0, 0])
  assert.equal(await append(store), id + 1)
  inFile(path, (db) => db.prepare('DELETE FROM events WHERE id = ?').run(id))
  await indexAll(store)
  assert.equal(await payloadText(store, id), 'one')
})

test('before a database is frozen, all that has arrived is filed; after that nothing arrives', async (t) => {
  const { path, store, count } = await open(t)
  const side = await openSqliteCopy(path, true)
  t.after(() => side.close())
  await append(store)
  assert.equal(count('arrivals'), 1)
  await side.freeze()
  assert.deepEqual([count('arrivals'), count('events'), count('dedupe')], [0, 1, 1])
  await assert.rejects(store.journal.append([item()]), failure('unavailable'))
  await side.release()
  await append(store)
})

test('a row of arrivals is bounded, in messages and in bytes', async (t) => {
  const { store, count } = await open(t)
  await store.journal.append(Array.from({ length: 300 }, () => item({ body: 'x' })))
  assert.equal(count('arrivals'), 3)
  const ids = (
    await store.journal.append(Array.from({ length: 10 }, (_, n) => item({ body: `${n}`.repeat(50_000) })))
  ).map(idOf)
  assert.equal(count('arrivals'), 3 + 4)
  for (const [n, id] of ids.entries()) assert.equal(await payloadText(store, id), `${n}`.repeat(50_000))
  const payload = await store.events.payload(ids[0]!)
  assert.equal(payload?.buffer.byteLength, 50_000, 'nobody is handed the bytes of others with it')
  const known = () => item({ sourceRef: 'known', body: 'k'.repeat(50_000) })
  await store.journal.append([known()])
  await store.journal.append(Array.from({ length: 10 }, () => [known(), item({ body: 'x' })]).flat())
  assert.equal(count('arrivals'), 3 + 4 + 1 + 1, 'what came before takes no room beside what is new')
})

test('past the bound of what is not filed, messages go to their places at once', (t) => {
  const db = openConnection(join(tempFolder('filing'), 'intray.db'), 'writer')
  t.after(() => db.close())
  migrate(db)
  const recent = new RecentKeys()
  const appendAll = prepareAppend(db, prepareFiling(db, recent), recent, null, 3)
  const items = Array.from({ length: 5 }, (_, n) => item({ sourceRef: `a:${n}` }))
  const send = () => items.map((one) => outcomeOf(appendAll([packBatch([one])])[0]![0]!))
  const first = send()
  assert.deepEqual(first.map(idOf), [1, 2, 3, 4, 5])
  const count = (table: string) => Number(db.prepare(`SELECT count(*) AS n FROM ${table}`).get()!.n)
  assert.deepEqual([count('arrivals'), count('events'), recent.size], [3, 2, 3])
  assert.deepEqual(send(), first, 'each is known, wherever it lies')
})

test('a transaction that fails leaves no key behind', (t) => {
  const db = openConnection(join(tempFolder('filing'), 'intray.db'), 'writer')
  t.after(() => db.close())
  migrate(db)
  const recent = new RecentKeys()
  const appendAll = prepareAppend(db, prepareFiling(db, recent), recent)
  const batch = (ref: string) => packBatch([item({ sourceRef: ref, mintedKey: newUuid() })])
  appendAll([batch('a:0')])
  db.exec("CREATE TRIGGER full BEFORE INSERT ON arrivals BEGIN SELECT RAISE(ABORT, 'not now'); END")
  db.exec("CREATE TRIGGER full_too BEFORE INSERT ON dedupe BEGIN SELECT RAISE(ABORT, 'not now'); END")
  const outcomes = appendAll([batch('a:1'), batch('a:2')]).flat()
  assert.deepEqual(outcomesOf(outcomes.map(outcomeOf)), ['failed', 'failed'])
  assert.equal(recent.size, 1)
  db.exec('DROP TRIGGER full; DROP TRIGGER full_too')
  assert.deepEqual(appendAll([batch('a:1'), batch('a:2')]), [[2], [3]])
})

test('a backup that was made before messages were filed is put back: the index is made again', async (t) => {
  const { path, store } = await open(t)
  const ids: number[] = []
  for (let n = 0; n < 300; n++) ids.push(await append(store, { body: `${n}` }))
  const backup = join(tempFolder('filing'), 'backup.db')
  inFile(path, (db) => db.exec(`VACUUM INTO '${backup}'`))
  await indexAll(store)
  await store.close()
  rmSync(`${path}-wal`, { force: true })
  rmSync(`${path}-shm`, { force: true })
  copyFileSync(backup, path)
  assert.equal(
    inFile(path, (db) => Number(db.prepare('SELECT count(*) AS n FROM arrivals').get()!.n)),
    300,
  )

  const restored = await openStore(`sqlite:${path}`, { role: 'server' })
  t.after(() => restored.close())
  await indexAll(restored, { maxRows: 50, maxBytes: 1 << 20 })
  for (const id of ids) assert.ok(await restored.events.indexEntry((await restored.events.find(id))!), `${id}`)
})

test('a damaged arrival is not taken apart: it stays, and what is filed is indexed', async (t) => {
  const { path, store, count } = await open(t)
  const before = await append(store, { body: LARGE })
  await store.journal.append([item({ body: 'one' }), item({ body: 'two' }), item({ body: 'three' })])
  inFile(path, (db) => {
    const batch = Buffer.from(db.prepare('SELECT batch FROM arrivals').get()!.batch as Uint8Array)
    batch.writeUInt32LE(batch.readUInt32LE(4) + 1, 4)
    db.prepare('UPDATE arrivals SET batch = ?').run(batch)
  })
  await assert.rejects(store.index.step(WIDE), failure('rejected'))
  assert.deepEqual([count('arrivals'), count('events')], [1, 1])
  assert.ok(await store.events.indexEntry((await store.events.find(before))!))
  await store.close()
  await assert.rejects(openStore(`sqlite:${path}`, { role: 'server' }), /2 to 4 is damaged/)
})

test('a database that is damaged where it is looked at first is refused', async (t) => {
  const { path, store } = await open(t)
  await store.journal.append(Array.from({ length: 300 }, () => item({ body: 'x'.repeat(3000) })))
  await store.close()
  const bytes = readFileSync(path)
  bytes.fill(0xff, Math.floor(bytes.length / 8192) * 4096)
  writeFileSync(path, bytes)
  await assert.rejects(openStore(`sqlite:${path}`, { role: 'server' }), /damaged|malformed/)
})
