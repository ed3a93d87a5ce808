// What an answer of append means on PostgreSQL when the way to the server, or to its standby, fails at the worst moment.

import assert from 'node:assert/strict'
import { before, type TestContext, test } from 'node:test'
import type { AppendItem, AppendOutcome } from '../../src/store/contract/append.ts'
import type { Store } from '../../src/store/contract/store.ts'
import { openStore } from '../../src/store/open.ts'
import { connect, createDatabase, newPostgresDatabase, withClient } from '../support/postgres/databases.ts'
import { type CutPoint, startProxy, through } from '../support/postgres/proxy.ts'
import { newPostgres, type PostgresServer } from '../support/postgres/server.ts'
import { until } from '../support/until.ts'
import { postgresBackDoor } from './back-door-postgres.ts'
import { idOf, item } from './rows.ts'
import { append, failure, outcomesOf, payloadText } from './suite.ts'

const APPEND = 'intray_append'

/** An append whose outcome is not known by then gives up as unavailable: nobody is answered. */
const GIVE_UP_MS = 10_000

/** The answer, whenever it comes: where the machine stands still, an append gives up before a test has come to its end. */
async function answerOf({ journal }: Store, items: readonly AppendItem[]): Promise<AppendOutcome[]> {
  for (;;) {
    const startedAt = performance.now()
    try {
      return await journal.append(items)
    } catch (error) {
      failure('unavailable')(error)
      assert.ok(performance.now() - startedAt >= GIVE_UP_MS, 'it gave up before its time')
    }
  }
}

/** What happens to one try after the other: the retries are cut as well. */
const PLAN: readonly (CutPoint | null)[] = [
  'answered',
  null,
  'before',
  'sent',
  null,
  null,
  'answered',
  'answered',
  null,
]

async function storeThroughCuts(t: TestContext) {
  const url = await newPostgresDatabase()
  const proxy = await startProxy(Number(new URL(url).port), APPEND)
  t.after(() => proxy.close())
  const store = await openStore(through(proxy, url), { role: 'server' })
  t.after(() => store.close())
  let statements = 0
  proxy.cutAt = () => PLAN[statements++ % PLAN.length]!
  return { url, proxy, store }
}

test('the isolation level that a database is set to makes no difference', async (t) => {
  const url = await newPostgresDatabase()
  const name = new URL(url).pathname.slice(1)
  await withClient(url, (client) =>
    client.query(`ALTER DATABASE ${name} SET default_transaction_isolation = 'repeatable read'`),
  )
  const store = await openStore(url, { role: 'server' })
  t.after(() => store.close())
  const ref = { sourceRef: 'ref:1' }
  const id = await append(store, ref)
  const again = await store.journal.append([item(ref), item({ ...ref, body: { text: 'other' } })])
  assert.deepEqual(again, [
    { outcome: 'duplicate', id },
    { outcome: 'conflict', id },
  ])
})

test('a connection that is cut around the commit: append resolves, each message is stored once', async (t) => {
  const { url, proxy, store } = await storeThroughCuts(t)
  let sent = 0
  for (let round = 0; round < 30; round++) {
    const items: AppendItem[] = [
      item({ sourceRef: `ref-${round}`, body: `by ref ${round}` }),
      item({ idempotencyKey: `key-${round}`, body: `by key ${round}` }),
      item({ body: `by nothing ${round}` }),
    ]
    const outcomes = await store.journal.append(items)
    sent += items.length
    assert.deepEqual(outcomesOf(outcomes), ['stored', 'stored', 'stored'])
    for (const [n, outcome] of outcomes.entries()) {
      assert.equal(await payloadText(store, idOf(outcome)), Buffer.from(items[n]!.payload).toString())
    }
  }
  assert.deepEqual(await postgresBackDoor.countJournal(url), { events: sent, resends: 0, dedupe: sent })
  t.diagnostic(`cuts: ${JSON.stringify(proxy.cuts)}`)
  assert.ok(Math.min(proxy.cuts.before, proxy.cuts.sent, proxy.cuts.answered) > 4, 'every sort of cut was made')
})

test('a connection that is cut with several batches on it: each of their messages is stored once', async (t) => {
  const { url, proxy, store } = await storeThroughCuts(t)
  let sent = 0
  for (let round = 0; round < 20; round++) {
    const batches = [3, 12, 5].map((size) => Array.from({ length: size }, () => item({ sourceRef: `ref-${sent++}` })))
    const answers = await Promise.all(batches.map((batch) => store.journal.append(batch)))
    assert.deepEqual(new Set(outcomesOf(answers.flat())), new Set(['stored']))
    assert.equal(new Set(answers.flat().map(idOf)).size, 20)
  }
  assert.deepEqual(await postgresBackDoor.countJournal(url), { events: sent, resends: 0, dedupe: sent })
  t.diagnostic(`cuts: ${JSON.stringify(proxy.cuts)}`)
  assert.ok(Math.min(proxy.cuts.before, proxy.cuts.sent, proxy.cuts.answered) > 2, 'every sort of cut was made')
})

