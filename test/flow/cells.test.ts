// Two cells behind one HAProxy with the published configuration: each request reaches the cell that has its token.

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { createSignInLink } from '../../src/auth/sessions.ts'
import { mintToken } from '../../src/auth/token.ts'
import type { Store } from '../../src/store/contract/store.ts'
import { send } from '../support/client.ts'
import { EventStream } from '../support/event-stream.ts'
import { type Cell, hasHaproxy, startCellsProxy, WITHOUT_HAPROXY } from '../support/haproxy.ts'
import { createToken, readJournal, withStore } from '../support/journal.ts'
import { Ledger, Load, post } from '../support/load.ts'
import { cookieOf } from '../support/operators.ts'
import { startServer } from '../support/process.ts'
import { tempFolder } from '../support/temp.ts'
import { until } from '../support/until.ts'

const TENANT_OF_B = { accountId: 7, companyId: 43 }
const PER_SECOND = 200
const MOST_MESSAGES = 60_000

async function startCells(t: TestContext): Promise<readonly [Cell, Cell]> {
  const start = async (name: string): Promise<Cell> => {
    const databaseUrl = `sqlite:${join(tempFolder(name), 'intray.db')}`
    await withStore(databaseUrl, async () => {})
    const { port } = await startServer(t, { INTRAY_DATABASE_URL: databaseUrl })
    return { name, port, databaseUrl }
  }
  return [await start('cell_a'), await start('cell_b')]
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

/** Moves a token from cell to cell under load. `move`: makes the second cell have it. */
async function moveUnderLoad(t: TestContext, move: (a: Cell, b: Cell, made: TokenMade) => Promise<void>) {
  const [a, b] = await startCells(t)
  const { keyId, token, hash } = mintToken()
  const made = { keyId, hash, ...TENANT_OF_B, scope: 'cf', label: '', expiresAt: null, createdAt: 1, rotatedFrom: null }
  await withStore(a.databaseUrl, (store) => store.tokens.create(made))
  const { port, updateMap, routes } = await startCellsProxy(t, [a, b])
  await updateMap()
  assert.equal((await routes()).get(keyId), 'cell_a')

  const ledger = new Ledger(7, 500)
  let isEnding = false
  const pace = { perSecond: PER_SECOND, limit: MOST_MESSAGES, until: () => isEnding }
  const load = new Load({ port, token, ledger, connections: 4, ...pace })
  const atLeast = (count: number) => until(`${count} messages`, () => ledger.acknowledged.size >= count)
  await atLeast(100)
  await move(a, b, made)
  await updateMap()
  assert.equal((await routes()).get(keyId), 'cell_b')
  await atLeast(ledger.acknowledged.size + 100)
  isEnding = true
  await load.finished
  return { ledger, inA: await refsOf(a), inB: await refsOf(b) }
}

test('a token that moves to another cell under load is routed there, and no request of it is lost', async (t) => {
  if (!hasHaproxy()) return t.skip(WITHOUT_HAPROXY)
  const { ledger, inA, inB } = await moveUnderLoad(t, (_a, b, made) =>
    withStore(b.databaseUrl, (store) => store.tokens.create(made)),
  )
  t.diagnostic(`${inA.length} messages before the move, ${inB.length} after it`)
  assert.deepEqual([ledger.failed, ledger.refused], [[], []])
  assert.ok(inA.length >= 100 && inB.length > 0)
  assert.deepEqual([...inA, ...inB].toSorted(), [...ledger.acknowledged.keys()].toSorted())
})
