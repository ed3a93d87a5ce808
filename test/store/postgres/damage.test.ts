// A damaged page of the journal on PostgreSQL, whose checksum tells: the indexer passes over its rows, lists and streams too, doctor
// names them, and salvage copies the rest.

import assert from 'node:assert/strict'
import { closeSync, openSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { newUuid } from '../../../src/runtime/id.ts'
import { openStore } from '../../../src/store/open.ts'
import { runToEnd } from '../../support/command.ts'
import { createDatabase, withClient } from '../../support/postgres/databases.ts'
import { newCluster, startPostgres } from '../../support/postgres/server.ts'
import { LAUNCHER } from '../../support/process.ts'
import { tempFolder } from '../../support/temp.ts'
import { item, NOON, TENANT } from '../rows.ts'
import { failure, indexAll } from '../suite.ts'

const EVENTS = 200
const PAGE_BYTES = 8192
/** One of events that are indexed, one of events that are not. */
const PAGES = [1, 10]

const CLAIM = {
  tenant: TENANT,
  subscription: 'default',
  limit: 50,
  maxBytes: 1 << 20,
  ordered: true,
  channelRef: null,
  keyId: 'PPPPPPPPPP',
  maxAttempts: 3,
}

const message = (at: number) => {
  const ref = { source_ref: `ref-${at}`, channel_ref: `page-${at % 10}` }
  return item({ sourceRef: ref.source_ref, channelRef: ref.channel_ref, body: { ...ref, rest: 'x'.repeat(300) } })
}

test('rows on a page with a wrong checksum are passed over, named and left out; all others are served and salvaged', async (t) => {
  const folder = await newCluster()
  let server = await startPostgres(folder, {})
  const url = await createDatabase(server.url('postgres'))
  const name = new URL(url).pathname.slice(1)
  const first = await openStore(url, { role: 'server' })
  for (let at = 0; at < EVENTS; at += 50) {
    // The last half is not indexed before the damage.
    if (at === EVENTS / 2) await indexAll(first)
    await first.journal.append(Array.from({ length: 50 }, (_, n) => message(at + n)))
  }
  await first.close()
  const { file, hidden } = await withClient(url, async (client) => {
    await client.query('CHECKPOINT')
    const { rows: checksums } = await client.query('SHOW data_checksums')
    assert.equal(checksums[0].data_checksums, 'on')
    const { rows } = await client.query("SELECT pg_relation_filepath('intray.events') AS path")
    const idsOn = async (page: number) => {
      const select = `SELECT id::int FROM intray.events WHERE ctid >= '(${page},0)' AND ctid < '(${page + 1},0)' ORDER BY id`
      return (await client.query(select)).rows.map(({ id }) => id as number)
    }
    return { file: rows[0].path as string, hidden: await Promise.all(PAGES.map(idsOn)).then((ids) => ids.flat()) }
  })
  const notIndexed = hidden.filter((id) => id > EVENTS / 2)
  assert.ok(notIndexed.length > 1 && hidden.length > notIndexed.length + 1, `what is injected: ${hidden}`)
  await server.stop()
  const handle = openSync(join(server.dataFolder, file), 'r+')
  for (const page of PAGES) {
    writeSync(handle, Buffer.alloc(PAGE_BYTES / 2, 0x7f), 0, PAGE_BYTES / 2, PAGE_BYTES * page + PAGE_BYTES / 2)
  }
  closeSync(handle)
  server = await startPostgres(folder, {})
  t.after(() => server.stop())
  const databaseUrl = server.url(name)

  const store = await openStore(databaseUrl, { role: 'server' })
  let unreadable = 0
  const { lag } = await indexAll(store, undefined, (step) => (unreadable += step.unreadable))
  assert.equal(unreadable, notIndexed.length)
  assert.ok(lag >= 0)
  const { events } = await store.inbox.events(TENANT, {}, null, EVENTS)
  assert.equal(events.length, EVENTS - hidden.length)
  await assert.rejects(store.events.find(hidden[0]!), failure('damaged'))
  assert.equal((await store.metrics.read(Date.now())).unreadable, notIndexed.length)
  const again = await store.journal.append([message(EVENTS + 1)])
  assert.equal(again[0]?.outcome, 'stored')
  await indexAll(store)
  const claimed: number[] = []
  for (let tries = 0; tries < EVENTS; tries++) {
    const now = NOON + tries
    const events = await store.processing.claim({ ...CLAIM, leaseId: newUuid(), leaseExpiresAt: now + 60_000, now })
    if (!events || events.length === 0) break
    claimed.push(...events.map(({ event }) => event.id))
    const items = events.map(({ event, leaseId }) => ({ id: event.id, leaseId }))
    await store.processing.ack({ tenant: TENANT, subscription: 'default', items, now })
  }
  const readable = Array.from({ length: EVENTS + 1 }, (_, at) => at + 1).filter((id) => !hidden.includes(id))
  assert.deepEqual(
    claimed.toSorted((a, b) => a - b),
    readable,
  )
  const all = { ids: null, channelRef: null, deadAfter: null, deadBefore: null }
  const parked = await store.processing.countDead({ tenant: TENANT, subscription: 'default' }, all)
  assert.equal(parked, hidden.length - notIndexed.length)
  await store.close()

  const env = { INTRAY_DATABASE_URL: databaseUrl }
  const doctor = await runToEnd([LAUNCHER, 'doctor', '--json'], env)
  assert.equal(doctor.code, 1)
  const { checks } = JSON.parse(doctor.stdout.toString()) as { checks: { name: string; summary: string }[] }
  const rows = checks.find(({ name: check }) => check === 'rows')!.summary
  assert.match(rows, new RegExp(`events: id ${hidden[0]} to `))

  const to = join(tempFolder('salvaged'), 'intray.db')
  const salvaged = await runToEnd([LAUNCHER, 'salvage', '--to', to, '--json'], env)
  assert.equal(salvaged.code, 3, salvaged.stderr)
  const found = JSON.parse(salvaged.stdout.toString()) as {
    lost_messages: number[]
    tables: { table: string; rows: number }[]
  }
  assert.deepEqual(found.lost_messages, hidden)
  assert.equal(found.tables.find(({ table }) => table === 'events')!.rows, EVENTS + 1 - hidden.length)
})
