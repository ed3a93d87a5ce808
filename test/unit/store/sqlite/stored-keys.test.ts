// Which keys are surely new: never one that is known, and most of those that are.

import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { RecentKeys } from '../../../../src/store/recent-keys.ts'
import { openConnection } from '../../../../src/store/sqlite/connection.ts'
import { prepareInsertKey } from '../../../../src/store/sqlite/journal-rows.ts'
import { migrate } from '../../../../src/store/sqlite/schema.ts'
import { StoredKeys } from '../../../../src/store/sqlite/stored-keys.ts'
import { tempFolder } from '../../../support/temp.ts'

const BOUNDS = { sliceKeys: 16, fewestBits: 1024, mostBits: 2 ** 16 }

function keyOf(n: number): Buffer {
  return createHash('sha256').update(String(n)).digest().subarray(0, 16)
}

function prepare(t: TestContext) {
  const db = openConnection(join(tempFolder('stored'), 'intray.db'), 'writer')
  t.after(() => db.close())
  migrate(db)
  const insertKey = prepareInsertKey(db)
  const recent = new RecentKeys()
  const stored = new StoredKeys(db, recent, BOUNDS)
  const insert = (n: number) => insertKey(n, (n % 3) + 1, keyOf(n), Buffer.alloc(32), Buffer.alloc(16))
  const readAll = () => {
    let slices = 0
    for (; stored.hasMore; slices++) stored.readSome()
    return slices
  }
  const maybes = (from: number, to: number) => {
    let count = 0
    for (let n = from; n < to; n++) if (stored.mayHave(keyOf(n))) count += 1
    return count
  }
  return { db, recent, stored, insert, readAll, maybes }
}

test('until all is read every key may be known; then those that are not are told, but for a few', (t) => {
  const { stored, insert, readAll, maybes } = prepare(t)
  for (let n = 1; n <= 500; n++) insert(n)
  stored.startAgain(500)
  stored.readSome()
  assert.equal(maybes(10_000, 11_000), 1000)
  assert.equal(readAll(), 31)
  assert.equal(maybes(1, 501), 500)
  assert.ok(maybes(10_000, 11_000) < 50)
})

test('keys that come while it is read are known, wherever they go', (t) => {
  const { stored, recent, insert, readAll, maybes } = prepare(t)
  for (let n = 1; n <= 200; n++) insert(n)
  for (let n = 201; n <= 300; n++) recent.add(keyOf(n), n)
  stored.startAgain(300)
  for (let n = 201; stored.hasMore; n++) {
    stored.readSome()
    // Sorted in, before or behind the place where it is read; and one that has just come.
    insert(n)
    stored.add(keyOf(1000 + n))
  }
  for (let n = 201; n <= 300; n++) recent.remove(keyOf(n), n)
  assert.equal(maybes(1, 301), 300)
  assert.ok(stored.mayHave(keyOf(1201)))
  assert.equal(readAll(), 0)
})

test('a crowded table is made anew, larger, and the old one is asked meanwhile; up to a bound', (t) => {
  const { db, stored, insert, readAll, maybes } = prepare(t)
  stored.startAgain(0)
  assert.equal(readAll(), 1)
  db.exec('BEGIN')
  let grown = 0
  for (let n = 1; n <= 20_000; n++) {
    insert(n)
    stored.add(keyOf(n))
    if (!stored.hasMore || n % 100 !== 0) continue
    grown += 1
    stored.readSome()
    assert.equal(maybes(1, n + 1), n, 'known while it is read')
    assert.ok(maybes(100_000, 101_000) < 200, 'and most others are still told')
    readAll()
    assert.equal(maybes(1, n + 1), n)
  }
  db.exec('COMMIT')
  assert.equal(grown, 3, '1024, 4096, 16384 and 65536 bits')
  assert.equal(maybes(1, 20_001), 20_000)
  assert.ok(maybes(100_000, 101_000) < 500, 'more crowded than it should be, and still of use')
})

test('a key that is sent again and again makes it no more crowded', (t) => {
  const { stored, readAll } = prepare(t)
  stored.startAgain(0)
  readAll()
  for (let n = 0; n < 10_000; n++) stored.add(keyOf(n % 100))
  assert.equal(stored.hasMore, false)
})

test('a slice that fails changes nothing, and is read when it is tried again', (t) => {
  const { db, stored, insert, readAll, maybes } = prepare(t)
  for (let n = 1; n <= 50; n++) insert(n)
  stored.startAgain(50)
  stored.readSome()
  db.exec('ALTER TABLE dedupe RENAME TO away')
  assert.throws(() => stored.readSome(), /dedupe/)
  assert.deepEqual([stored.hasMore, maybes(1000, 1100)], [true, 100])
  db.exec('ALTER TABLE away RENAME TO dedupe')
  assert.equal(readAll(), 3)
  assert.equal(maybes(1, 51), 50)
  assert.ok(maybes(1000, 1100) < 10)
})
