// `./intray copy`: a database moved to another store and back, whole, frozen meanwhile, and resumable.

import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { NO_RETENTION } from '../../src/model/retention.ts'
import type { Store } from '../../src/store/contract/store.ts'
import { openCopySide } from '../../src/store/open.ts'
import { backDoorOf } from '../store/back-door.ts'
import { item, newToken, refusal, TENANT } from '../store/rows.ts'
import { intrayJson } from '../support/command.ts'
import { copyArgs } from '../support/copy-command.ts'
import { type Driver, drivers } from '../support/drivers.ts'
import { createToken, withStore } from '../support/journal.ts'
import { killedAtLine } from '../support/killed-at-line.ts'
import { post } from '../support/load.ts'
import { connect, newPostgresDatabase } from '../support/postgres/databases.ts'
import { intray, startServer } from '../support/process.ts'
import { until } from '../support/until.ts'

interface CopyReport {
  readonly ok: boolean
  readonly tables: readonly { readonly table: string; readonly rows: number }[]
  readonly rounds: number
  readonly paused_ms: number
}

const WAYS = drivers.flatMap((from) => drivers.map((to) => ({ from, to })))

/** One of each: events with every kind of field, a revision, resends, an erased one, odd bytes, tokens, refusals. */
async function fill(store: Store): Promise<void> {
  await store.journal.append([
    item({ sourceRef: 'a', channelRef: 'c', body: { message: { text: 'one' }, contact: { name: 'Zoë 💌' } } }),
    item({ sourceRef: 'ä\u0001%\\', channelRef: 'c', userAgent: 'x', remoteAddr: '::1', traceparent: '00-0-0-00' }),
    item({ idempotencyKey: 'k', body: '{"n":12345678901234567890,"n":1}' }),
    item({ payload: Buffer.from([0xef, 0xbb, 0xbf, 0x7b, 0x7d]) }),
    item({ sourceRef: 'other tenant', accountId: 8, companyId: 43 }),
  ])
  await store.journal.append([item({ sourceRef: 'a', body: { message: { text: 'two' } } })])
  const again = item({ sourceRef: 'a', channelRef: 'c', body: { message: { text: 'two' } } })
  await store.journal.append([again])
  await store.tokens.create(newToken({ label: 'first', expiresAt: 5 }))
  const old = newToken({ label: 'second' })
  await store.tokens.create(old)
  await store.tokens.rotate(newToken({ rotatedFrom: old.keyId }), null, 9)
  const hook = newToken({ recipe: 'custom/d' })
  await store.hooks.create({
    token: hook,
    hook: { ...TENANT, keyId: hook.keyId, firstKeyId: 'FIRST', maxBody: 4096, sealed: Buffer.from([1, 0, 255]) },
    recipe: { ...TENANT, digest: 'd', recipe: '{"title":"Füllung"}', createdAt: 9 },
  })
  await store.refusals.add([refusal(), refusal()], { maxCount: 10 })
  await store.retention.setRule({ ...NO_RETENTION, tenant: TENANT, events: 'never' })
  const operator = { id: 'o1', name: 'ada', role: 'viewer', tenants: [TENANT], password: 'x', createdAt: 1 } as const
  await store.operators.create(operator)
  const session = { operatorId: 'o1', createdAt: 1, expiresAt: 1e15, seenAt: 1 }
  await store.operators.openSession({ hash: new Uint8Array(32), ...session }, 9)
  const rest = { tenant: TENANT, target: 'x', requestId: null, address: null }
  await store.operators.addAudit({ id: 'a1', at: 1, operatorId: 'o1', operator: 'ada', action: 'promote', ...rest })
}

async function filled(driver: Pick<Driver, 'newDatabase'>): Promise<string> {
  const url = await driver.newDatabase()
  await withStore(url, fill)
  await withStore(url, indexWhole)
  await withStore(url, processSome)
  return url
}

