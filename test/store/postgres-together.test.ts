// Several nodes on one PostgreSQL database: they start at once, meet over the same keys, and take over from each other.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type pg from 'pg'
import type { Store } from '../../src/store/contract/store.ts'
import { newUuid } from '../../src/runtime/id.ts'
import { readMigrations } from '../../src/store/migrations.ts'
import { ask } from '../support/postgres/ask.ts'
import { connect, newPostgresDatabase, withClient } from '../support/postgres/databases.ts'
import { drivers } from '../support/drivers.ts'
import { until } from '../support/until.ts'
import { backDoorOf } from './back-door.ts'
import { startChild } from './child.ts'
import { idOf, item, NOON, TENANT } from './rows.ts'
import { indexAll, newDatabase } from './suite.ts'

const postgres = drivers.find(({ name }) => name === 'postgres')!

const MIGRATIONS = new URL('../../src/store/postgres/migrations/', import.meta.url)

test('ten nodes that start at once on an empty database migrate once', async (t) => {
  const url = await newPostgresDatabase()
  const children = Array.from({ length: 10 }, (_, n) => startChild(t, 'open', url, n % 3 === 0 ? 'tool' : 'server'))
  for (const child of children) await child.line('waiting')
  for (const child of children) child.go()
  const opened = new Set(await Promise.all(children.map((child) => child.line('opened '))))
  for (const child of children) assert.equal((await child.exited).code, 0, child.lines.join('\n'))
  assert.equal(opened.size, 1, 'all found one schema and one identity')
  const applied = await withClient(url, (client) => client.query('SELECT version FROM intray.schema_migrations'))
  assert.deepEqual(
    applied.rows.map(({ version }) => version),
    readMigrations(MIGRATIONS).map(({ version }) => version),
  )
})

const REFS = 1000
const ROUNDS = 50
const BATCH = 50

test('two nodes that send the same 1,000 refs in opposite order, 50 rounds: no failure, one event each', async (t) => {
  const database = await newDatabase(t, postgres)
  const nodes = [await database.open('server'), await database.open('server')]
  const refs = Array.from({ length: REFS }, (_, n) => `ref-${n}`)
  const ids = new Map<string, number>()
  let stored = 0
  const send = async (node: Store, order: readonly string[], round: number): Promise<void> => {
    const calls: Promise<void>[] = []
    for (let at = 0; at < order.length; at += BATCH) {
      const part = order.slice(at, at + BATCH)
      // Now and then other bytes: revisions of one key by both nodes must not wait for each other either.
      const items = part.map((sourceRef) => item({ sourceRef, body: round % 10 === 9 ? `other ${round}` : 'A' }))
      const call = node.journal.append(items).then((outcomes) => {
        for (const [n, outcome] of outcomes.entries()) {
          if (outcome.outcome === 'stored') stored += 1
          const known = ids.get(part[n]!)
          if (known === undefined) ids.set(part[n]!, idOf(outcome))
          else assert.equal(idOf(outcome), known, `${part[n]} has one id`)
        }
      })
      calls.push(call)
    }
    await Promise.all(calls)
  }
  for (let round = 0; round < ROUNDS; round++) {
    await Promise.all([send(nodes[0]!, refs, round), send(nodes[1]!, refs.toReversed(), round)])
  }
  assert.equal(stored, REFS)
  assert.equal(ids.size, REFS)
  const { events, dedupe } = await backDoorOf(postgres).countJournal(database.url)
  assert.deepEqual([events, dedupe], [REFS * 6, REFS])
  // A batch that is not answered for 4 s is sent again: then its re-sends have two rows, of one request.
  const resends = await ask<number>(database.url, 'SELECT count(DISTINCT request_id)::int FROM intray.resends')
  assert.equal(resends, REFS * (2 * ROUNDS - 6))
  const deadlocks = await withClient(database.url, (client) =>
    client.query('SELECT deadlocks::int FROM pg_stat_database WHERE datname = current_database()'),
  )
  assert.equal(deadlocks.rows[0].deadlocks, 0, 'nobody had to be killed for it')
})