test('a batch that is held up does not hold up those behind it for good', async (t) => {
  const url = await newPostgresDatabase()
  const store = await openStore(url, { role: 'server' })
  t.after(() => store.close())
  await store.journal.append([item({ sourceRef: 'held' })])
  const foreign = await connect(url)
  t.after(() => foreign.end())
  await foreign.query('BEGIN; SELECT FROM intray.dedupe FOR UPDATE')
  let isSettled = false
  const held = answerOf(store, [item({ sourceRef: 'held', body: 'other' })]).finally(() => (isSettled = true))
  const behind = await Promise.all([1, 2].map(() => store.journal.append([item(), item()])))
  assert.deepEqual(new Set(outcomesOf(behind.flat())), new Set(['stored']))
  assert.deepEqual(outcomesOf(await store.journal.append([item()])), ['stored'])
  assert.equal(isSettled, false)
  await foreign.query('ROLLBACK')
  assert.deepEqual(outcomesOf(await held), ['conflict'])
  assert.equal((await postgresBackDoor.countJournal(url)).dedupe, 6)
})

test('a process that stands still has the answer of an append afterwards, and sends nothing twice', async (t) => {
  const url = await newPostgresDatabase()
  const store = await openStore(url, { role: 'server' })
  t.after(() => store.close())
  const id = await append(store, { sourceRef: 'a' })
  const again = store.journal.append([item({ sourceRef: 'a' })])
  // Longer than a try of an append.
  setImmediate(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5000))
  assert.deepEqual(await again, [{ outcome: 'duplicate', id }])
  assert.deepEqual(await postgresBackDoor.countJournal(url), { events: 1, resends: 1, dedupe: 1 })
})

test('the control: who tries again without a key of its own stores twice', async (t) => {
  const url = await newPostgresDatabase()
  await withClient(url, (client) => client.query('CREATE TABLE naive (text text)'))
  const proxy = await startProxy(Number(new URL(url).port), 'INSERT INTO naive')
  t.after(() => proxy.close())
  let isCut = false
  proxy.cutAt = () => ((isCut = !isCut) ? 'answered' : null)
  for (let n = 0; n < 3; n++) {
    await assert.rejects(withClient(through(proxy, url), (client) => client.query("INSERT INTO naive VALUES ('once')")))
    await withClient(through(proxy, url), (client) => client.query("INSERT INTO naive VALUES ('once')"))
  }
  const stored = await withClient(url, (client) => client.query('SELECT count(*)::int AS n FROM naive'))
  assert.equal(stored.rows[0].n, 6)
  assert.equal(proxy.cuts.answered, 3)
})

test('without a way to the server every call fails quickly as unavailable, and works again without a restart', async (t) => {
  const url = await newPostgresDatabase()
  const proxy = await startProxy(Number(new URL(url).port), APPEND)
  t.after(() => proxy.close())
  const store = await openStore(through(proxy, url), { role: 'server' })
  t.after(() => store.close())
  await store.journal.append([item()])
  proxy.refuse(true)
  await until('the loss is noticed', () =>
    store.probe().then(
      () => false,
      () => true,
    ),
  )
  for (const call of [
    () => store.journal.append([item()]),
    () => store.events.watermark(),
    () => store.tokens.find('nobody0000'),
    () => store.probe(),
  ]) {
    // Whoever waits for a connection waits for 10 s, each time. A machine that stands still for as long does so once.
    await until('it is refused quickly', async () => {
      const startedAt = performance.now()
      await assert.rejects(call, failure('unavailable'))
      return performance.now() - startedAt < 9000
    })
  }
  proxy.refuse(false)
  await until('it is back', () =>
    store.probe().then(
      () => true,
      () => false,
    ),
  )
  assert.deepEqual(outcomesOf(await store.journal.append([item()])), ['stored'])
  assert.equal((await postgresBackDoor.countJournal(url)).events, 2)
})

test('a row that the database refuses fails alone, and nothing of it stays', async (t) => {
  const url = await newPostgresDatabase()
  const store = await openStore(url, { role: 'server' })
  t.after(() => store.close())
  // PostgreSQL's texts hold no U+0000. Intake refuses such a source_ref before it comes here.
  const items = Array.from({ length: 21 }, (_, n) => item({ sourceRef: n % 8 === 3 ? `a\0${n}` : `ref-${n % 19}` }))
  const outcomes = outcomesOf(await store.journal.append(items))
  assert.deepEqual(
    outcomes,
    items.map(({ sourceRef }, n) => (sourceRef?.includes('\0') ? 'failed' : n >= 19 ? 'duplicate' : 'stored')),
  )
  const described = item({ userAgent: 'a\0b', contentType: 'application/json\0', traceparent: '\ud800' })
  const [outcome] = await store.journal.append([described])
  const kept = await store.events.find(idOf(outcome))
  assert.deepEqual(
    [kept?.userAgent, kept?.contentType, kept?.traceparent],
    ['a\uFFFDb', 'application/json\uFFFD', '\uFFFD'],
  )
})

