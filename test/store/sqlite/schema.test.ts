// The schema: made once, whole or not at all, by whoever comes first, and never by code that is older than it.

import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { StoreRefused } from '../../../src/store/contract/failure.ts'
import { pendingMigrations, readMigrations } from '../../../src/store/migrations.ts'
import { openStore } from '../../../src/store/open.ts'
import { migrate, needsMigration } from '../../../src/store/sqlite/schema.ts'
import { type Child, startChild } from '../child.ts'
import { append } from '../suite.ts'
import { tempFolder } from '../../support/temp.ts'

const SHIPPED = readMigrations(new URL('../../../src/store/sqlite/migrations/', import.meta.url))

const newPath = (): string => join(tempFolder('schema'), 'intray.db')

function folderOf(files: Record<string, string>): URL {
  const folder = tempFolder('migrations')
  for (const [name, sql] of Object.entries(files)) writeFileSync(join(folder, name), sql)
  return pathToFileURL(`${folder}/`)
}

function tables(db: DatabaseSync): unknown[] {
  return db
    .prepare("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name")
    .all()
    .map(({ name }) => name)
}

/** A database of this code, changed by hand, and then opened. */
async function openChanged(sql: string, role: 'server' | 'tool'): Promise<void> {
  const path = newPath()
  await (await openStore(`sqlite:${path}`, { role: 'tool' })).close()
  const db = new DatabaseSync(path)
  db.exec(sql)
  db.close()
  await (await openStore(`sqlite:${path}`, { role })).close()
}

test('migrations are read in the order of their numbers, with name and checksum', () => {
  const folder = folderOf({ '0002_second.sql': 'SELECT 2', '0001_first.sql': 'SELECT 1', 'notes.txt': 'not SQL' })
  const found = readMigrations(folder)
  assert.deepEqual(
    found.map(({ version, name, sql }) => ({ version, name, sql })),
    [
      { version: 1, name: 'first', sql: 'SELECT 1' },
      { version: 2, name: 'second', sql: 'SELECT 2' },
    ],
  )
  assert.match(found[0]!.checksum, /^[0-9a-f]{64}$/)
  assert.notEqual(found[0]!.checksum, found[1]!.checksum)
})

const GAPS: Record<string, string[]> = {
  'a number is missing': ['0001_a.sql', '0003_c.sql'],
  'a number is there twice': ['0001_a.sql', '0001_b.sql'],
  'the first is not 1': ['0002_b.sql'],
  'a file has no number': ['0001_a.sql', 'later_b.sql'],
}
for (const [name, files] of Object.entries(GAPS)) {
  test(`a folder of migrations in which ${name} is refused`, () => {
    assert.throws(
      () => readMigrations(folderOf(Object.fromEntries(files.map((file) => [file, 'SELECT 1'])))),
      /expected number/,
    )
  })
}

test('only what was not applied is pending', () => {
  const known = readMigrations(folderOf({ '0001_a.sql': 'A', '0002_b.sql': 'B', '0003_c.sql': 'C' }))
  assert.deepEqual(pendingMigrations(known, []), known)
  assert.deepEqual(pendingMigrations(known, known.slice(0, 1)), known.slice(1))
  assert.deepEqual(pendingMigrations(known, known), [])
})

test('a database these migrations did not make is refused', () => {
  const known = readMigrations(folderOf({ '0001_a.sql': 'A', '0002_b.sql': 'B' }))
  const [first, second] = known
  const newer = { version: 3, name: 'c', checksum: 'x' }
  const edited = { ...first!, checksum: 'other' }
  assert.throws(() => pendingMigrations(known, [first!, second!, newer]), StoreRefused)
  assert.throws(() => pendingMigrations(known, [edited, second!]), StoreRefused)
  // The second without the first: applying the second again would be wrong, and applying the first worse.
  assert.throws(() => pendingMigrations(known, [second!]), StoreRefused)
})

for (const role of ['server', 'tool'] as const) {
  test(`a schema newer than the code is refused by a ${role}`, async () => {
    await assert.rejects(
      openChanged("INSERT INTO schema_migrations VALUES (999, 'from_the_future', 'x', 0)", role),
      (error) => error instanceof StoreRefused && /newer/.test(error.message),
    )
  })

  test(`a database whose schema is that of another commit is refused by a ${role}`, async () => {
    await assert.rejects(
      openChanged("UPDATE schema_migrations SET checksum = 'other' WHERE version = 1", role),
      (error) =>
        error instanceof StoreRefused &&
        /made by another commit of Intray: its schema 1 \(schema\)/.test(error.message),
    )
  })
}