test('while the indexer of one node is at work another leaves it alone; when it is killed the other goes on', async (t) => {
  const database = await newDatabase(t, postgres)
  const other = await database.open('server')
  for (let n = 0; n < 20; n++) {
    await other.journal.append(Array.from({ length: 200 }, (_, k) => item({ channelRef: `page ${k % 7}` })))
  }
  const looker = await connect(database.url)
  t.after(() => looker.end())
  /** The backend that holds the lock of the indexer. */
  const lockHolder = async (): Promise<number | undefined> =>
    (
      await looker.query(`SELECT pid FROM pg_locks l JOIN pg_database d ON d.oid = l.database
        WHERE d.datname = current_database() AND locktype = 'advisory' AND granted`)
    ).rows[0]?.pid
  // The server takes the lock from a holder that is silent for 5 s: where the machine stood still for that long, another one is begun.
  const holder = await until('a holder has the lock for as long as the other looks', async () => {
    const child = startChild(t, 'index', database.url, 'server', '5')
    await child.line('step')
    // Stopped where it holds the lock: found by stopping it again and again.
    const backend = await until('the holder stands still in the middle of a step', async () => {
      child.process.kill('SIGSTOP')
      const found = await lockHolder()
      if (found === undefined) child.process.kill('SIGCONT')
      return found
    })
    const before = await other.index.progress()
    assert.ok(before.lag > 0)
    const { indexed } = await other.index.step({ maxRows: 5, maxBytes: 1 << 20 })
    if ((await lockHolder()) === backend) {
      assert.equal(indexed, 0, 'the holder is alive, as far as anybody knows')
      return child
    }
    await child.kill()
    return false
  })
  await holder.kill()
  let looks = 0
  await until('the other goes on', async () => {
    looks += 1
    return (await other.index.step({ maxRows: 5, maxBytes: 1 << 20 })).indexed > 0
  })
  // A hundred are a second at most. Whoever waits for a statement of the dead one to be given up waits for 30 s.
  assert.ok(looks <= 2000, `it took over at look ${looks}`)
  await indexAll(other)
  const arrived = await backDoorOf(postgres).dumpIndex(database.url)
  await other.index.requestRebuild()
  await indexAll(other)
  assert.deepEqual(arrived, await backDoorOf(postgres).dumpIndex(database.url))
})

test('a claim that waited for a lane in vain does not hold it while it enqueues', async (t) => {
  const database = await newDatabase(t, postgres)
  const store = await database.open('server')
  const queue = { tenant: TENANT, subscription: 'default' }
  const claim = (now: number) => {
    const lease = { leaseId: newUuid(), leaseExpiresAt: now + 30_000, keyId: 'PPPPPPPPPP', maxAttempts: 3 }
    return store.processing.claim({
      ...queue,
      ...lease,
      limit: 5,
      maxBytes: 1000,
      ordered: true,
      channelRef: null,
      now,
    })
  }
  await store.journal.append([item({ channelRef: 'page' })])
  await indexAll(store)
  const [first] = (await claim(NOON))!
  const items = [{ id: first!.event.id, leaseId: first!.leaseId, delayMs: 0, error: 'no' }]
  await store.processing.release({ ...queue, items, now: NOON, maxAttempts: 3, keyId: 'PPPPPPPPPP', jitter: 0 })
  const [holder, enqueueing, watcher] = await Promise.all([0, 1, 2].map(() => connect(database.url)))
  t.after(() => Promise.all([holder!.end(), enqueueing!.end(), watcher!.end()]))
  /** How many wait for a lock of this one now. That somebody waits for a lock is still told of one that was just given it. */
  const waitersFor = async (client: pg.Client | undefined) => {
    const { rows } = await client!.query('SELECT pg_backend_pid() AS pid')
    const count = 'SELECT count(*)::int FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid))'
    return (await watcher!.query(count, [rows[0].pid])).rows[0].count
  }
  await holder!.query('BEGIN; SELECT FROM intray.lanes FOR NO KEY UPDATE')
  const claiming = claim(NOON)
  await until('the claim waits for the lane', async () => (await waitersFor(holder)) === 1)
  await enqueueing!.query('BEGIN; SELECT FROM intray.subscriptions FOR NO KEY UPDATE')
  await holder!.query(`UPDATE intray.lanes SET held = 1, ready_at = ${NOON + 30_000}; COMMIT`)
  await until('the claim waits for the subscription', async () => (await waitersFor(enqueueing)) === 1)
  const free = await enqueueing!.query('SELECT lane FROM intray.lanes FOR NO KEY UPDATE SKIP LOCKED')
  assert.equal(free.rowCount, 1)
  await enqueueing!.query('ROLLBACK')
  assert.deepEqual(await claiming, [])
})
