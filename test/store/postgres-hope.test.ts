// Batches that hope to be new on PostgreSQL: in vain or not, they come to what comes of the same messages one by one.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type pg from 'pg'
import type { AppendItem } from '../../src/store/contract/append.ts'
import type { Store } from '../../src/store/contract/store.ts'
import { withStore } from '../support/journal.ts'
import { connect, newPostgresDatabase, withClient } from '../support/postgres/databases.ts'
import { until } from '../support/until.ts'
import { postgresBackDoor } from './back-door-postgres.ts'
import { idOf, item } from './rows.ts'
import { drawSeed, random } from './seed.ts'
import { outcomesOf } from './suite.ts'

/** A store is hopeful until it has met a message that came before. */
const withHope = <T>(url: string, work: (store: Store) => Promise<T>): Promise<T> => withStore(url, work, 'server')

/** Keys that were put in and taken back, and are not cleared away yet. */
async function inVain(url: string): Promise<number> {
  return withClient(url, async (client) => {
    await client.query('ANALYZE intray.dedupe')
    const found = await client.query("SELECT n_dead_tup::int AS n FROM pg_stat_user_tables WHERE relname = 'dedupe'")
    return found.rows[0].n as number
  })
}

const like = (sent: AppendItem): AppendItem => ({ ...item(), sourceRef: sent.sourceRef, payload: sent.payload })
let made = 0
const fresh = (count: number) => Array.from({ length: count }, () => item({ sourceRef: `fresh ${made++}` }))

test('a batch that is new, one that came before, and one that met itself', async () => {
  const url = await newPostgresDatabase()
  const first = fresh(20)
  await withHope(url, async (store) => {
    const stored = await store.journal.append(first)
    assert.deepEqual(new Set(outcomesOf(stored)), new Set(['stored']))
    assert.equal(new Set(stored.map(idOf)).size, 20)
    assert.deepEqual(await store.journal.append(first), stored, 'the node’s own retry')
  })
  const again = [...fresh(9), like(first[3]!), { ...like(first[4]!), payload: Buffer.from('other') }, ...fresh(9)]
  await withHope(url, async (store) => {
    const kinds = outcomesOf(await store.journal.append(again))
    assert.deepEqual([kinds[9], kinds[10]], ['duplicate', 'conflict'])
    assert.deepEqual(new Set(kinds.toSpliced(9, 2)), new Set(['stored']))
  })
  const [one] = fresh(1)
  await withHope(url, async (store) => {
    const outcomes = await store.journal.append([one!, ...fresh(10), like(one!)])
    assert.deepEqual(outcomesOf(outcomes), [...Array<string>(11).fill('stored'), 'duplicate'])
    assert.equal(idOf(outcomes.at(-1)!), idOf(outcomes[0]!))
  })
  assert.deepEqual(await postgresBackDoor.countJournal(url), { events: 50, resends: 2, dedupe: 49 })
})

test('random batches come to the same as their messages one by one', async (t) => {
  const { below, pick } = random(drawSeed(t))
  const [together, alone] = [await newPostgresDatabase(), await newPostgresDatabase()]
  const refs = Array.from({ length: 20 }, (_, n) => `ref ${n}`)
  await withHope(alone, async (control) => {
    for (let round = 0; round < 25; round++) {
      const batch = Array.from({ length: 8 + below(20) }, (_, n) =>
        below(4) > 0
          ? item({ sourceRef: `new ${round} ${n}` })
          : item({ sourceRef: pick(refs), body: `body ${below(3)}` }),
      )
      const outcomes = await withHope(together, (store) => store.journal.append(batch))
      const expected = []
      for (const message of batch) expected.push(...(await control.journal.append([message])))
      assert.deepEqual(outcomesOf(outcomes), outcomesOf(expected), `round ${round}`)
    }
  })
  const counted = await postgresBackDoor.countJournal(together)
  assert.deepEqual(counted, await postgresBackDoor.countJournal(alone))
  assert.ok(counted.resends > 0, 'messages came again')
})

