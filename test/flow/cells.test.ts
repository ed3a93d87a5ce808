// Two cells behind one HAProxy with the published configuration: each request reaches the cell that has its token.

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { createSignInLink } from '../../src/auth/sessions.ts'
import { mintToken } from '../../src/auth/token.ts'
import type { Tenant } from '../../src/model/principal.ts'
import type { Store } from '../../src/store/contract/store.ts'
import { send, type TestAnswer } from '../support/client.ts'
import { intrayJson } from '../support/command.ts'
import { EventStream } from '../support/event-stream.ts'
import { type Cell, hasHaproxy, startCellsProxy, WITHOUT_HAPROXY } from '../support/haproxy.ts'
import { createToken, type JournalRow, readJournal, withStore } from '../support/journal.ts'
import { auditRows, faultsOf, Ledger, Load, NOTHING_WRONG, post } from '../support/load.ts'
import { cookieOf } from '../support/operators.ts'
import { intray, startServer } from '../support/process.ts'
import { tempFolder } from '../support/temp.ts'
import { until } from '../support/until.ts'

const TENANT_OF_B = { accountId: 7, companyId: 43 }
/** Others in the cell that the tenant leaves, and in the one that it comes to. */
const NEIGHBOUR = { accountId: 8, companyId: 43 }
const RESIDENT = { accountId: 9, companyId: 43 }
const PER_SECOND = 200
const MOST_MESSAGES = 60_000

/** With one dedupe key, so that tenants can move between them. */
async function startCells(t: TestContext): Promise<readonly [Cell, Cell]> {
  const start = async (name: string, ...options: readonly string[]): Promise<Cell> => {
    const databaseUrl = `sqlite:${join(tempFolder(name), 'intray.db')}`
    const made = await intray(['init', ...options], { INTRAY_DATABASE_URL: databaseUrl })
    assert.equal(made.code, 0, made.stderr)
    const { port } = await startServer(t, { INTRAY_DATABASE_URL: databaseUrl })
    return { name, port, databaseUrl }
  }
  const a = await start('cell_a')
  return [a, await start('cell_b', '--key-from', a.databaseUrl)]
}

const refsOf = async ({ databaseUrl }: Cell): Promise<string[]> =>
  (await readJournal(databaseUrl)).map(({ event }) => event.sourceRef!)

const keyIdOf = (token: string): string => token.split('_')[1]!
const wrongToken = (): string => mintToken().token

test('through one address each token reaches its own cell, to send, to read and to follow', async (t) => {
  if (!hasHaproxy()) return t.skip(WITHOUT_HAPROXY)
  const [a, b] = await startCells(t)
  const ofA = await withStore(a.databaseUrl, (store) => createToken(store))
  const { sender, processor, link } = await withStore(b.databaseUrl, async (store) => {
    await store.operators.create({ id: 'o1', name: 'ada', role: 'admin', tenants: null, password: null, createdAt: 1 })
    const operator = await store.operators.findByName('ada')
    return {
      sender: await createToken(store, TENANT_OF_B),
      processor: await createToken(store, { ...TENANT_OF_B, scope: 'processor' }),
      link: await createSignInLink(store.operators, operator!, Date.now()),
    }
  })
  const { port, updateMap, routes } = await startCellsProxy(t, [a, b])
  const get = (path: string, headers: Record<string, string> = {}) => send(port, { path, headers })
  const bearer = (token: string) => ({ Authorization: `Bearer ${token}` })
  const unrouted = await get('/api/ping', bearer(sender))
  assert.deepEqual([unrouted.status, unrouted.json?.error], [401, 'invalid_token'], 'control: the map is empty')

  await updateMap()
  const found = await routes()
  assert.deepEqual(
    [ofA, sender, processor].map((one) => found.get(keyIdOf(one))),
    ['cell_a', 'cell_b', 'cell_b'],
  )
  for (const [token, company] of [
    [ofA, 42],
    [sender, 43],
  ] as const) {
    const ping = await get('/api/ping', bearer(token))
    assert.deepEqual([ping.status, ping.json?.company_id], [200, company])
    const tester = await get(`/api/inbox-test?token=${token}`)
    assert.deepEqual([tester.status, tester.json?.company_id], [200, company])
  }

  const follower = await EventStream.open(port, processor, { after: 0 })
  const stored = await post(port, sender, '{"source_ref":"to b"}')
  assert.equal(stored.status, 200)
  assert.equal((await post(port, ofA, '{"source_ref":"to a"}')).status, 200)
  await follower.until(({ ids }) => ids.length === 1)
  assert.equal(follower.events[0]!.source_ref, 'to b')
  follower.close()
  const list = await get('/v1/inbox/events', bearer(processor))
  assert.deepEqual(
    (list.json!.events as { source_ref: string }[]).map((event) => event.source_ref),
    ['to b'],
  )
  assert.deepEqual([await refsOf(a), await refsOf(b)], [['to a'], ['to b']])

  const refused = [await get('/api/ping', bearer(wrongToken())), await get('/api/ping')]
  assert.deepEqual(
    refused.map(({ status, json }) => [status, json?.error]),
    [
      [401, 'invalid_token'],
      [401, 'missing_token'],
    ],
  )

  const signIn = (host: string) =>
    send(port, {
      method: 'POST',
      path: '/v1/console/session',
      headers: { Host: host, 'Content-Type': 'application/json' },
      body: JSON.stringify({ link }),
    })
  assert.equal((await signIn('a.inbox.example.org')).status, 401)
  const signedIn = await signIn('b.inbox.example.org')
  assert.equal(signedIn.status, 200)
  const session = await get('/v1/console/session', { Host: 'b.inbox.example.org', Cookie: cookieOf(signedIn) })
  assert.equal(session.status, 200)
})