// A standby that is waited for and never comes.
let lonely: PostgresServer
before(async () => {
  lonely = await newPostgres({ fsync: 'off', max_wal_senders: '2' })
})

async function waitForStandby(names: string): Promise<void> {
  await withClient(lonely.url('postgres'), async (client) => {
    await client.query(`SET synchronous_commit = local`)
    await client.query(`ALTER SYSTEM SET synchronous_standby_names = '${names}'`)
    await client.query('SELECT pg_reload_conf()')
  })
  await withClient(lonely.url('postgres'), (client) =>
    until('the setting is in force', async () => {
      const { rows } = await client.query("SELECT current_setting('synchronous_standby_names') AS names")
      return rows[0].names === names
    }),
  )
}

/** Cancels every wait for the standby as soon as there is one, until it is told to stop. */
function cancelWaits(t: TestContext): { count(): number; stop(): Promise<void> } {
  let isOn = true
  let cancelled = 0
  const running = withClient(lonely.url('postgres'), async (client) => {
    while (isOn) {
      const { rowCount } = await client.query(
        "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'",
      )
      cancelled += rowCount ?? 0
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  })
  const stop = async (): Promise<void> => {
    isOn = false
    await running
  }
  t.after(stop)
  return { count: () => cancelled, stop }
}

async function storeOnLonely() {
  const url = await createDatabase(lonely.url('postgres'))
  const store = await openStore(url, { role: 'server' })
  return { url, store }
}

for (const sizes of [[2], [2, 12]]) {
  const which = sizes.length === 1 ? 'one batch' : 'two batches on one connection'
  test(`a cancelled wait for the standby is no acknowledgement: append answers only when it is confirmed, ${which}`, async (t) => {
    const { url, store } = await storeOnLonely()
    t.after(async () => {
      await waitForStandby('')
      await store.close()
    })
    const batches = sizes.map((size) => Array.from({ length: size }, (_, n) => item({ sourceRef: `${size} ${n}` })))
    const stored = 1 + batches.flat().length
    await store.journal.append([item()])
    await waitForStandby('missing')
    let settled = 0
    const pending = batches.map((batch) => answerOf(store, batch).finally(() => (settled += 1)))
    const canceller = cancelWaits(t)
    // The rows are there for everybody to see: only whether they would survive is not known.
    await until('all is committed here', async () => (await postgresBackDoor.countJournal(url)).events === stored)
    await until('its retries were cancelled as well', () => canceller.count() >= 5)
    await canceller.stop()
    assert.equal(settled, 0)
    await waitForStandby('')
    assert.deepEqual(new Set(outcomesOf((await Promise.all(pending)).flat())), new Set(['stored']))
    assert.deepEqual(await postgresBackDoor.countJournal(url), { events: stored, resends: 0, dedupe: stored })
  })
}

test('a wait that is never confirmed ends as unavailable, and the control would have answered', async (t) => {
  const { url, store } = await storeOnLonely()
  t.after(async () => {
    await waitForStandby('')
    await store.close()
  })
  await withClient(url, (client) => client.query('CREATE TABLE naive (text text)'))
  await waitForStandby('missing')
  const canceller = cancelWaits(t)
  const naive = await connect(url)
  const notices: (string | undefined)[] = []
  naive.on('notice', ({ code }) => notices.push(code))
  await naive.query("INSERT INTO naive VALUES ('answered')")
  await naive.end()
  assert.deepEqual(notices, ['01000'], 'resolved, with nothing but a warning')
  // Where the machine stood still, the time of an append was over before a retry could be cancelled: then there is another one.
  await until('a try of an append and its retry were cancelled', async () => {
    const before = canceller.count()
    await assert.rejects(store.journal.append([item()]), failure('unavailable'))
    return canceller.count() >= before + 2
  })
  await canceller.stop()
})

test('synchronous_commit = off, wherever it was set, does not make append answer sooner', async (t) => {
  const url = await createDatabase(lonely.url('postgres'))
  await (await openStore(url, { role: 'tool' })).close()
  await withClient(url, async (client) => {
    await client.query('CREATE TABLE naive (text text)')
    await client.query(`ALTER DATABASE ${new URL(url).pathname.slice(1)} SET synchronous_commit = off`)
  })
  const store = await openStore(url, { role: 'server' })
  t.after(async () => {
    await waitForStandby('')
    await store.close()
  })
  await waitForStandby('missing')
  let settled = 0
  const writes = [answerOf(store, [item()]), store.refusals.add([], { maxCount: 1 }).then(() => store.probe())].map(
    (write) => write.finally(() => (settled += 1)),
  )
  // The control: it is answered although nobody confirmed it.
  await withClient(url, (client) => client.query("INSERT INTO naive VALUES ('answered')"))
  await withClient(url, (client) =>
    until('append and probe wait for the standby', async () => {
      const { rows } = await client.query(
        "SELECT count(*)::int AS n FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND datname = current_database()",
      )
      return rows[0].n === 2
    }),
  )
  assert.equal(settled, 0)
  await waitForStandby('')
  await Promise.all(writes)
})
