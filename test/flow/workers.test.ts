// INTRAY_WORKERS: several processes on one port, under one that starts, replaces and stops them.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import net from 'node:net'
import { dirname, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { childrenOf, isRunning, isStopped } from '../support/children.ts'
import { parseAnswers, RawConnection, send } from '../support/client.ts'
import { runToEnd } from '../support/command.ts'
import { createToken, withStore } from '../support/journal.ts'
import { auditRows, faultsOf, Ledger, Load, NOTHING_WRONG, post } from '../support/load.ts'
import { refusesConnections } from '../support/port.ts'
import { createDatabase, newPostgresDatabase, withClient } from '../support/postgres/databases.ts'
import { readRows } from '../support/postgres/rows.ts'
import { newPostgres, startPostgres } from '../support/postgres/server.ts'
import { LAUNCHER, type ServerProcess, startServer } from '../support/process.ts'
import { Senders } from '../support/senders.ts'
import { tempFolder } from '../support/temp.ts'
import { until, within } from '../support/until.ts'

const TOKEN = /itr_[0-9A-Za-z]{10}_[0-9A-Za-z]{36}/g
const SEED = 20261115

interface Fleet {
  readonly url: string
  readonly token: string
  readonly server: ServerProcess
  workers(): number[]
}

async function startFleet(t: TestContext, databaseUrl?: string): Promise<Fleet> {
  const url = databaseUrl ?? (await newPostgresDatabase())
  const token = await withStore(url, (store) => createToken(store))
  // Without the console: its build is a child process as well, where no test run has built it before.
  const env = { INTRAY_DATABASE_URL: url, INTRAY_WORKERS: '2', INTRAY_CONSOLE: 'off' }
  const server = await startServer(t, env)
  const workers = () => childrenOf(server.child.pid!)
  t.after(() => workers().map((pid) => process.kill(pid, 'SIGKILL')))
  await until('both workers listen', () => listenedOn(server) === 2)
  return { url, token, server, workers }
}

/** How many workers have said in the log that they listen, those that ended since included. */
function listenedOn(server: ServerProcess): number {
  return server.stderr().split('"msg":"listening"').length - 1
}

/** How many servers say that they are there. */
async function nodesOn(url: string): Promise<number> {
  const { rows } = await withClient(url, (client) => client.query('SELECT count(*)::int AS count FROM intray.nodes'))
  return rows[0].count
}

/** A connection that has had an answer: some worker has it. */
async function servedConnection({ server, token }: Fleet): Promise<RawConnection> {
  const connection = await RawConnection.open(server.port)
  await ask(connection, token)
  return connection
}

/** Whether it was answered; false if the connection is gone. */
async function ask(connection: RawConnection, token: string): Promise<boolean> {
  const before = parseAnswers(connection.text).length
  connection.write(`GET /api/ping HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer ${token}\r\n\r\n`)
  const answers = await within('an answer, or the end of the connection', connection.answers(before + 1))
  assert.ok(answers.every(({ status }) => status === 200))
  return answers.length > before
}

async function assertGone(pids: readonly number[], server: ServerProcess): Promise<void> {
  await until('no worker is left', () => !pids.some(isRunning))
  assert.ok(await refusesConnections(server.port), 'nobody listens any more')
}

test('two workers share one port and both serve; one that is killed is replaced, and service goes on', async (t) => {
  const fleet = await startFleet(t)
  const { url, token, server, workers } = fleet
  const first = workers()
  assert.equal(first.length, 2)
  // Before the senders: a worker that stands still, with a connection that it has not taken, is given no other.
  const connections = await Promise.all(Array.from({ length: 8 }, () => servedConnection(fleet)))
  const ledger = new Ledger(SEED, 500)
  const senders = new Senders({ ports: [server.port], token, ledger, each: 6 })
  t.after(() => senders.abandon())
  await senders.more(100)

  process.kill(first[0]!, 'SIGKILL')
  await until('the killed worker is gone', () => !isRunning(first[0]!))
  const answered = await Promise.all(connections.map((connection) => ask(connection, token)))
  const kept = answered.filter(Boolean).length
  assert.ok(kept > 0 && kept < connections.length, `${kept} of 8 connections were with the worker that is still there`)
  await senders.more(50)
  await until('it is replaced, and the new one listens', () => listenedOn(server) === 3)
  assert.equal(workers().length, 2)

  // The other one as well: what is served from now on is served by replacements.
  process.kill(first[1]!, 'SIGKILL')
  await until('the second one is gone', () => !isRunning(first[1]!))
  await senders.more(50)
  await until('it is replaced, too', () => workers().length === 2)
  assert.equal(workers().filter((pid) => first.includes(pid)).length, 0)
  await within('all senders to end', senders.stop())
  const found = auditRows(await readRows(url), ledger)
  t.diagnostic(
    `2 kills; ${8 - kept} of 8 connections cut by the first; ${found.acknowledged} acknowledged, ${ledger.failed.length} cut off, ` +
      `${found.lost.length} lost, ${found.twice.length} twice`,
  )
  assert.deepEqual(faultsOf(found), NOTHING_WRONG)
  assert.equal(found.acknowledged, ledger.sent.size)
  assert.ok(ledger.failed.length > 0, 'the kills fell on requests in flight')
  assert.deepEqual(ledger.refused, [])
})

test('a connection that a worker is given and does not live to take is closed: its client can send again', async (t) => {
  const { server, workers } = await startFleet(t)
  const [pid] = workers()
  process.kill(pid!, 'SIGSTOP')
  await until('the worker stands still', () => isStopped(pid!))
  const connections = await Promise.all(Array.from({ length: 4 }, () => RawConnection.open(server.port)))
  t.after(() => connections.map((connection) => connection.destroy()))
  for (const connection of connections) connection.write('GET /livez HTTP/1.1\r\nHost: test\r\n\r\n')
  const waiting = () => connections.filter(({ text }) => text === '')
  await until('the other worker has answered all but one', () => waiting().length === 1)

  process.kill(pid!, 'SIGKILL')
  await within('the end of the connection', waiting()[0]!.closed)
  await until('the worker is replaced', () => listenedOn(server) === 3)
})

test('a worker that dies while the database is away is tried again until it is back', async (t) => {
  const postgres = await newPostgres()
  const url = await createDatabase(postgres.url('postgres'))
  const { token, server, workers } = await startFleet(t, url)
  await postgres.stop()
  process.kill(workers()[0]!, 'SIGKILL')
  const refusals = () => server.stderr().split('PostgreSQL cannot be reached').length - 1
  await until('two replacements could not start', () => refusals() >= 2)
  assert.equal(server.child.exitCode, null)
  const again = await startPostgres(dirname(postgres.dataFolder), undefined, postgres.port)
  t.after(() => again.kill())
  await until('a replacement listens', () => listenedOn(server) === 3)
  assert.equal(workers().length, 2)
  await until('messages are taken again', async () => (await post(server.port, token, '{"n":1}')).status === 200)
  server.child.kill('SIGTERM')
  assert.equal(await within('the server to end', server.exited), 0)
})

/** systemd signals every process of a service; a shell signals the one it knows. */
const STOPS: Record<string, (parent: number, workers: readonly number[]) => readonly number[]> = {
  'the process above the workers': (parent) => [parent],
  'every process of the service, workers first': (parent, workers) => [...workers, parent],
}

for (const [whom, targets] of Object.entries(STOPS)) {
  test(`SIGTERM under load to ${whom} stops in order: exit code 0, nobody left, acknowledged = stored`, async (t) => {
    const { url, token, server, workers } = await startFleet(t)
    const ledger = new Ledger(SEED, 500)
    const pids = workers()
    const onAcknowledged = (count: number) => {
      if (count !== 200) return
      for (const pid of targets(server.child.pid!, pids)) process.kill(pid, 'SIGTERM')
    }
    const load = new Load({ port: server.port, token, ledger, connections: 12, onAcknowledged })
    await within('all senders to end', load.finished)
    assert.equal(await within('the server to end', server.exited), 0, server.stderr())
    await assertGone(pids, server)
    const found = auditRows(await readRows(url), ledger)
    t.diagnostic(
      `${found.acknowledged} acknowledged, ${ledger.refused.length} refused, ${ledger.failed.length} cut off, ${found.lost.length} lost`,
    )
    assert.deepEqual(faultsOf(found), NOTHING_WRONG)
    assert.deepEqual(found.storedUnknown, [], 'what was stored was also acknowledged')
    assert.ok(found.acknowledged >= 200)
    for (const { answer } of ledger.refused) {
      assert.deepEqual([answer.status, answer.json?.error, answer.json?.stored], [503, 'shutting_down', 'no'])
    }
    assert.equal(await nodesOn(url), 0, 'both workers signed off')
  })
}

test('when the process above them is killed the workers end, too, and the next start has the port', async (t) => {
  const { url, server, workers } = await startFleet(t)
  const pids = workers()
  server.child.kill('SIGKILL')
  await assertGone(pids, server)
  const next = await startServer(t, { INTRAY_DATABASE_URL: url, INTRAY_PORT: String(server.port) })
  assert.equal((await send(next.port, { path: '/livez' })).status, 200)
})

test('workers on a database in a file are refused with a sentence, whatever the number of cores', async () => {
  for (const workers of ['auto', '2']) {
    const env = { INTRAY_DATABASE_URL: `sqlite:${join(tempFolder('workers'), 'intray.db')}`, INTRAY_WORKERS: workers }
    const { code, stdout, stderr } = await runToEnd([LAUNCHER, 'serve'], { ...env, INTRAY_PORT: '0' })
    assert.equal(code, 1)
    assert.equal(stdout.toString(), '')
    assert.match(stderr, /^intray: INTRAY_WORKERS above 1 needs a database server, .+\n$/)
  }
})

test('a port that is taken is told once, with exit code 1, and uses up no starter token', async (t) => {
  const other = net.createServer().listen(0, '127.0.0.1')
  await once(other, 'listening')
  t.after(() => other.close())
  const { port } = other.address() as net.AddressInfo
  const env = { INTRAY_DATABASE_URL: await newPostgresDatabase(), INTRAY_WORKERS: '2' }
  const { code, stdout, stderr } = await runToEnd([LAUNCHER, 'serve'], { ...env, INTRAY_PORT: String(port) })
  assert.equal(code, 1)
  assert.equal(stdout.toString(), '')
  assert.equal(stderr.split(`Port ${port} on 127.0.0.1 is in use by another program`).length - 1, 1, stderr)

  const server = await startServer(t, env)
  const [token] = await until('the starter token is printed', () => server.stdout().match(TOKEN))
  const ping = await send(server.port, { path: '/api/ping', headers: { Authorization: `Bearer ${token}` } })
  assert.deepEqual(ping.json, { ok: true, account_id: 1, company_id: 1, scope: 'cf' })
})

test('a fresh database gets one starter token, printed once by the process above, and it works on both workers', async (t) => {
  const env = { INTRAY_DATABASE_URL: await newPostgresDatabase(), INTRAY_WORKERS: '2' }
  const server = await startServer(t, env)
  const [token] = await until('the starter token is printed', () => server.stdout().match(TOKEN))
  assert.match(server.stdout(), /^Intray is listening on http:\/\/127\.0\.0\.1:\d+ with 2 workers$/m)
  await until('both workers listen', () => listenedOn(server) === 2)
  const answers = await Promise.all(
    Array.from({ length: 6 }, (_, n) => post(server.port, token!, `{"source_ref":"hello:${n}"}`)),
  )
  assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]))
  server.child.kill('SIGTERM')
  assert.equal(await within('the server to end', server.exited), 0)
  assert.deepEqual([...new Set(server.stdout().match(TOKEN))], [token], 'one token')
  assert.equal(server.stdout().match(TOKEN)?.length, 2, 'once alone and once in the curl line')
  assert.doesNotMatch(server.stderr(), TOKEN)

  // One worker is still starting when it is told to stop.
  const second = await startServer(t, env)
  second.child.kill('SIGTERM')
  assert.equal(await within('the second server to end', second.exited), 0)
  assert.match(
    second.stdout(),
    /^Intray is listening on \S+ with 2 workers\nDatabase: postgres:\S+\nConsole: \S+\/console\n$/,
  )
  assert.doesNotMatch(second.stderr(), /^Database:/m)
})
