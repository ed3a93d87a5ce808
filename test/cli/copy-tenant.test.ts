// `./intray copy --tenant`: one tenant moved between two databases that serve others meanwhile.

import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { writeCursor } from '../../src/model/list-cursor.ts'
import { type ItemFields, item } from '../store/rows.ts'
import { append, indexAll } from '../store/suite.ts'
import { send, type TestAnswer } from '../support/client.ts'
import { intrayJson } from '../support/command.ts'
import { type Driver, drivers } from '../support/drivers.ts'
import { createToken, withStore } from '../support/journal.ts'
import { killedAtLine } from '../support/killed-at-line.ts'
import { intray, type ServerProcess, startServer } from '../support/process.ts'
import { until } from '../support/until.ts'

const MOVED = { accountId: 7, companyId: 42 }
/** Another account of the same company, and another company. */
const NEIGHBOURS = [
  { accountId: 8, companyId: 42 },
  { accountId: 7, companyId: 43 },
]

interface Side {
  readonly url: string
  readonly tokens: Record<string, string>
}

interface Listed {
  readonly id: number
  readonly source_ref: string | null
}

const body = (ref: string, channel: string, n = 0) => JSON.stringify({ source_ref: ref, channel_ref: channel, n })
const message = (tenant: typeof MOVED, ref: string, channel: string, n = 0): ItemFields => ({
  ...tenant,
  sourceRef: ref,
  channelRef: channel,
  body: body(ref, channel, n),
})

async function makeSource(driver: Driver): Promise<Side> {
  const url = await driver.newDatabase()
  return withStore(url, async (store) => {
    for (let n = 0; n < 12; n++) {
      await append(store, message(MOVED, `ref ${n}`, `c${n % 3}`))
      for (const tenant of NEIGHBOURS) await append(store, message(tenant, `ref ${n}`, 'c0'))
    }
    await append(store, { ...MOVED, body: '{"no":"reference"}' })
    // A revision, and a re-send of the first bytes.
    await store.journal.append([item(message(MOVED, 'ref 0', 'c0', 1)), item(message(MOVED, 'ref 0', 'c0'))])
    const tokens = {
      sender: await createToken(store, MOVED),
      processor: await createToken(store, { ...MOVED, scope: 'processor' }),
      admin: await createToken(store, { ...MOVED, scope: 'admin' }),
      neighbour: await createToken(store, NEIGHBOURS[0]!),
      neighbourReader: await createToken(store, { ...NEIGHBOURS[0]!, scope: 'processor' }),
    }
    await indexAll(store)
    return { url, tokens }
  })
}

async function makeTarget(driver: Driver, source: string): Promise<Side> {
  const url = await driver.newDatabase()
  const { code, stderr } = await intray(['init', '--key-from', source], { INTRAY_DATABASE_URL: url })
  assert.equal(code, 0, stderr)
  const tenant = { accountId: 1, companyId: 42 }
  return withStore(url, async (store) => {
    for (let n = 0; n < 5; n++) await append(store, message(tenant, `ref ${n}`, 'c0'))
    const tokens = { resident: await createToken(store, { ...tenant, scope: 'processor' }) }
    await indexAll(store)
    return { url, tokens }
  })
}

function call(server: ServerProcess, token: string, path: string, payload?: unknown): Promise<TestAnswer> {
  return send(server.port, {
    method: payload === undefined ? 'GET' : 'POST',
    path,
    headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
    ...(payload === undefined ? {} : { body: typeof payload === 'string' ? payload : JSON.stringify(payload) }),
  })
}

/** From the oldest to the newest, once the index covers them. */
async function events(server: ServerProcess, token: string): Promise<Listed[]> {
  const answer = await until('the index covers everything', async () => {
    const found = await call(server, token, '/v1/inbox/events?limit=100')
    assert.equal(found.status, 200, found.text)
    return found.json!.index_lag === undefined && found
  })
  return (answer.json!.events as Listed[]).toReversed()
}

interface Claimed {
  readonly id: number
  readonly lease_id: string
  readonly attempts: number
}

