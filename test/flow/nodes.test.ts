// Several nodes on one PostgreSQL database, each a process of its own: one service, whichever node is asked, whichever dies.

import assert from 'node:assert/strict'
import { dirname } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import type pg from 'pg'
import { send } from '../support/client.ts'
import { intrayJson } from '../support/command.ts'
import { createToken, untilIndexed, withStore } from '../support/journal.ts'
import { auditRows, faultsOf, Ledger, NOTHING_WRONG, post } from '../support/load.ts'
import { Pipeline, type PipelinedAnswer } from '../support/pipeline.ts'
import { connect, createDatabase, newPostgresDatabase, withClient } from '../support/postgres/databases.ts'
import { readCounts, readRows } from '../support/postgres/rows.ts'
import { newPostgres, type PostgresServer, startPostgres } from '../support/postgres/server.ts'
import { type ServerProcess, startServer } from '../support/process.ts'
import { Senders } from '../support/senders.ts'
import { until, within } from '../support/until.ts'

const SEED = 20261115
const CONNECTIONS = 8
const UNSAFE_SERVER = fileURLToPath(new URL('../support/unsafe-server.ts', import.meta.url))

/** A node that its connections are known by in the database. */
function startNode(
  t: TestContext,
  url: string,
  name: string,
  env: Record<string, string> = {},
  command?: readonly string[],
): Promise<ServerProcess> {
  const INTRAY_DATABASE_URL = `${url}?application_name=${name}`
  return startServer(t, { INTRAY_DATABASE_URL, INTRAY_LOG_LEVEL: 'error', ...env }, command)
}

async function startTwo(t: TestContext, env?: Record<string, string>) {
  const url = await newPostgresDatabase()
  const token = await withStore(url, (store) => createToken(store))
  const nodes = await Promise.all(['node-a', 'node-b'].map((name) => startNode(t, url, name, env)))
  return { url, token, nodes }
}

/** For each node connections that carry many requests at once. */
function openConnections(t: TestContext, nodes: readonly ServerProcess[], token: string): Promise<Pipeline[][]> {
  return Promise.all(
    nodes.map(({ port }) =>
      Promise.all(
        Array.from({ length: CONNECTIONS }, async () => {
          const connection = await Pipeline.open(port, token)
          t.after(() => connection.close())
          return connection
        }),
      ),
    ),
  )
}

const REFS = 20_000
const CHUNK = 60

interface Plan {
  /** What each of two nodes is sent, in order. */
  readonly lists: readonly [number[], number[]]
  /** What both are sent at the same time. */
  readonly together: number[]
}

/** Every ref once, and every fourth of them once more: at the same time through both nodes, or later through the other or the same. */
function planWithResends(): Plan {
  const lists: [number[], number[]] = [[], []]
  const together: number[] = []
  const later: { at: number; list: number; ref: number }[] = []
  for (let ref = 0; ref < REFS; ref += 1) {
    const node = ref % 8 < 4 ? 0 : 1
    while (later.length > 0 && later[0]!.at <= ref) {
      const due = later.shift()!
      lists[due.list]!.push(due.ref)
    }
    const kind = ref % 4 === 0 ? (ref / 4) % 3 : null
    if (kind === 0) together.push(ref)
    else lists[node]!.push(ref)
    if (kind === 1 || kind === 2) later.push({ at: ref + 3000, list: kind === 1 ? 1 - node : node, ref })
  }
  for (const { list, ref } of later) lists[list]!.push(ref)
  return { lists, together }
}