/** Leaves an event done, one backing off, one under a lease, and one waiting behind it. */
async function processSome({ processing }: Store): Promise<void> {
  const queue = { tenant: TENANT, subscription: 'default', now: 1000 }
  const lease = { leaseId: 'l', leaseExpiresAt: 9000, keyId: 'AAAAAAAAAA', maxAttempts: 5 }
  const order = { limit: 3, maxBytes: 1e6, ordered: true, channelRef: null }
  const claimed = await processing.claim({ ...queue, ...order, ...lease })
  const [done, back] = claimed!.map(({ event }) => ({ id: event.id, leaseId: 'l' }))
  await processing.ack({ ...queue, items: [done!] })
  const items = [{ ...back!, delayMs: null, error: 'no' }]
  await processing.release({ ...queue, items, maxAttempts: 5, keyId: 'AAAAAAAAAA', jitter: 0 })
}

async function indexWhole(store: Store): Promise<void> {
  const limits = { maxRows: 1000, maxBytes: 1e9 }
  while ((await store.index.step(limits)).lag > 0);
  while ((await store.index.stepWords({ ...limits, maxWords: 256 })).searchLag > 0);
}

/** What the index holds, without the words of the search: each database keeps those in a form of its own. */
async function derived(driver: Driver, url: string): Promise<unknown> {
  const dump = (await backDoorOf(driver).dumpIndex(url)) as Record<string, unknown>
  const { event_words: words, ...rest } = dump
  assert.ok(words !== undefined)
  return rest
}

for (const { from, to } of WAYS) {
  test(`${from.name} to ${to.name}: every row arrives, ids and tokens go on, and what was sent is known`, async (t) => {
    const source = await filled(from)
    const target = await to.newDatabase()
    const report = (await intrayJson([...copyArgs(source, target), '--json'], {})) as unknown as CopyReport
    assert.deepEqual(
      report.tables.map(({ table, rows }) => [table, rows]),
      [
        ['id_gaps', 0],
        ['tenant_gaps', 0],
        ['tokens', 4],
        ['hooks', 1],
        ['recipes', 1],
        ['dedupe', 5],
        ['events', 6],
        ['resends', 1],
        ['erasures', 0],
        ['retention_rules', 1],
        ['conversation_ids', 0],
        ['refusals', 2],
        ['subscriptions', 1],
        ['deliveries', 4],
        ['lanes', 3],
        ['delivery_history', 1],
        ['endpoints', 0],
        ['operators', 1],
        ['audit', 1],
      ],
    )
    assert.deepEqual(plain(await derived(to, target)), plain(await derived(from, source)))
    await withStore(target, async (store) => {
      const [known, fresh] = await store.journal.append([
        item({ sourceRef: 'a', channelRef: 'c', body: { message: { text: 'one' }, contact: { name: 'Zoë 💌' } } }),
        item({ sourceRef: 'new' }),
      ])
      const first = (await withStore(source, (old) => old.events.find(1, TENANT)))!
      assert.deepEqual(known, { outcome: 'duplicate', id: first.id })
      const id = fresh?.outcome === 'stored' ? fresh.id : 0
      assert.ok(id > 6, `id ${id}`)
      assert.deepEqual(plain(await store.events.find(1)), plain(first))
      assert.deepEqual(await payloadHex(store, 4), 'efbbbf7b7d')
      await store.tokens.create(newToken())
      assert.equal((await store.tokens.list()).length, 4)
      const [hook] = await store.hooks.list('', 9)
      const { firstKeyId, maxBody, sealed } = hook!
      assert.deepEqual([firstKeyId, maxBody, Buffer.from(sealed).toString('hex')], ['FIRST', 4096, '0100ff'])
      assert.equal(await store.hooks.recipe(TENANT, 'd'), '{"title":"Füllung"}')
      assert.deepEqual((await store.operators.findByName('ada'))?.tenants, [TENANT])
      assert.equal((await store.operators.listAudit(null, 9))[0]?.action, 'promote')
      assert.equal(await store.operators.findSession(new Uint8Array(32), 2), null, 'sessions end with their database')
    })
    const again = await intray(copyArgs(source, target), {})
    assert.deepEqual([again.code, /already complete/.test(again.stdout.toString())], [0, true])
    t.diagnostic(`${report.rounds} rounds, writers waited for ${report.paused_ms} ms`)
  })
}

async function payloadHex(store: Store, id: number): Promise<string> {
  return Buffer.from((await store.events.payload(id))!).toString('hex')
}

