// Stopping in order: not ready, finish what is in flight, commit, close. And stopping at once when told twice.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { closeSync, constants, existsSync, openSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { RawConnection, send } from '../support/client.ts'
import { createToken, readJournal, withStore } from '../support/journal.ts'
import { audit, faultsOf, Ledger, Load, NOTHING_WRONG, post } from '../support/load.ts'
import { refusesConnections, untilClosed } from '../support/port.ts'
import { LAUNCHER, ROOT, type ServerProcess, startServer } from '../support/process.ts'
import { tempFolder } from '../support/temp.ts'
import { until, within } from '../support/until.ts'

/** Longer than any test: where a limit is not the thing under test, nothing may wait for it. */
const NEVER = '1h'

interface Running {
  readonly server: ServerProcess
  readonly databasePath: string
  readonly databaseUrl: string
  readonly token: string
}

async function startWith(
  t: TestContext,
  settings: Record<string, string> = {},
  command?: readonly string[],
): Promise<Running> {
  const databasePath = join(tempFolder('stop'), 'intray.db')
  const databaseUrl = `sqlite:${databasePath}`
  const token = await withStore(databaseUrl, (store) => createToken(store))
  const env = { INTRAY_DATABASE_URL: databaseUrl, INTRAY_STOP_TIMEOUT: NEVER, ...settings }
  return { server: await startServer(t, env, command), databasePath, databaseUrl, token }
}

const ended = (server: ServerProcess) => within('the server to end', server.exited)

/** A request whose headers the server has read (it said so by 100 Continue) and whose body is half sent. */
async function halfSent({ server, token }: Running, body: string): Promise<RawConnection> {
  const connection = await RawConnection.open(server.port)
  connection.write(
    `POST /v1/inbox/events HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer ${token}\r\nExpect: 100-continue\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`,
  )
  await within(
    '100 Continue',
    connection.until((text) => text.startsWith('HTTP/1.1 100 ')),
  )
  connection.write(body.slice(0, body.length / 2))
  return connection
}

/** A connection that has had an answer and could take another request. */
async function idleConnection({ server, token }: Running): Promise<RawConnection> {
  const connection = await RawConnection.open(server.port)
  connection.write(`GET /api/ping HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer ${token}\r\n\r\n`)
  const [answer] = await connection.answers(1)
  assert.equal(answer?.status, 200)
  assert.notEqual(answer?.headers.connection, 'close')
  return connection
}

const BODY = '{"source_ref":"stop:1","channel_ref":"stop","message":{"type":"text","text":"on its way"}}'

test('after SIGTERM readyz answers 503 shutting_down while the port is open and messages are still taken', async (t) => {
  const running = await startWith(t, { INTRAY_READY_DELAY: NEVER })
  const { server, token } = running
  assert.equal((await send(server.port, { path: '/readyz' })).status, 200)
  server.child.kill('SIGTERM')
  const answer = await until('readyz is not ready', async () => {
    const found = await send(server.port, { path: '/readyz' })
    return found.status !== 200 && found
  })
  assert.equal(answer.status, 503)
  assert.equal(answer.json?.error, 'shutting_down')
  assert.ok(answer.headers['retry-after'])
  assert.equal((await send(server.port, { path: '/livez' })).status, 200)
  const stored = await post(server.port, token, BODY)
  assert.deepEqual([stored.status, stored.text], [200, '{"ok":true,"id":1}'], 'the load balancer may not know yet')

  server.child.kill('SIGTERM')
  assert.notEqual(await ended(server), 0, 'a second signal does not wait for the delay')
  const [row, ...more] = await readJournal(running.databaseUrl)
  assert.deepEqual([row?.event.sourceRef, more.length], ['stop:1', 0])
})

test('after the ready delay the port closes and the server ends with 0', async (t) => {
  const { server } = await startWith(t, { INTRAY_READY_DELAY: '300ms' })
  server.child.kill('SIGTERM')
  await untilClosed(server.port)
  assert.equal(await ended(server), 0)
})

test('a request whose body is still arriving at SIGTERM is stored and answered 200 with Connection: close', async (t) => {
  const running = await startWith(t)
  const { server, databaseUrl } = running
  const connection = await halfSent(running, BODY)
  server.child.kill('SIGTERM')
  await untilClosed(server.port)
  connection.write(BODY.slice(BODY.length / 2))
  const [answer] = await within('the answer', connection.answers(1))
  assert.equal(answer?.status, 200, connection.text)
  assert.deepEqual(answer?.json, { ok: true, id: 1 })
  assert.equal(answer?.headers.connection, 'close')
  await within('the connection to be closed', connection.closed)
  assert.equal(await ended(server), 0)
  const [row] = await readJournal(databaseUrl)
  assert.equal(Buffer.from(row!.payload!).toString(), BODY)
})