test('20,000 events with 20 % re-sends spread over two nodes: one event and one id for each ref, and the counts are the rows', async (t) => {
  const { url, token, nodes } = await startTwo(t)
  const connections = await openConnections(t, nodes, token)
  const ledger = new Ledger(SEED)
  const bodyOf = (ref: number) =>
    `{"source_ref":"order:${ref}","channel_ref":"shop/${ref % 37}","message":{"type":"text","text":"é ${ref}"}}`
  for (let ref = 0; ref < REFS; ref += 1) ledger.sent.set(`order:${ref}`, Buffer.from(bodyOf(ref)))
  const seen = { requests: 0, duplicates: 0, met: 0, otherId: 0, notAccepted: 0 }
  const inFlight = new Map<number, number>()
  const note = (ref: number, answer: PipelinedAnswer) => {
    seen.requests += 1
    if (answer.status !== 200 || answer.isConflict) seen.notAccepted += 1
    if (answer.isDuplicate) seen.duplicates += 1
    const known = ledger.acknowledged.get(`order:${ref}`)
    if (known !== undefined && known !== answer.id) seen.otherId += 1
    ledger.acknowledged.set(`order:${ref}`, answer.id)
    inFlight.set(ref, inFlight.get(ref)! - 1)
  }
  const sendAll = async (connection: Pipeline, refs: readonly number[]) => {
    for (let at = 0; at < refs.length; at += CHUNK) {
      const part = refs.slice(at, at + CHUNK)
      for (const ref of part) {
        const already = inFlight.get(ref) ?? 0
        if (already > 0) seen.met += 1
        inFlight.set(ref, already + 1)
      }
      const answers = await connection.send(part.map(bodyOf))
      for (const [n, answer] of answers.entries()) note(part[n]!, answer)
    }
  }
  const sendTogether = async (pair: readonly Pipeline[], refs: readonly number[]) => {
    for (let at = 0; at < refs.length; at += CHUNK) {
      await Promise.all(pair.map((connection) => sendAll(connection, refs.slice(at, at + CHUNK))))
    }
  }
  const { lists, together } = planWithResends()
  const chunksOf = (refs: readonly number[], n: number) =>
    refs.filter((_, at) => Math.floor(at / CHUNK) % (CONNECTIONS - 1) === n)
  const [toBoth, ...rest] = connections[0]!.map((connection, n) => [connection, connections[1]![n]!] as const)
  const work = rest.flatMap((pair, n) => pair.map((connection, node) => sendAll(connection, chunksOf(lists[node]!, n))))
  work.push(sendTogether(toBoth!, together))
  await within('all answers', Promise.all(work))
  t.diagnostic(
    `${seen.requests} requests, ${seen.duplicates} re-sends, ${seen.met} of them while the first was in flight`,
  )
  const resends = REFS / 4
  assert.deepEqual(
    { ...seen, met: seen.met >= together.length },
    { requests: REFS + resends, duplicates: resends, met: true, otherId: 0, notAccepted: 0 },
  )
  const found = auditRows(await readRows(url), ledger)
  assert.equal(found.acknowledged, REFS)
  assert.deepEqual(faultsOf(found), NOTHING_WRONG)
  await untilIndexed(url)
  const { indexed, rows } = await readCounts(url)
  assert.deepEqual(indexed, rows)
  assert.equal(Object.keys(rows).length, 37)

  // The control: what the audit would say of a service that lost one, doubled one and changed one.
  await withClient(url, async (client) => {
    await client.query(`DELETE FROM intray.events WHERE source_ref = 'order:1'`)
    await client.query(`UPDATE intray.events SET payload = payload || '\\x20' WHERE source_ref = 'order:2'`)
    await client.query(`CREATE TEMP TABLE twin AS SELECT * FROM intray.events WHERE source_ref = 'order:3'`)
    await client.query(`UPDATE twin SET id = nextval('intray.event_ids')`)
    await client.query('INSERT INTO intray.events SELECT * FROM twin')
  })
  const { lost, altered, twice } = auditRows(await readRows(url), ledger)
  assert.deepEqual({ lost, altered, twice }, { lost: ['order:1'], altered: ['order:2'], twice: ['order:3'] })
  const tampered = await readCounts(url)
  assert.notDeepEqual(tampered.indexed, tampered.rows)
})

const ROUNDS = 50
const ROUND_REFS = 1000

