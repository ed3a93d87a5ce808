// A database that Litestream replicates: the server truncates the WAL in place of writing it from its start again, and does not
// wait for the read transaction that Litestream holds. `npm run prove -- litestream` is the proof with Litestream itself.

import assert from 'node:assert/strict'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { type TestContext, test } from 'node:test'
import { openStore } from '../../../src/store/open.ts'
import { CHECKPOINT_PAGES, JOURNAL_PAGE_BYTES } from '../../../src/store/sqlite/connection.ts'
import { tempFolder } from '../../support/temp.ts'
import { until } from '../../support/until.ts'
import { item } from '../rows.ts'

const CHECKPOINT_BYTES = CHECKPOINT_PAGES.journal * JOURNAL_PAGE_BYTES
const BODY_BYTES = 1024 * 1024
/** Shorter than a commit waits for a lock. */
const MAX_CLOSE_MS = 4000

/** A running server's store; Litestream creates its table while the server runs. */
async function openServer(t: TestContext, { isReplicated }: { isReplicated: boolean }) {
  const path = join(tempFolder('replicated'), 'intray.db')
  const store = await openStore(`sqlite:${path}`, { role: 'server' })
  t.after(() => store.close())
  const other = new DatabaseSync(path, { timeout: 5000 })
  t.after(() => other.isOpen && other.close())
  if (isReplicated) other.exec('CREATE TABLE _litestream_seq (id INTEGER PRIMARY KEY, seq INTEGER)')
  const body = 'x'.repeat(BODY_BYTES)
  const append = () => store.journal.append([item({ body })])
  const walBytes = () => statSync(`${path}-wal`).size
  return { store, other, append, walBytes }
}

test('under Litestream a checkpoint truncates the WAL', async (t) => {
  const { append, walBytes } = await openServer(t, { isReplicated: true })
  let largest = 0
  await until('the WAL is truncated', async () => {
    await append()
    largest = Math.max(largest, walBytes())
    return walBytes() < largest
  })
  // The server may truncate before the size after the last append is looked at.
  assert.ok(largest + BODY_BYTES > CHECKPOINT_BYTES)
  await append()
  assert.ok(walBytes() < CHECKPOINT_BYTES, 'a commit begins a new file')
})

test('without Litestream a checkpoint keeps the file of the WAL', async (t) => {
  const { append, walBytes } = await openServer(t, { isReplicated: false })
  let written = 0
  for (let largest = 0; written < 3 * CHECKPOINT_BYTES; written += BODY_BYTES) {
    await append()
    assert.ok(walBytes() >= largest)
    largest = walBytes()
  }
  assert.ok(walBytes() < written, 'control: it is written from its start again')
})

test('a server that stops does not wait for a reader', async (t) => {
  // One that the machine kept waiting is watched anew. One that waits for the reader is never this quick.
  await until('a server stops before a commit would give up', async () => {
    const { store, other, append } = await openServer(t, { isReplicated: true })
    await append()
    other.exec('BEGIN')
    other.prepare('SELECT count(*) FROM events').get()
    await append()
    const startedAt = performance.now()
    await store.close()
    return performance.now() - startedAt < MAX_CLOSE_MS
  })
})