/** Rows by their columns' names, whatever order the database keeps them in, and without what only one kind has. */
function plain(dump: unknown): unknown {
  return JSON.parse(
    JSON.stringify(dump, (_, value: unknown) => {
      if (value instanceof Uint8Array) return Buffer.from(value).toJSON()
      if (value === null || typeof value !== 'object' || Array.isArray(value)) return plainCell(value)
      return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
    }),
  )
}

function plainCell(value: unknown): unknown {
  if (value === true) return 1
  if (value === false) return 0
  return typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : value
}

for (const { from, to } of WAYS.filter((way) => way.from !== way.to)) {
  test(`${from.name} to ${to.name}: killed half-way, no server opens it, and the same command goes on`, async () => {
    const source = await filled(from)
    const count = 4000
    await withStore(source, async (store) => {
      for (let n = 0; n < count; n += 200) {
        await store.journal.append(Array.from({ length: 200 }, (_, i) => item({ sourceRef: `ref ${n + i}` })))
      }
    })
    const target = await to.newDatabase()
    let kills = 0
    for (const table of ['dedupe', 'events']) {
      if (await killedAtLine(`copy: ${table} `, copyArgs(source, target))) kills += 1
      const refused = await intray(['serve', '--port', '0'], { INTRAY_DATABASE_URL: target })
      assert.match(refused.stderr, /an unfinished copy/)
      assert.equal(refused.code, 1)
    }
    assert.equal(kills, 2)
    const onward = await intray(copyArgs(target, await from.newDatabase()), {})
    assert.match(onward.stderr, /The source is itself the target of an unfinished copy/)
    assert.match((await intray(['copy', '--release', target], {})).stderr, /no server may open it/)
    const report = (await intrayJson([...copyArgs(source, target), '--json'], {})) as unknown as CopyReport
    assert.equal(report.tables.find(({ table }) => table === 'events')?.rows, count + 6)
    assert.equal((await backDoorOf(to).countJournal(target)).dedupe, count + 5)
  })
}

for (const driver of drivers) {
  test(`${driver.name}: while it is frozen a running server answers 503, and a release brings it back`, async (t) => {
    const source = await filled(driver)
    const token = await withStore(source, (store) => createToken(store))
    const server = await startServer(t, { INTRAY_DATABASE_URL: source })
    const target = await drivers[0]!.newDatabase()
    // Senders go on meanwhile: refused messages draw ids as well.
    const statuses = new Set<number>()
    let isCopying = true
    const sending = (async () => {
      for (let n = 0; isCopying; n++) {
        statuses.add((await post(server.port, token, `{"source_ref":"meanwhile ${n}"}`)).status)
      }
    })()
    const copied = await intray(copyArgs(source, target), {})
    // The newest answer may be of before the freeze.
    await until('a sender is refused', () => copied.code !== 0 || statuses.has(503))
    isCopying = false
    await sending
    assert.equal(copied.code, 0, copied.stderr)
    assert.deepEqual([...statuses].toSorted(), [200, 503])
    const answer = await post(server.port, token, '{"source_ref":"late"}')
    assert.equal(answer.status, 503)
    assert.match(answer.text, /"error":"storage_unavailable"/)
    assert.equal((await ready(server.url)).status, 503)
    const command = await intray(['token', 'create', '--account', '1', '--company', '1'], {
      INTRAY_DATABASE_URL: source,
    })
    assert.match(
      command.stderr,
      /is frozen by \.\/intray copy: use the copy, or unfreeze it with \.\/intray copy --release/,
    )
    const second = await intray(['serve', '--port', '0'], { INTRAY_DATABASE_URL: source })
    assert.match(second.stderr, driver.name === 'sqlite' ? /Another Intray server/ : /frozen/)
    assert.match((await intray(['copy', '--release', source], {})).stdout.toString(), /takes messages again/)
    assert.match((await intray(['copy', '--release', source], {})).stdout.toString(), /is not frozen/)
    assert.equal((await post(server.port, token, '{"source_ref":"late"}')).status, 200)
  })
}

function ready(url: string): Promise<Response> {
  return fetch(`${url}/readyz`)
}