test('the same 1,000 refs in opposite order through two nodes, 50 rounds: no 5xx, one event for each ref', async (t) => {
  // On a slow machine messages would wait for longer than the default and be refused: that is another test's.
  const { url, token, nodes } = await startTwo(t, { INTRAY_QUEUE_MAX_WAIT: '10m' })
  const connections = await openConnections(t, nodes, token)
  const statuses = new Map<number, number>()
  let duplicates = 0
  let disagreements = 0
  const sendRound = async (ofNode: readonly Pipeline[], refs: readonly string[]): Promise<Map<string, number>> => {
    const share = ROUND_REFS / CONNECTIONS
    const answered = ofNode.map(async (connection, n) => {
      const part = refs.slice(n * share, (n + 1) * share)
      return [part, await connection.send(part.map((ref) => `{"source_ref":"${ref}","channel_ref":"both"}`))] as const
    })
    const ids = new Map<string, number>()
    for (const [part, answers] of await Promise.all(answered)) {
      for (const [n, { status, id, isDuplicate }] of answers.entries()) {
        statuses.set(status, (statuses.get(status) ?? 0) + 1)
        if (isDuplicate) duplicates += 1
        ids.set(part[n]!, id)
      }
    }
    return ids
  }
  for (let round = 0; round < ROUNDS; round += 1) {
    const refs = Array.from({ length: ROUND_REFS }, (_, n) => `round ${round}: ${n}`)
    const both = Promise.all([sendRound(connections[0]!, refs), sendRound(connections[1]!, refs.toReversed())])
    const [a, b] = await within(`the answers of round ${round}`, both)
    disagreements += refs.filter((ref) => a.get(ref) !== b.get(ref)).length
  }
  const { rows } = await withClient(url, (client) =>
    client.query(`SELECT count(*)::int AS events, count(DISTINCT source_ref)::int AS refs,
      (SELECT count(*)::int FROM intray.resends) AS resends,
      (SELECT deadlocks::int FROM pg_stat_database WHERE datname = current_database()) AS deadlocks FROM intray.events`),
  )
  t.diagnostic(
    `${[...statuses].map(([status, count]) => `${count} × ${status}`).join(', ')}; ${rows[0].deadlocks} deadlocks`,
  )
  assert.deepEqual([...statuses], [[200, 2 * ROUNDS * ROUND_REFS]])
  assert.equal(disagreements, 0)
  const all = ROUNDS * ROUND_REFS
  assert.equal(duplicates, all)
  assert.deepEqual(rows[0], { events: all, refs: all, resends: all, deadlocks: 0 })
})