test('a database that is up to date is not written to by an open', async () => {
  const path = newPath()
  await (await openStore(`sqlite:${path}`, { role: 'tool' })).close()
  const db = new DatabaseSync(path)
  assert.equal(needsMigration(db), false)
  const before = db.prepare('PRAGMA data_version').get()
  await (await openStore(`sqlite:${path}`, { role: 'tool' })).close()
  assert.deepEqual(db.prepare('PRAGMA data_version').get(), before)
  db.close()
})

/** What a later version would bring with it. */
const later = (sql: string) => ({ version: SHIPPED.length + 1, name: 'later', checksum: 'later', sql })

test('a database with messages is brought to the schema of a later version, and keeps them', async () => {
  const path = newPath()
  const store = await openStore(`sqlite:${path}`, { role: 'tool' })
  const id = await append(store, { sourceRef: 'ref:1' })
  await store.close()
  const db = new DatabaseSync(path)
  const known = [...SHIPPED, later('ALTER TABLE events ADD COLUMN added TEXT')]
  assert.equal(needsMigration(db, known), true)
  assert.equal(migrate(db, known), known.length)
  assert.equal(needsMigration(db, known), false)
  assert.deepEqual(
    { ...db.prepare('SELECT id, source_ref, added FROM events').get() },
    { id, source_ref: 'ref:1', added: null },
  )
  db.close()
  await assert.rejects(openStore(`sqlite:${path}`, { role: 'server' }), { name: 'StoreRefused', message: /newer/ })
})

test('migrations that fail half-way leave nothing', () => {
  const db = new DatabaseSync(newPath())
  const known = [...SHIPPED, later('CREATE TABLE more (n INTEGER) STRICT; CREATE TABLE events (n INTEGER) STRICT')]
  assert.throws(() => migrate(db, known), /table events already exists/)
  assert.deepEqual(tables(db), [])
  assert.equal(db.isTransaction, false)
  assert.equal(migrate(db), SHIPPED.length)
  assert.equal(needsMigration(db), false)
  db.close()
})

for (const role of ['server', 'tool'] as const) {
  test(`a database of another program is refused with a sentence and left as it is by a ${role}`, async () => {
    const path = newPath()
    const db = new DatabaseSync(path)
    db.exec("CREATE TABLE events (mine TEXT); INSERT INTO events VALUES ('theirs')")
    await assert.rejects(openStore(`sqlite:${path}`, { role }), (error) => {
      assert.ok(error instanceof StoreRefused, `not a StoreRefused: ${String(error)}`)
      assert.ok(error.message.includes(path))
      return true
    })
    assert.deepEqual(tables(db), ['events'])
    assert.equal(db.prepare('SELECT mine FROM events').get()?.mine, 'theirs')
    db.close()
  })
}

/** Waits until every child is loaded, then lets all of them open at once. */
async function openAtOnce(children: readonly Child[]): Promise<string[]> {
  await Promise.all(children.map((child) => child.line('waiting')))
  for (const child of children) child.go()
  const opened = await Promise.all(children.map((child) => child.line('opened ')))
  for (const child of children) assert.equal((await child.exited).code, 0)
  return opened
}

test('ten processes that open a new database at once all succeed, and one schema results', async (t) => {
  for (let round = 0; round < 3; round++) {
    const path = newPath()
    const children = Array.from({ length: 10 }, () => startChild(t, 'open', `sqlite:${path}`, 'tool'))
    const opened = await openAtOnce(children)
    assert.deepEqual(new Set(opened).size, 1, `all found one schema and one identity: ${opened}`)
    const db = new DatabaseSync(path)
    const applied = db.prepare('SELECT version FROM schema_migrations ORDER BY version').all()
    assert.deepEqual(
      applied.map(({ version }) => version),
      applied.map((_, index) => index + 1),
    )
    assert.equal(db.prepare('SELECT count(*) AS n FROM meta').get()?.n, 2)
    assert.equal(db.prepare('PRAGMA integrity_check').get()?.integrity_check, 'ok')
    db.close()
  }
})

test('a server and tools that open a new database at once all succeed', async (t) => {
  for (let round = 0; round < 3; round++) {
    const url = `sqlite:${newPath()}`
    const server = startChild(t, 'open', url, 'server')
    await openAtOnce([server, ...Array.from({ length: 9 }, () => startChild(t, 'open', url, 'tool'))])
  }
})
