// TLS as its users run it: a certificate renewed under load, commands that reach the server, starts that are refused.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import https from 'node:https'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import tls from 'node:tls'
import { installPair, makeCertificates, newPairFiles, noOpenssl, type PairFiles } from '../support/certificates.ts'
import { runToEnd } from '../support/command.ts'
import { newMigratedDatabase } from '../support/postgres/databases.ts'
import { createToken, readJournal, withStore } from '../support/journal.ts'
import { intray, LAUNCHER, type ServerProcess, startServer } from '../support/process.ts'
import { tempFolder } from '../support/temp.ts'
import { until, within } from '../support/until.ts'

const RENEWALS = 3
/** Of each kind of sender, between two renewals. */
const REQUESTS = 20
const pairs = makeCertificates(RENEWALS + 1)
const ca = pairs.map(({ cert }) => cert)
const fingerprints = pairs.map(({ fingerprint }) => fingerprint)

interface Running {
  readonly server: ServerProcess
  readonly files: PairFiles
  readonly databaseUrl: string
  readonly token: string
}

async function startTls(
  t: TestContext,
  databaseUrl = `sqlite:${join(tempFolder('tls'), 'intray.db')}`,
  more: Record<string, string> = {},
): Promise<Running> {
  const token = await withStore(databaseUrl, (store) => createToken(store))
  const files = newPairFiles(pairs[0]!)
  const env = {
    INTRAY_DATABASE_URL: databaseUrl,
    INTRAY_TLS_CERT: files.cert,
    INTRAY_TLS_KEY: files.key,
    INTRAY_KEEP_ALIVE_TIMEOUT: '1h',
    ...more,
  }
  return { server: await startServer(t, env), files, databaseUrl, token }
}

/** The certificate that a new connection gets. */
async function servedTo(server: ServerProcess): Promise<string> {
  const socket = tls.connect({ port: server.port, host: '127.0.0.1', ca })
  await once(socket, 'secureConnect')
  const { fingerprint256 } = socket.getPeerCertificate()
  socket.destroy()
  return fingerprint256
}

interface Answered {
  readonly status: number
  readonly fingerprint: string
}

function post({ server, token }: Running, body: string, agent: https.Agent | false): Promise<Answered> {
  return new Promise((resolve, reject) => {
    const headers = {
      Authorization: `Bearer ${token}`,
      'Content-Type': 'application/json',
      'Content-Length': body.length,
    }
    const path = '/v1/inbox/events'
    const req = https.request({ host: '127.0.0.1', port: server.port, method: 'POST', path, agent, ca, headers })
    let fingerprint = ''
    req.on('socket', (socket) => {
      const read = () => (fingerprint = (socket as tls.TLSSocket).getPeerCertificate().fingerprint256)
      if (req.reusedSocket) read()
      else socket.once('secureConnect', read)
    })
    req.on('response', (res) => {
      res.resume().on('end', () => resolve({ status: res.statusCode ?? 0, fingerprint }))
      res.on('error', reject)
    })
    req.on('error', reject)
    req.end(body)
  })
}

/** Senders that go on until they are stopped, some on kept connections and some on a new one for each message. */
class TlsLoad {
  readonly answered = { kept: [] as Answered[], fresh: [] as Answered[] }
  readonly failed: string[] = []
  readonly #running: Running
  readonly #agent = new https.Agent({ keepAlive: true, maxSockets: 2 })
  readonly #senders: Promise<void>[]
  #isStopped = false
  #sent = 0

  constructor(running: Running) {
    this.#running = running
    this.#senders = [this.#send('kept'), this.#send('kept'), this.#send('fresh'), this.#send('fresh')]
  }