test('a token disabled by the command is refused on both nodes when it returns, by polling alone: with their connections cut, too', async (t) => {
  const { url, nodes } = await startTwo(t)
  const cli = (...args: string[]) => intrayJson(['token', ...args], { INTRAY_DATABASE_URL: url })
  const { token, key_id: keyId } = await cli('create', '--account', '7', '--company', '42', '--scope', 'cf')
  const headers = { Authorization: `Bearer ${String(token)}` }
  const pingAll = async () => {
    const answers = await Promise.all(nodes.map(({ port }) => send(port, { path: '/api/ping', headers })))
    return answers.map(({ status, json }) => [status, json?.error])
  }
  const works = [
    [200, undefined],
    [200, undefined],
  ]
  const refused = [
    [401, 'token_disabled'],
    [401, 'token_disabled'],
  ]
  assert.deepEqual(await pingAll(), works, 'both have it in memory')
  await cli('disable', String(keyId))
  assert.deepEqual(await pingAll(), refused)
  await cli('enable', String(keyId))
  assert.deepEqual(await pingAll(), works)
  // Nothing the server could have told a session survives this: there is no LISTEN to lose.
  const cut = await withClient(url, (client) =>
    client.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name IN ('node-a', 'node-b')
      AND datname = current_database()`),
  )
  assert.ok(cut.rows.length >= 2, `${cut.rows.length} connections were cut`)
  await cli('disable', String(keyId))
  assert.deepEqual(await pingAll(), refused)
})

test('a node that stood still while a token was disabled refuses it in its first answer', async (t) => {
  const { url, nodes } = await startTwo(t)
  const cli = (...args: string[]) => intrayJson(['token', ...args], { INTRAY_DATABASE_URL: url })
  const { token, key_id: keyId } = await cli('create', '--account', '7', '--company', '42', '--scope', 'cf')
  const headers = { Authorization: `Bearer ${String(token)}` }
  const ping = () => send(nodes[1]!.port, { path: '/api/ping', headers })
  assert.equal((await ping()).status, 200, 'it has it in memory')
  const { child } = nodes[1]!
  child.kill('SIGSTOP')
  // The command waits until the node counts as gone.
  await cli('disable', String(keyId))
  const first = ping()
  child.kill('SIGCONT')
  assert.equal((await first).json?.error, 'token_disabled')
})

const INDEXER_KILLS = 3
const INDEXER_LOCK = `SELECT a.application_name AS name FROM pg_locks l JOIN pg_stat_activity a USING (pid)
  WHERE l.locktype = 'advisory' AND l.granted AND l.classid = x'494e5452'::int AND l.objid = 4
    AND a.datname = current_database()`

/** Stops all nodes where they stand, again and again, until what the database then shows is what we are after. */
async function standStill<T>(nodes: readonly ServerProcess[], look: () => Promise<T | null>): Promise<T> {
  return until('the nodes stand still at the right moment', async () => {
    for (const { child } of nodes) child.kill('SIGSTOP')
    const found = await look()
    if (found === null) for (const { child } of nodes) child.kill('SIGCONT')
    return found
  })
}

async function lastIds(looker: pg.Client): Promise<{ newest: number; indexed: number }> {
  const { rows } = await looker.query(`SELECT (SELECT coalesce(max(id), 0)::int FROM intray.events) AS newest,
    (SELECT position::int FROM intray.index_cursors WHERE source = 'events') AS indexed`)
  return rows[0]
}

test('the node whose indexer is at work is killed under load: the other goes on, and the counts are the rows', async (t) => {
  // Small steps: one is nearly always under way.
  const env = { INTRAY_INDEX_BATCH_ROWS: '20' }
  const { url, token, nodes } = await startTwo(t, env)
  const names = ['node-a', 'node-b']
  const ledger = new Ledger(SEED, 500)
  const ports = nodes.map(({ port }) => port)
  const senders = new Senders({ ports, token, ledger, each: 3 })
  t.after(() => senders.abandon())
  const looker = await connect(url)
  t.after(() => looker.end())
  const killed: string[] = []
  for (let kill = 0; kill < INDEXER_KILLS; kill += 1) {
    await senders.more(100)
    const at = await standStill(nodes, async () => {
      const { rows } = await looker.query(INDEXER_LOCK)
      const { newest, indexed } = await lastIds(looker)
      return rows[0] && indexed < newest ? names.indexOf(rows[0].name) : null
    })
    const { indexed } = await lastIds(looker)
    nodes[at]!.child.kill('SIGKILL')
    await within('the killed node to be gone', nodes[at]!.exited)
    nodes[1 - at]!.child.kill('SIGCONT')
    killed.push(names[at]!)
    let looks = 0
    await until('the other goes on', async () => {
      looks += 1
      return (await lastIds(looker)).indexed > indexed
    })
    // A hundred are a second at most. Whoever waits for a statement of the dead node to be given up waits for 30 s.
    assert.ok(looks <= 2000, `it went on at look ${looks}`)
    nodes[at] = await startNode(t, url, names[at]!, env)
    ports[at] = nodes[at]!.port
  }
  // The control: with nobody left the index stands still, so it was the other node that went on.
  await senders.more(50)
  await standStill(nodes, async () => {
    const { newest, indexed } = await lastIds(looker)
    return indexed < newest ? true : null
  })
  for (const { child } of nodes) child.kill('SIGKILL')
  await Promise.all(nodes.map(({ exited }) => exited))
  const progress = async () => (await lastIds(looker)).newest === (await lastIds(looker)).indexed
  await assert.rejects(until('the index moves with nobody there', progress, 500), /waited in vain/)
  const last = await startNode(t, url, 'node-c', env)
  ports.splice(0, 2, last.port)
  await senders.more(20)
  await senders.stop()

  await untilIndexed(url)
  const found = auditRows(await readRows(url), ledger)
  t.diagnostic(
    `killed in the middle of a step: ${killed.join(', ')}; ${found.acknowledged} acknowledged, ${ledger.failed.length} requests cut off, ` +
      `${found.lost.length} lost, ${found.twice.length} twice`,
  )
  assert.equal(killed.length, INDEXER_KILLS)
  assert.deepEqual(faultsOf(found), NOTHING_WRONG)
  const { indexed, rows } = await readCounts(url)
  assert.deepEqual(indexed, rows)
})

interface Outage {
  readonly url: string
  readonly token: string
  readonly nodes: readonly ServerProcess[]
  readonly senders: Senders
  readonly ledger: Ledger
  /** The database server is stopped now. */
  readonly inFlight: number
  startAgain(): Promise<PostgresServer>
}

/** Two nodes under load, a third without, and their database server shut down under them. */
async function beginOutage(t: TestContext, command?: readonly string[]): Promise<Outage> {
  const server = await newPostgres()
  const url = await createDatabase(server.url('postgres'))
  const token = await withStore(url, (store) => createToken(store))
  const names = command ? ['node-a'] : ['node-a', 'node-b', 'idle-node']
  const nodes = await Promise.all(names.map((name) => startNode(t, url, name, {}, command)))
  const ledger = new Ledger(SEED, 500)
  const ports = nodes.slice(0, 2).map(({ port }) => port)
  const senders = new Senders({ ports, token, ledger, each: 6 })
  t.after(() => senders.abandon())
  await senders.more(200)
  const { inFlight } = senders
  await server.stop()
  const startAgain = async () => {
    const again = await startPostgres(dirname(server.dataFolder), undefined, server.port)
    t.after(() => again.kill())
    return again
  }
  return { url, token, nodes, senders, ledger, inFlight, startAgain }
}

test('while the database is stopped every node says so, 503 and not ready, and comes back without a restart', async (t) => {
  const { url, token, nodes, senders, ledger, inFlight, startAgain } = await beginOutage(t)
  for (const [n, { port }] of nodes.entries()) {
    const ready = await until(`node ${n} is not ready`, async () => {
      const answer = await send(port, { path: '/readyz' })
      return answer.status !== 200 && answer
    })
    assert.deepEqual([ready.status, ready.json?.error], [503, 'storage_unavailable'])
    assert.ok(ready.headers['retry-after'])
    assert.equal((await send(port, { path: '/livez' })).status, 200)
    const refused = await post(port, token, '{"source_ref":"while the database is away"}')
    assert.deepEqual([refused.status, refused.json?.error], [503, 'storage_unavailable'])
    assert.ok(refused.headers['retry-after'])
  }
  await until('a sender was told', () => ledger.refused.length > 0)
  const before = senders.acknowledged
  await startAgain()
  for (const { port } of nodes) {
    await until('the node is ready', async () => (await send(port, { path: '/readyz' })).status === 200)
    const taken = await post(port, token, '{"source_ref":"after the database came back"}')
    assert.equal(taken.status, 200, taken.text)
  }
  await senders.more(200)
  await senders.stop()
  assert.deepEqual(
    nodes.map(({ child }) => child.exitCode),
    nodes.map(() => null),
    'the same processes',
  )
  const rows = (await readRows(url)).filter(({ event }) => event.sourceRef?.startsWith('load:'))
  const found = auditRows(rows, ledger)
  const statuses = new Set(ledger.refused.map(({ answer }) => answer.status))
  t.diagnostic(
    `1 stop with ${inFlight} requests in flight; ${before} acknowledged before it, ${found.acknowledged - before} after it; ` +
      `${ledger.refused.length} × ${[...statuses].join()}, ${ledger.failed.length} cut off; ${found.lost.length} lost, ${found.twice.length} twice`,
  )
  assert.deepEqual(faultsOf(found), NOTHING_WRONG)
  assert.equal(found.acknowledged, ledger.sent.size)
  assert.ok(inFlight > 0)
  assert.deepEqual([...statuses], [503])
  assert.deepEqual(ledger.failed, [])
})

test('the same audit finds what a node lost that acknowledged while the database was stopped', async (t) => {
  const { url, nodes, senders, ledger, startAgain } = await beginOutage(t, [process.execPath, UNSAFE_SERVER])
  // It does not survive the failure that it never told anybody about.
  await within('the control to end', nodes[0]!.exited)
  await senders.abandon()
  await startAgain()
  const { lost } = auditRows(await readRows(url), ledger)
  t.diagnostic(`${lost.length} of ${ledger.acknowledged.size} acknowledged messages lost`)
  assert.ok(lost.length > 0, 'the control lost nothing, so the audit shows nothing')
})