type TokenMade = Parameters<Store['tokens']['create']>[0]

const mintFor = (tenant: Tenant, token = mintToken()) => {
  const terms = { scope: 'cf', label: '', expiresAt: null, createdAt: 1, rotatedFrom: null }
  return { token: token.token, made: { keyId: token.keyId, hash: token.hash, ...tenant, ...terms } satisfies TokenMade }
}

const isMoved = ({ status, json }: TestAnswer): boolean => status === 503 && json?.error === 'tenant_moved'

/** Moves a token from cell to cell under load, of others too. `move`: makes the second cell have it. */
async function moveUnderLoad(t: TestContext, move: (a: Cell, b: Cell, made: TokenMade) => Promise<void>) {
  const [a, b] = await startCells(t)
  const [own, neighbour, resident] = [TENANT_OF_B, NEIGHBOUR, RESIDENT].map((tenant) => mintFor(tenant))
  await withStore(a.databaseUrl, async (store) => {
    for (const { made } of [own!, neighbour!]) await store.tokens.create(made)
  })
  await withStore(b.databaseUrl, (store) => store.tokens.create(resident!.made))
  const { port, updateMap, routes, mapLines } = await startCellsProxy(t, [a, b])
  await updateMap()
  const { keyId } = own!.made
  assert.equal((await routes()).get(keyId), 'cell_a')

  let isEnding = false
  const load = (token: string, seed: number, perSecond: number, connections: number) => {
    const ledger = new Ledger(seed, 500)
    const pace = { perSecond, connections, limit: MOST_MESSAGES, until: () => isEnding, retries: isMoved }
    const { finished } = new Load({ port, token, ledger, ...pace })
    return { ledger, finished }
  }
  const { ledger, finished } = load(own!.token, 7, PER_SECOND, 4)
  const others = [neighbour!, resident!].map(({ token }, n) => load(token, 8 + n, PER_SECOND / 4, 1))
  const atLeast = (count: number) => until(`${count} messages`, () => ledger.acknowledged.size >= count)
  await atLeast(100)
  await move(a, b, own!.made)
  await updateMap()
  assert.equal((await routes()).get(keyId), 'cell_b')
  const lines = mapLines().filter((line) => line.startsWith(keyId))
  await atLeast(ledger.acknowledged.size + 100)
  isEnding = true
  await Promise.all([finished, ...others.map((other) => other.finished)])
  for (const other of others) {
    assert.deepEqual([other.ledger.failed, other.ledger.refused], [[], []])
    assert.ok(other.ledger.acknowledged.size > 0)
  }
  const rowsOf = async (cell: Cell, { accountId, companyId }: Tenant) =>
    (await readJournal(cell.databaseUrl)).filter(
      ({ event }) => event.accountId === accountId && event.companyId === companyId,
    )
  for (const [{ ledger: sent }, cell, tenant] of [
    [others[0]!, a, NEIGHBOUR],
    [others[1]!, b, RESIDENT],
  ] as const) {
    assert.deepEqual(faultsOf(auditRows(await rowsOf(cell, tenant), sent)), NOTHING_WRONG)
  }
  return { a, ledger, keyId, lines, inA: await rowsOf(a, TENANT_OF_B), inB: await rowsOf(b, TENANT_OF_B) }
}

const refs = (rows: readonly JournalRow[]): string[] => rows.map(({ event }) => event.sourceRef!)

test('a token that moves to another cell under load is routed there, and no request of it is lost', async (t) => {
  if (!hasHaproxy()) return t.skip(WITHOUT_HAPROXY)
  const { ledger, inA, inB } = await moveUnderLoad(t, (_a, b, made) =>
    withStore(b.databaseUrl, (store) => store.tokens.create(made)),
  )
  t.diagnostic(`${inA.length} messages before the move, ${inB.length} after it`)
  assert.deepEqual([ledger.failed, ledger.refused], [[], []])
  assert.ok(inA.length >= 100 && inB.length > 0)
  assert.deepEqual([...refs(inA), ...refs(inB)].toSorted(), [...ledger.acknowledged.keys()].toSorted())
})

test('a tenant that moves to another cell under load loses nothing and keeps its order, and others notice nothing', async (t) => {
  if (!hasHaproxy()) return t.skip(WITHOUT_HAPROXY)
  let closedMs = 0
  const { a, ledger, keyId, lines, inA, inB } = await moveUnderLoad(t, async (from, to) => {
    const args = ['copy', '--tenant', '7/43', '--from', from.databaseUrl, '--to', to.databaseUrl]
    closedMs = (await intrayJson(args, {})).closed_ms as number
  })
  t.diagnostic(`${inA.length} messages were moved in ${closedMs} ms, ${inB.length - inA.length} came after that`)
  assert.deepEqual([ledger.failed, ledger.refused], [[], []])
  const { lost, twice, altered, unsent, misnumbered } = auditRows(inB, ledger)
  assert.deepEqual({ lost, twice, altered, unsent }, { lost: [], twice: [], altered: [], unsent: 0 })
  // Those before the move were answered with their old ids.
  assert.deepEqual(misnumbered.toSorted(), refs(inA).toSorted())
  assert.ok(inA.length >= 100 && inB.length > inA.length)
  assert.deepEqual(
    refs(inB).slice(0, inA.length),
    refs(inA),
    'in the order of the old ids, and before all that came later',
  )
  assert.deepEqual(lines, [`${keyId} cell_b`], 'the old cell lists the token as moved, and the script leaves it out')
  const { stdout } = await intray(['token', 'list', '--json'], { INTRAY_DATABASE_URL: a.databaseUrl })
  assert.match(
    stdout
      .toString()
      .split('\n')
      .find((line) => line.includes(keyId))!,
    /"moved_to":""/,
  )
})