test('two nodes that hope for the same keys in opposite order store each once, and answer alike', async () => {
  const url = await newPostgresDatabase()
  const ROUNDS = 12
  for (let round = 0; round < ROUNDS; round++) {
    const messages = Array.from({ length: 120 }, (_, n) => item({ sourceRef: `${round} ${n}` }))
    const send = (sent: readonly AppendItem[]) =>
      withHope(url, async (store) => {
        const batches = [0, 30, 60, 90].map((from) => sent.slice(from, from + 30))
        return (await Promise.all(batches.map((batch) => store.journal.append(batch)))).flat()
      })
    const [forth, back] = await Promise.all([send(messages), send(messages.map(like).toReversed())])
    assert.deepEqual(forth!.map(idOf), back!.toReversed().map(idOf))
  }
  const { events, resends } = await postgresBackDoor.countJournal(url)
  assert.deepEqual([events, resends], [120 * ROUNDS, 120 * ROUNDS])
})

test('two nodes that hope for the same keys in opposite order, held up at one of them, do not deadlock', async (t) => {
  const url = await newPostgresDatabase()
  const messages = fresh(12)
  const held = messages[6]!
  await withHope(url, (store) => store.journal.append([held]))
  // Two of them: within a transaction PostgreSQL shows what was going on when it was first asked.
  const [foreign, watcher] = await Promise.all([connect(url), connect(url)])
  t.after(() => Promise.all([foreign.end(), watcher.end()]))
  // Whoever is to insert this key waits until we let go of it.
  await foreign.query('BEGIN; CREATE TEMP TABLE kept AS SELECT * FROM intray.dedupe')
  await foreign.query('COMMIT; BEGIN; DELETE FROM intray.dedupe; DELETE FROM intray.events; COMMIT')
  await foreign.query('BEGIN; INSERT INTO intray.dedupe SELECT * FROM kept')
  const sending = Promise.all(
    [messages, messages.map(like).toReversed()].map((batch) => withHope(url, (store) => store.journal.append(batch))),
  )
  await until('both nodes wait', async () => (await count(watcher, "wait_event_type = 'Lock'")) >= 2)
  await foreign.query('ROLLBACK')
  const [forth, back] = await sending
  assert.deepEqual(forth!.map(idOf), back!.toReversed().map(idOf))
  // A backend tells what it counted when it ends.
  await until('their connections are gone', async () => (await count(watcher, 'pid <> pg_backend_pid()')) === 1)
  const told = await watcher.query('SELECT deadlocks::int FROM pg_stat_database WHERE datname = current_database()')
  assert.equal(told.rows[0].deadlocks, 0)
})

async function count(client: pg.Client, which: string): Promise<number> {
  const text = `SELECT count(*)::int AS n FROM pg_stat_activity WHERE datname = current_database() AND ${which}`
  return (await client.query(text)).rows[0].n as number
}

test('a stream of messages that came before leaves little to be cleared away; the control does not', async (t) => {
  const [url, control] = [await newPostgresDatabase(), await newPostgresDatabase()]
  const known = fresh(60)
  for (const database of [url, control]) {
    await withHope(database, (store) => store.journal.append(known))
    await withClient(database, (client) => client.query('ALTER TABLE intray.dedupe SET (autovacuum_enabled = false)'))
  }
  const batch = (n: number) => [...fresh(20), like(known[n]!)]
  await withHope(url, async (store) => {
    for (let n = 0; n < 60; n++) await store.journal.append(batch(n))
  })
  for (let n = 0; n < 12; n++) await withHope(control, (store) => store.journal.append(batch(n)))
  const [few, many] = [await inVain(url), await inVain(control)]
  t.diagnostic(`${few} of 1,200, in the control ${many} of 240`)
  assert.ok(few <= 21, 'one batch, and the key at which it ended')
  assert.ok(many > 21)
})