  /** Resolves when each kind has had that many more answers. */
  async more(count: number): Promise<void> {
    const { kept, fresh } = this.answered
    const wanted = [kept.length + count, fresh.length + count] as const
    await until(`${count} more answers`, () => {
      assert.deepEqual(this.failed, [])
      return kept.length >= wanted[0] && fresh.length >= wanted[1]
    })
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    await within('the senders to end', Promise.all(this.#senders))
    this.#agent.destroy()
  }

  get sent(): number {
    return this.#sent
  }

  async #send(kind: 'kept' | 'fresh'): Promise<void> {
    while (!this.#isStopped && this.failed.length === 0 && this.#sent < 20_000) {
      const body = JSON.stringify({ source_ref: `tls:${++this.#sent}` })
      try {
        const answer = await post(this.#running, body, kind === 'kept' ? this.#agent : false)
        this.answered[kind].push(answer)
        if (answer.status !== 200) this.failed.push(`status ${answer.status}`)
      } catch (error) {
        this.failed.push(String(error))
      }
    }
  }
}

test('a certificate renewed under load: no request fails, new connections see each new one, open ones go on', {
  skip: noOpenssl,
}, async (t) => {
  const running = await startTls(t)
  const { server, files } = running
  const load = new TlsLoad(running)
  t.after(() => load.stop())
  await load.more(REQUESTS)
  for (const pair of pairs.slice(1)) {
    installPair(files, pair)
    await until('the new certificate is served', async () => (await servedTo(server)) === pair.fingerprint)
    const before = load.answered.fresh.length
    await load.more(REQUESTS)
    // One for each sender may have been on its way.
    const late = load.answered.fresh.slice(before).filter(({ fingerprint }) => fingerprint !== pair.fingerprint)
    assert.ok(late.length <= 2, `${late.length} new connections got another certificate`)
  }
  await load.stop()
  const { kept, fresh } = load.answered
  const seen = (answers: readonly Answered[]) => new Set(answers.map(({ fingerprint }) => fingerprint))
  assert.deepEqual([...seen(fresh)], fingerprints, 'one after the other')
  assert.deepEqual([...seen(kept)], [fingerprints[0]], 'kept connections keep theirs')
  assert.deepEqual(load.failed, [])
  server.child.kill('SIGTERM')
  assert.equal(await within('the server to end', server.exited), 0)
  const stored = await readJournal(running.databaseUrl)
  assert.equal(stored.length, load.sent)
  t.diagnostic(`${load.sent} requests, 0 failed; ${fresh.length} new connections, ${RENEWALS} renewals`)
})

test('the control: a broken pair under load changes nothing, and is logged', { skip: noOpenssl }, async (t) => {
  const running = await startTls(t)
  const { server, files } = running
  const load = new TlsLoad(running)
  t.after(() => load.stop())
  const refused = () =>
    server
      .stderr()
      .split('\n')
      .filter((line) => line.includes('the new certificate cannot be used'))
  for (const [n, broken] of [
    { cert: pairs[1]!.cert, key: pairs[2]!.key },
    { cert: 'no PEM', key: 'no PEM' },
  ].entries()) {
    installPair(files, broken)
    await until('it is refused', () => refused().length > n)
    await load.more(REQUESTS)
    assert.equal(await servedTo(server), fingerprints[0])
  }
  await load.stop()
  assert.deepEqual(load.failed, [])
  const all = [...load.answered.kept, ...load.answered.fresh]
  assert.deepEqual([...new Set(all.map(({ fingerprint }) => fingerprint))], [fingerprints[0]])
})

test('every worker uses the renewed certificate', { skip: noOpenssl }, async (t) => {
  const { server, files } = await startTls(t, await newMigratedDatabase(), { INTRAY_WORKERS: '2' })
  assert.equal(await servedTo(server), fingerprints[0])
  installPair(files, pairs[1]!)
  let inARow = 0
  // Connections go to the workers in turn.
  await until('every worker serves it', async () => {
    inARow = (await servedTo(server)) === fingerprints[1] ? inARow + 1 : 0
    return inARow >= 8
  })
})

test('commands reach the server over TLS: send trusts a certificate that NODE_EXTRA_CA_CERTS names, links name https', {
  skip: noOpenssl,
}, async (t) => {
  const { server, files, databaseUrl, token } = await startTls(t)
  assert.match(server.url, /^https:/)
  assert.ok(server.stdout().includes(`Console: ${server.url}/console\n`))
  const send = (env: Record<string, string>) =>
    runToEnd(
      ['sh', '-c', `echo '{"source_ref":"one"}' | ${LAUNCHER} send --tries 2 --token ${token} --url ${server.url}`],
      env,
    )
  const refused = await send({})
  assert.equal(refused.code, 1)
  assert.match(`${refused.stdout}${refused.stderr}`, /NODE_EXTRA_CA_CERTS/)
  const sent = await send({ NODE_EXTRA_CA_CERTS: files.cert })
  assert.equal(sent.code, 0, sent.stderr)
  assert.equal((await readJournal(databaseUrl)).length, 1)
  const env = { INTRAY_DATABASE_URL: databaseUrl }
  const added = await intray(['operator', 'add', 'ada'], env)
  assert.ok(added.stdout.toString().includes(`${server.url}/console#link=`), added.stdout.toString())
})

test('a start with half of a pair, or with files that do not work, is refused and makes no database', {
  skip: noOpenssl,
}, async () => {
  const databaseUrl = `sqlite:${join(tempFolder('tls'), 'new', 'intray.db')}`
  const start = async (env: Record<string, string>) => {
    const { code, stderr } = await runToEnd([LAUNCHER, 'serve', '--port', '0'], {
      INTRAY_DATABASE_URL: databaseUrl,
      ...env,
    })
    assert.equal(code, 2)
    return stderr
  }
  const half = /^intray: INTRAY_TLS_CERT and INTRAY_TLS_KEY belong together\. Set both, or neither for plain HTTP\.$/m
  assert.match(await start({ INTRAY_TLS_CERT: '/none/cert.pem' }), half)
  assert.match(await start({ INTRAY_TLS_KEY: '/none/key.pem' }), half)
  const both = await start({ INTRAY_TLS_CERT: '/none/cert.pem', INTRAY_TLS_KEY: '/none/key.pem' })
  assert.match(both, /^intray: INTRAY_TLS_CERT: \/none\/cert\.pem cannot be read \(ENOENT\)\.$/m)
  assert.match(both, /^intray: INTRAY_TLS_KEY: \/none\/key\.pem cannot be read \(ENOENT\)\.$/m)
  const list = await intray(['token', 'list'], { INTRAY_DATABASE_URL: databaseUrl })
  assert.equal(list.code, 2, 'there is no database')
})
