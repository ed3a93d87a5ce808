// Socket activation: another process holds the listening socket. A restart lets senders wait instead of refusing them.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import net from 'node:net'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { childrenOf, isRunning } from '../support/children.ts'
import { send } from '../support/client.ts'
import { holdSocket } from '../support/held-socket.ts'
import { createToken, readJournal, withStore } from '../support/journal.ts'
import { auditRows, faultsOf, Ledger, Load, NOTHING_WRONG, post } from '../support/load.ts'
import { newMigratedDatabase } from '../support/postgres/databases.ts'
import { cleanEnvironment, LAUNCHER, startServer } from '../support/process.ts'
import { tempFolder } from '../support/temp.ts'
import { until, within } from '../support/until.ts'

const RESTARTS = 3
const SENDERS = 4
const MOST_MESSAGES = 20_000

async function newDatabase(): Promise<{ databaseUrl: string; token: string }> {
  const databaseUrl = `sqlite:${join(tempFolder('held'), 'intray.db')}`
  return { databaseUrl, token: await withStore(databaseUrl, (store) => createToken(store)) }
}

/** Senders on connections that stay, and senders with a new one for each message. */
function startLoads(t: TestContext, port: number, token: string) {
  let isEnding = false
  // All in one ledger: the database is theirs.
  const ledger = new Ledger(1, 500)
  const pace = { connections: SENDERS, limit: MOST_MESSAGES, until: () => isEnding }
  const [kept, fresh] = [
    new Load({ port, token, ledger, ...pace, perSecond: 60 }),
    new Load({ port, token, ledger, ...pace, perSecond: 30, keepAlive: false }),
  ]
  const end = async () => {
    isEnding = true
    await within('all senders to end', Promise.all([kept!.finished, fresh!.finished]))
  }
  t.after(end)
  const isBroken = () => ledger.failed.length + ledger.refused.length > 0
  const more = async (count: number) => {
    const wanted = ledger.acknowledged.size + count
    await until(`${count} more messages`, () => isBroken() || ledger.acknowledged.size >= wanted)
  }
  return { ledger, fresh: fresh!, more, end, isBroken }
}

test('one node on a held socket restarted three times under load: senders wait, none is refused, nothing is lost', async (t) => {
  const { databaseUrl, token } = await newDatabase()
  const socket = await holdSocket(t, { INTRAY_DATABASE_URL: databaseUrl })
  let pid = await socket.start()
  assert.match(socket.printed(), new RegExp(`Intray is listening on http://127\\.0\\.0\\.1:${socket.port}\n`))
  const { ledger, fresh, more, end, isBroken } = startLoads(t, socket.port, token)
  await more(30)
  for (let restarts = 0; restarts < RESTARTS; restarts += 1) {
    await socket.stop(pid)
    await until(
      'senders with new connections wait, and no process is there',
      () => isBroken() || fresh.inFlight === SENDERS,
    )
    pid = await socket.start()
    await more(30)
  }
  await end()
  await socket.stop(pid)
  t.diagnostic(`${RESTARTS} restarts; ${ledger.acknowledged.size} acknowledged, ${ledger.failed.length} failed`)
  assert.deepEqual(ledger.failed.map(String), [])
  assert.deepEqual(ledger.refused, [])
  assert.equal(ledger.acknowledged.size, ledger.sent.size)
  assert.deepEqual(faultsOf(auditRows(await readJournal(databaseUrl), ledger)), NOTHING_WRONG)
  // The process is gone before the last line that it wrote is read here.
  await until('each stop was in order', () => socket.printed().split('"msg":"stopped"').length - 1 === RESTARTS + 1)
})

test('control: without the held socket the same restart refuses senders', async (t) => {
  const { databaseUrl, token } = await newDatabase()
  const server = await startServer(t, { INTRAY_DATABASE_URL: databaseUrl })
  const { ledger, more, end } = startLoads(t, server.port, token)
  await more(30)
  server.child.kill('SIGTERM')
  const isRefused = () => ledger.failed.some(({ error }) => error.code === 'ECONNREFUSED')
  await until('a sender is refused', isRefused)
  await end()
})

test('workers serve on a held socket, do not have its variables, and a restart lets senders wait', async (t) => {
  const databaseUrl = await newMigratedDatabase()
  const token = await withStore(databaseUrl, (store) => createToken(store))
  const env = { INTRAY_DATABASE_URL: databaseUrl, INTRAY_WORKERS: '2', INTRAY_CONSOLE: 'off' }
  const socket = await holdSocket(t, env)
  const pid = await socket.start()
  assert.equal((await post(socket.port, token, '{"source_ref":"1"}')).status, 200)
  for (const worker of childrenOf(pid)) {
    assert.doesNotMatch(readFileSync(`/proc/${worker}/environ`, 'latin1'), /(^|\0)LISTEN_/)
  }
  await socket.stop(pid)
  const waiting = post(socket.port, token, '{"source_ref":"2"}')
  const next = await socket.start()
  assert.equal((await within('the answer', waiting)).status, 200)

  // The process above them must not replace the first one before the second one is gone.
  process.kill(next, 'SIGSTOP')
  const workers = childrenOf(next)
  for (const worker of workers) process.kill(worker, 'SIGKILL')
  await until('the workers are gone', () => !workers.some(isRunning))
  process.kill(next, 'SIGCONT')
  await until('without workers the process ends, for its holder to start it again', () =>
    socket.printed().includes('the socket is lost'),
  )
  const again = post(socket.port, token, '{"source_ref":"3"}')
  await socket.start()
  assert.equal((await within('the answer', again)).status, 200)
})

/** Starts the service with this as descriptor 3. */
function serveWith(fd: number | 'ignore', count: string, pid = '$$') {
  const databaseUrl = `sqlite:${join(tempFolder('held'), 'intray.db')}`
  const script = `export LISTEN_FDS=${count} LISTEN_PID=${pid}; exec "$0" serve`
  const env = cleanEnvironment({ INTRAY_DATABASE_URL: databaseUrl })
  const { status, stderr } = spawnSync('sh', ['-c', script, LAUNCHER], {
    env,
    stdio: ['ignore', 'ignore', 'pipe', fd],
    encoding: 'utf8',
    timeout: 100_000,
  })
  return { status, stderr }
}

test('what is no single TCP socket is refused with a sentence', async (t) => {
  const two = serveWith('ignore', '2')
  assert.equal(two.status, 1)
  assert.match(two.stderr, /^intray: LISTEN_FDS is 2, and Intray takes one socket\. /)
  const none = serveWith('ignore', '1')
  assert.equal(none.status, 1)
  assert.match(
    none.stderr,
    /The socket that LISTEN_FDS passes on cannot be used \(\w+\)\. Intray needs a listening TCP socket/,
  )

  const local = net.createServer()
  await new Promise<void>((resolve) => local.listen(join(tempFolder('held'), 'socket'), resolve))
  t.after(() => local.close())
  const { fd } = (local as unknown as { readonly _handle: { readonly fd: number } })._handle
  assert.match(serveWith(fd, '1').stderr, /cannot be used \(ENOTSUP\)/)
})

test('variables for another process are ignored', async (t) => {
  const databaseUrl = `sqlite:${join(tempFolder('held'), 'intray.db')}`
  const server = await startServer(t, { INTRAY_DATABASE_URL: databaseUrl, LISTEN_FDS: '1', LISTEN_PID: '1' })
  assert.equal((await send(server.port, { path: '/livez' })).status, 200)
})