test('what cannot be copied is refused before anything is frozen', async (t: TestContext) => {
  const [sqlite, postgres] = drivers
  const source = await filled(sqlite!)
  const other = await filled(postgres!)
  const refusals: [args: string[], says: RegExp][] = [
    [copyArgs(source, other), /The target is in use: it holds tokens/],
    [copyArgs(source, source), /same database/],
    [copyArgs('sqlite:/nowhere/intray.db', other), /There is no database at/],
    [copyArgs(await postgres!.newDatabase(), await sqlite!.newDatabase()), /has no Intray data/],
    [copyArgs(source, 'mysql://x'), /must look like/],
    [['copy', '--from', source], /Give --to URL/],
    [[...copyArgs(source, other), '--to-file', '/x'], /not both/],
    [['copy', '--from', source, '--to-file', '/nowhere'], /cannot be read/],
    [['copy', '--release', source, '--to', other], /takes no --from and no --to/],
  ]
  for (const [args, says] of refusals) {
    const { code, stderr } = await intray(args, {})
    assert.match(stderr, says)
    assert.notEqual(code, 0)
  }
  await withStore(source, async (store) => {
    const [outcome] = await store.journal.append([item({ sourceRef: 'still open' })])
    assert.equal(outcome?.outcome, 'stored')
  })
  const copied = await sqlite!.newDatabase()
  const mine = await filled(postgres!)
  assert.equal((await intray(copyArgs(mine, copied), {})).code, 0)
  assert.match((await intray(copyArgs(source, copied), {})).stderr, /a copy of another database/)
  t.diagnostic(`${refusals.length + 1} refusals`)
})

test('two copies into one database: the second is refused, and what is there belongs to the first alone', async () => {
  const [sqlite, postgres] = drivers
  const sources = [await filled(sqlite!), await filled(sqlite!)]
  const target = await postgres!.newDatabase()
  const sides = await Promise.all(sources.map((url) => openCopySide(url, { mustExist: true })))
  const here = await openCopySide(target, { mustExist: false })
  const uuids = await Promise.all(sides.map(async (side) => (await side.identity()).databaseUuid))
  const begun = await Promise.allSettled(uuids.map((uuid) => here.begin(uuid)))
  assert.deepEqual(begun.map(({ status }) => status).toSorted(), ['fulfilled', 'rejected'])
  const first = begun.findIndex(({ status }) => status === 'fulfilled')
  const tokens = here.tables.find(({ name }) => name === 'tokens')!
  const rows = await sides[first]!.read(tokens, null)
  await assert.rejects(here.write(uuids[1 - first]!, tokens, null, rows), /Another copy/)
  await here.write(uuids[first]!, tokens, null, rows)
  await assert.rejects(here.write(uuids[first]!, tokens, null, rows), /Another copy/)
  assert.equal(await here.count(tokens), rows.length)
  for (const side of [...sides, here]) await side.close()
})

test('a transaction that holds the tables: the freeze gives up, says so, and holds up nobody', async (t) => {
  const source = await filled({ newDatabase: newPostgresDatabase })
  const client = await connect(source)
  t.after(() => client.end())
  await client.query('BEGIN; LOCK TABLE intray.refusals IN ROW EXCLUSIVE MODE')
  const { code, stderr } = await intray(copyArgs(source, await drivers[0]!.newDatabase()), {})
  assert.match(stderr, /keeps the tables of the source busy/)
  assert.equal(code, 1)
  await withStore(source, async (store) => {
    const [outcome] = await store.journal.append([item({ sourceRef: 'open' })])
    assert.equal(outcome?.outcome, 'stored')
  })
})

test('a release does not deadlock with a claim, which locks lanes and then reads events', async (t) => {
  const source = await filled({ newDatabase: newPostgresDatabase })
  const side = await openCopySide(source, { mustExist: true })
  t.after(() => side.close())
  await side.freeze(async () => {})
  const claim = await connect(source)
  t.after(() => claim.end())
  await claim.query('BEGIN; LOCK TABLE intray.lanes IN ROW EXCLUSIVE MODE')
  // Sent before the release, which gives up after 5 s, and in one request: this process may stand still for as long.
  const claimed = claim.query(`DO $$ BEGIN
      WHILE NOT EXISTS (SELECT FROM pg_locks WHERE relation = 'intray.lanes'::regclass AND NOT granted) LOOP
        PERFORM pg_sleep(0.01);
      END LOOP;
      PERFORM FROM intray.events LIMIT 1;
    END $$; COMMIT`)
  await Promise.all([claimed, side.release()])
  assert.equal(await side.isFrozen(), false)
})