for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  test(`${signal} closes idle connections, checkpoints the WAL and ends the process with 0`, async (t) => {
    const running = await startWith(t)
    const { server, token, databasePath, databaseUrl } = running
    const idle = await Promise.all([idleConnection(running), idleConnection(running), RawConnection.open(server.port)])
    const { json } = await post(server.port, token, BODY)
    assert.equal(json?.id, 1)
    server.child.kill(signal)
    for (const connection of idle) await within('the idle connection to be closed', connection.closed)
    assert.equal(await ended(server), 0)
    const wal = `${databasePath}-wal`
    assert.equal(existsSync(wal) ? statSync(wal).size : 0, 0, 'nothing is left in the WAL')
    const [row, ...more] = await readJournal(databaseUrl)
    assert.deepEqual([row?.event.id, row?.event.sourceRef, more.length], [1, 'stop:1', 0])
    const last = server.stderr().trimEnd().split('\n').at(-1)!
    assert.equal((JSON.parse(last) as { msg: string }).msg, 'stopped', 'the last log line is out before the end')
  })
}

test('a second signal ends the process at once, with a code other than 0, while a request hangs', async (t) => {
  const running = await startWith(t)
  const { server, databaseUrl } = running
  const connection = await halfSent(running, BODY)
  server.child.kill('SIGTERM')
  await untilClosed(server.port)
  server.child.kill('SIGTERM')
  const code = await ended(server)
  assert.ok(code !== 0 && code !== null, `it ended with ${code}`)
  await within('the connection to be cut', connection.closed)
  assert.deepEqual(await readJournal(databaseUrl), [], 'half a message is not a message')
})

test('half-sent requests do not hold the stop beyond INTRAY_STOP_TIMEOUT', async (t) => {
  const running = await startWith(t, {
    INTRAY_STOP_TIMEOUT: '500ms',
    INTRAY_HEADERS_TIMEOUT: NEVER,
    INTRAY_REQUEST_TIMEOUT: NEVER,
  })
  const { server, token, databaseUrl } = running
  await post(server.port, token, '{"source_ref":"stop:kept"}')
  const halfBody = await halfSent(running, BODY)
  // The first answer shows that the connection was read; the headers of the second request then stay incomplete.
  const halfHeaders = await idleConnection(running)
  halfHeaders.write('POST /v1/inbox/events HTTP/1.1\r\nHost: te')
  server.child.kill('SIGTERM')
  assert.equal(await ended(server), 0)
  await within('both connections to be cut', Promise.all([halfBody.closed, halfHeaders.closed]))
  assert.deepEqual(
    (await readJournal(databaseUrl)).map((row) => row.event.sourceRef),
    ['stop:kept'],
  )
})

test('stopped under load, every request was answered 200, told 503 or cut off cleanly, and acknowledged = stored', async (t) => {
  const { server, token, databaseUrl } = await startWith(t)
  const ledger = new Ledger(2)
  const onAcknowledged = (count: number) => {
    if (count === 300) server.child.kill('SIGTERM')
  }
  const load = new Load({ port: server.port, token, ledger, connections: 24, onAcknowledged })
  await within('all senders to end', load.finished)
  assert.equal(await ended(server), 0)
  const found = await audit(databaseUrl, ledger)
  t.diagnostic(
    `${found.acknowledged} acknowledged, ${ledger.refused.length} refused, ${ledger.failed.length} cut off, ` +
      `${found.storedUnknown.length} stored without an answer`,
  )
  assert.ok(found.acknowledged >= 300)
  assert.deepEqual(faultsOf(found), NOTHING_WRONG)
  assert.deepEqual(found.storedUnknown, [], 'what was stored was also acknowledged')
  for (const { answer } of ledger.refused) {
    assert.deepEqual([answer.status, answer.json?.error, answer.json?.stored], [503, 'shutting_down', 'no'])
  }
  for (const { error } of ledger.failed) {
    assert.match(error.code ?? '', /^(ECONNREFUSED|ECONNRESET|EPIPE)$/, String(error))
  }
})

test('npm start hands SIGTERM on: the server stops in order and leaves no orphan', async (t) => {
  const command = ['npm', 'start', '--prefix', ROOT, '--no-update-notifier']
  const { server, databaseUrl } = await startWith(t, {}, command)
  assert.equal((await send(server.port, { path: '/livez' })).status, 200)
  server.child.kill('SIGTERM')
  await ended(server)
  assert.ok(await refusesConnections(server.port), 'nobody listens once npm has ended')
  assert.match(server.stderr(), /"msg":"stopped"/)
  const next = await startServer(t, { INTRAY_DATABASE_URL: databaseUrl })
  assert.equal((await send(next.port, { path: '/livez' })).status, 200, 'the database is free for the next server')
})

test('with a reader of the log that has stalled, messages are taken and the stop is in order', async (t) => {
  const log = join(tempFolder('stalled'), 'log')
  execFileSync('mkfifo', [log])
  // Open at both ends, and nobody reads: the pipe fills.
  const held = openSync(log, constants.O_RDWR)
  t.after(() => closeSync(held))
  const command = ['sh', '-c', 'exec "$0" serve 2>"$1"', LAUNCHER, log]
  const { server, token, databaseUrl } = await startWith(t, { INTRAY_LOG_FORMAT: 'json' }, command)
  const count = 600
  for (let n = 0; n < count; n += 1) {
    assert.equal((await post(server.port, token, `{"source_ref":"${n}"}`)).status, 200)
  }
  server.child.kill('SIGTERM')
  assert.equal(await ended(server), 0)
  assert.equal((await readJournal(databaseUrl)).length, count)
})