async function claim(server: ServerProcess, token: string, limit: number): Promise<Claimed[]> {
  const answer = await call(server, token, '/v1/inbox/claims', { limit, ordered: false, wait_s: 5 })
  assert.equal(answer.status, 200, answer.text)
  return answer.json!.events as Claimed[]
}

const cursorOf = (id: number): string => writeCursor({ id, receivedAt: null })

async function moveArgs(t: TestContext, from: Driver, to: Driver) {
  const source = await makeSource(from)
  const target = await makeTarget(to, source.url)
  const old = await startServer(t, { INTRAY_DATABASE_URL: source.url })
  const cell = await startServer(t, { INTRAY_DATABASE_URL: target.url })
  const args = ['copy', '--tenant', '7/42', '--from', source.url, '--to', target.url, '--address', 'https://cell2.test']
  return { source, target, old, cell, args, tokens: { ...source.tokens, ...target.tokens } as Record<string, string> }
}

for (const [from, to] of [drivers, drivers.toReversed()]) {
  test(`${from!.name} to ${to!.name}: a tenant moves with everything it has, and the others stay; moves that cannot be are refused`, async (t) => {
    const { source, target, old, cell, args, tokens } = await moveArgs(t, from!, to!)
    const before = await events(old, tokens.processor!)
    const [done, failed] = (await claim(old, tokens.processor!, 2)).map(({ id, lease_id }) => ({ id, lease_id }))
    assert.equal((await call(old, tokens.processor!, '/v1/inbox/claims/ack', done)).status, 200)
    assert.equal(
      (await call(old, tokens.processor!, '/v1/inbox/claims/release', { ...failed, error: 'no' })).status,
      200,
    )
    const erased = before.at(-2)!.id
    const gone = await call(old, tokens.admin!, '/v1/inbox/erasures', { event: erased })
    assert.equal(gone.status, 200, gone.text)
    const neighbours = await events(old, tokens.neighbourReader!)
    const residents = await events(cell, tokens.resident!)

    const foreign = await to!.newDatabase()
    await withStore(foreign, async () => {})
    await refuseMoves(args, source.url, foreign)
    assert.equal((await call(old, tokens.sender!, '/api/ping')).status, 200)

    const { tables } = (await intrayJson(args, {})) as { tables: { table: string; rows: number }[] }
    const count = Object.fromEntries(tables.map(({ table, rows }) => [table, rows]))
    assert.deepEqual([count.events, count.dedupe, count.resends, count.erasures, count.tokens], [14, 13, 1, 1, 3])

    const refused = await call(old, tokens.sender!, '/v1/inbox/events', body('late', 'c0'))
    assert.deepEqual([refused.status, refused.json!.error, refused.json!.stored], [503, 'tenant_moved', 'no'])
    assert.match(String(refused.json!.message), /moved to https:\/\/cell2\.test,/)
    assert.equal((await call(old, tokens.processor!, '/v1/inbox/events')).status, 503)
    assert.equal((await call(old, tokens.neighbour!, '/v1/inbox/events', body('goes on', 'c0'))).status, 200)
    assert.deepEqual(
      (await events(old, tokens.neighbourReader!)).slice(0, neighbours.length).map(({ id }) => id),
      neighbours.map(({ id }) => id),
    )

    const after = await events(cell, tokens.processor!)
    assert.deepEqual(
      after.map(({ source_ref: ref }) => ref),
      expectedRefs(before, erased),
    )
    const newest = Math.max(before.at(-1)!.id, residents.at(-1)!.id)
    assert.ok(
      after.every(({ id }, n) => id > newest && (n === 0 || id > after[n - 1]!.id)),
      'new ids, in order',
    )
    assert.deepEqual(await events(cell, tokens.resident!), residents)

    const again = await call(cell, tokens.sender!, '/v1/inbox/events', body('ref 5', 'c2'))
    const moved = after.find(({ source_ref: ref }) => ref === 'ref 5')!
    assert.deepEqual(again.json, { ok: true, id: moved.id, duplicate: true })
    const fresh = await call(cell, tokens.sender!, '/v1/inbox/events', body('fresh', 'c2'))
    assert.equal(fresh.json!.duplicate, undefined)
    const conversations = await until('the new event is indexed', async () => {
      const { json } = await call(cell, tokens.processor!, '/v1/inbox/conversations')
      const found = json!.conversations as { channel_ref: string; event_count: number }[]
      return found.some(({ event_count: events }) => events === 5) && found
    })
    assert.deepEqual(
      conversations.map(({ channel_ref: channel, event_count: events }) => [channel, events]).toSorted(),
      [
        ['c0', 4],
        ['c1', 4],
        ['c2', 5],
      ],
    )

    const handed = await claim(cell, tokens.processor!, 50)
    const idOf = (id: number) => after[before.findIndex((event) => event.id === id)]!.id
    assert.ok(!handed.some(({ id }) => id === idOf(done!.id)), 'what was acked is done')
    assert.ok(handed.length >= 9, `${handed.length} are handed out`)
    // Handed out again here, or still backing off.
    assert.notEqual(handed.find(({ id }) => id === idOf(failed!.id))?.attempts, 1)

    const cursor = await call(cell, tokens.processor!, `/v1/inbox/events?cursor=${cursorOf(before[3]!.id)}`)
    assert.deepEqual([cursor.status, cursor.json!.error], [409, 'cursor_ahead'])
    const stream = await call(cell, tokens.processor!, `/v1/inbox/stream?after=${before[3]!.id}`)
    assert.equal(stream.status, 409)
    assert.equal(
      (await call(cell, tokens.resident!, `/v1/inbox/events?cursor=${cursorOf(residents[3]!.id)}`)).status,
      200,
    )

    assert.match((await intray(args, {})).stderr, /The target has this tenant already/)
    const examined = await intray(['doctor', '--json'], { INTRAY_DATABASE_URL: target.url })
    const wrong = (JSON.parse(examined.stdout.toString()) as { checks: { name: string; verdict: string }[] }).checks
    assert.deepEqual(
      wrong.filter(({ name, verdict }) => verdict === 'wrong' && !['syncs', 'files'].includes(name)),
      [],
    )
    assert.ok(source.url !== target.url)
  })

  test(`${from!.name} to ${to!.name}: a move that is killed leaves its tenant closed, and the same command goes on`, async (t) => {
    const { source, old, cell, args, tokens } = await moveArgs(t, from!, to!)
    const before = await events(old, tokens.processor!)
    assert.ok(await killedAtLine('copy: deliveries ', args))
    const { status, json } = await call(old, tokens.sender!, '/v1/inbox/events', body('between', 'c0'))
    assert.deepEqual([status, json!.error], [503, 'tenant_moved'])
    assert.equal((await call(cell, tokens.sender!, '/api/ping')).status, 401, 'it is not there yet')
    // Given up: it goes on where it was, and is moved later.
    assert.match(
      (await intray(['copy', '--release', source.url, '--tenant', '7/42'], {})).stdout.toString(),
      /used here again/,
    )
    const open = await until('the tenant is open', async () => {
      const answer = await call(old, tokens.sender!, '/v1/inbox/events', body('between', 'c0'))
      return answer.status === 200 && answer
    })
    assert.equal(open.json!.duplicate, undefined)
    await intrayJson(args, {})
    const refs = (list: readonly Listed[]) => list.map(({ source_ref: ref }) => ref)
    assert.deepEqual(refs(await events(cell, tokens.processor!)), [...refs(before), 'between'])
  })
}

/** Moves that are refused before anything happens. */
async function refuseMoves(args: readonly string[], source: string, foreign: string): Promise<void> {
  const refusal = async (...other: readonly string[]) => (await intray(other, {})).stderr
  assert.match(
    await refusal('copy', '--tenant', '7/42', '--from', source, '--to', foreign),
    /different dedupe keys.*init --key-from/,
  )
  assert.match(await refusal(...args.slice(0, 2), '7/99', ...args.slice(3)), /no such tenant/)
  assert.match(await refusal(...args.slice(0, 2), 'x', ...args.slice(3)), /--tenant takes/)
  const released = await intray(['copy', '--release', source, '--tenant', '7/42'], {})
  assert.match(released.stdout.toString(), /is not closed/)
}

/** What the erased event says instead of its reference. */
function expectedRefs(before: readonly Listed[], erased: number): (string | null)[] {
  return before.map(({ id, source_ref: ref }) => (id === erased ? null : ref))
}
