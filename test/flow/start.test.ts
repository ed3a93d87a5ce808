// The first minute: what a start prints, and the sentence with which it is refused.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import net from 'node:net'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { SETTING_NAMES, variableName } from '../../src/config.ts'
import { send } from '../support/client.ts'
import { runToEnd } from '../support/command.ts'
import { readOnlyFolder } from '../support/disk.ts'
import { createToken, readJournal, withStore } from '../support/journal.ts'
import { post } from '../support/load.ts'
import { newPostgresDatabase } from '../support/postgres/databases.ts'
import { intray, LAUNCHER, type ServerProcess, startServer } from '../support/process.ts'
import { tempFolder } from '../support/temp.ts'
import { until, within } from '../support/until.ts'

const TOKEN = /itr_[0-9A-Za-z]{10}_[0-9A-Za-z]{36}/
const LINK = /^ {2}(http:\/\/\S+)\/console#link=([0-9A-Za-z]{43})\n\n/m
const HOW_TO_ADD = 'The console has no operator yet. Add one: ./intray operator add NAME --role admin'
const HOW_TO_CREATE = 'There is no token yet. Create one: ./intray token create --account 1 --company 1 --scope cf'
const CURL_LINE = /^ *(curl .*)$/m
const hasCurl = spawnSync('curl', ['--version'], { stdio: 'ignore' }).status === 0

const newDatabase = () => `sqlite:${join(tempFolder('start'), 'intray.db')}`

/** What every start says, and a later one says alone. */
const said = ({ url }: ServerProcess, database: string) =>
  `Intray is listening on ${url}\nDatabase: ${database}\nConsole: ${url}/console\n`

async function stop(server: ServerProcess): Promise<void> {
  server.child.kill('SIGTERM')
  assert.equal(await within('the server to end', server.exited), 0)
}

/** What a shell user gets who pastes the line: through curl where there is one, else the same request from here. */
async function paste(line: string): Promise<string> {
  if (hasCurl) {
    const { code, stdout, stderr } = await runToEnd(['sh', '-c', line], {})
    assert.equal(code, 0, stderr)
    return stdout.toString()
  }
  const [, url] = /^curl -sS (\S+) /.exec(line)!
  const headers = Array.from(line.matchAll(/-H '([^:']+): ([^']*)'/g), ([, name, value]) => [name!, value!] as const)
  const [, body] = / -d '([^']*)'$/.exec(line)!
  const answer = await fetch(url!, { method: 'POST', headers: Object.fromEntries(headers), body: body! })
  return answer.text()
}

test('the first start prints its address, a starter token and a curl line that works when pasted', async (t) => {
  t.diagnostic(`the line is pasted into ${hasCurl ? 'sh, with curl' : 'no shell: this machine has no curl'}`)
  const env = { INTRAY_DATABASE_URL: newDatabase() }
  const server = await startServer(t, env)
  const line = await until('the curl line is printed', () => CURL_LINE.exec(server.stdout())?.[1])
  const [token] = TOKEN.exec(server.stdout())!
  assert.match(server.stdout(), /^Intray is listening on http:\/\/127\.0\.0\.1:\d+$/m)
  assert.ok(line.includes(token) && line.includes(server.url))

  assert.equal(await paste(line), '{"ok":true,"id":1}')
  assert.equal(await paste(line), '{"ok":true,"id":1,"duplicate":true}')
  const ping = await send(server.port, { path: '/api/ping', headers: { Authorization: `Bearer ${token}` } })
  assert.deepEqual(ping.json, { ok: true, account_id: 1, company_id: 1, scope: 'cf' })

  await stop(server)
  assert.ok(!server.stderr().includes(token), 'the token is in no log line')
  assert.ok(!server.stdout().includes('"level"'), 'no log record is on stdout')
  assert.equal(server.stdout().split(token).length - 1, 2, 'printed once alone and once in the curl line')

  const second = await startServer(t, env)
  assert.equal((await send(second.port, { path: '/livez' })).status, 200)
  await stop(second)
  assert.equal(second.stdout(), said(second, env.INTRAY_DATABASE_URL))
  assert.doesNotMatch(second.stderr(), TOKEN)
})

test('bound to all addresses, or on a database that has tokens, a start makes no token', async (t) => {
  const open = await startServer(t, { INTRAY_DATABASE_URL: newDatabase(), INTRAY_HOST: '0.0.0.0' })
  const withTokens = newDatabase()
  await withStore(withTokens, (store) => createToken(store, { isActive: false }))
  const closed = await startServer(t, { INTRAY_DATABASE_URL: withTokens, INTRAY_CONSOLE: 'off' })
  for (const server of [open, closed]) {
    await stop(server)
    const [first, second, ...rest] = server.stdout().split('\n')
    assert.match(second!, /^Database: sqlite:\//)
    assert.equal(first, `Intray is listening on ${server.url}`)
    const console = `Console: http://127.0.0.1:${server.port}/console`
    assert.deepEqual(rest, server === open ? [console, HOW_TO_CREATE, HOW_TO_ADD, ''] : [''])
    assert.doesNotMatch(server.stderr(), TOKEN)
  }
  assert.equal((await withStore(withTokens, (store) => store.tokens.list())).length, 1)
})

test('the first start on loopback prints a link that signs in once as admin; the next one prints none', async (t) => {
  const env = { INTRAY_DATABASE_URL: newDatabase() }
  await withStore(env.INTRAY_DATABASE_URL, (store) => createToken(store))
  const server = await startServer(t, env)
  const [, address, link] = await until('the link is printed', () => LINK.exec(server.stdout()))
  assert.equal(address, server.url)
  const signIn = () =>
    send(server.port, {
      method: 'POST',
      path: '/v1/console/session',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ link }),
    })
  const first = await signIn()
  assert.deepEqual(first.json?.operator, { name: 'admin', role: 'admin', tenants: 'all' })
  assert.equal((await signIn()).json?.error, 'sign_in_failed')
  await stop(server)
  assert.ok(!server.stderr().includes(link!), 'the link is in no log line')
  const second = await startServer(t, env)
  await stop(second)
  assert.equal(second.stdout(), said(second, env.INTRAY_DATABASE_URL))
})

test('under systemd the token and the link are in a file for the user alone, which the journal names', async (t) => {
  const env = { INTRAY_DATABASE_URL: newDatabase(), JOURNAL_STREAM: '8:12345' }
  const path = `${env.INTRAY_DATABASE_URL.slice('sqlite:'.length)}.first-start`
  const server = await startServer(t, env)
  await until('the file is named', () => server.stdout().includes(path))
  const hint = `The first token and sign-in link are in ${path}, for this user only. Read the file, then remove it.\n`
  assert.equal(server.stdout(), said(server, env.INTRAY_DATABASE_URL) + hint)
  assert.equal(statSync(path).mode & 0o777, 0o600)
  const text = readFileSync(path, 'utf8')
  assert.match(text, LINK)
  assert.equal(await paste(CURL_LINE.exec(text)![1]!), '{"ok":true,"id":1}')
  await stop(server)
  const second = await startServer(t, env)
  await stop(second)
  assert.equal(second.stdout(), said(second, env.INTRAY_DATABASE_URL))
  assert.equal(readFileSync(path, 'utf8'), text, 'a later start leaves the file as it is')
  for (const printed of [server, second].flatMap((one) => [one.stdout(), one.stderr()])) {
    assert.doesNotMatch(printed, TOKEN)
    assert.doesNotMatch(printed, /#link=/)
  }
})

test('under systemd with a database server, which has no folder for the file, nothing is made and the commands are named', async (t) => {
  const env = { INTRAY_DATABASE_URL: await newPostgresDatabase(), JOURNAL_STREAM: '8:12345' }
  const server = await startServer(t, env)
  await until('the hints are printed', () => server.stdout().includes(`${HOW_TO_CREATE}\n${HOW_TO_ADD}\n`))
  await stop(server)
  await withStore(env.INTRAY_DATABASE_URL, async (store) => {
    assert.deepEqual([await store.tokens.list(), await store.operators.list()], [[], []])
  })
})

test('bound to all addresses no operator is made: a console that lets anybody in there is not', async (t) => {
  const env = { INTRAY_DATABASE_URL: newDatabase(), INTRAY_HOST: '0.0.0.0' }
  const server = await startServer(t, env)
  await until('the hint is printed', () => server.stdout().includes(HOW_TO_ADD))
  await stop(server)
  assert.deepEqual(await withStore(env.INTRAY_DATABASE_URL, (store) => store.operators.list()), [])
})

test('what it writes is readable for its owner alone, also in a folder that is open to all', async (t) => {
  const folder = tempFolder('start')
  chmodSync(folder, 0o755)
  await startServer(t, { INTRAY_DATABASE_URL: `sqlite:${join(folder, 'intray.db')}` })
  const files = readdirSync(folder)
  assert.ok(files.includes('intray.db') && files.includes('intray.db-wal'), files.join())
  for (const file of files) assert.equal(statSync(join(folder, file)).mode & 0o077, 0, file)
})

test('every log line is JSON on stderr, and each request is one wide line', async (t) => {
  const databaseUrl = newDatabase()
  const token = await withStore(databaseUrl, (store) => createToken(store))
  const server = await startServer(t, { INTRAY_DATABASE_URL: databaseUrl })
  const stored = await post(server.port, token, '{"source_ref":"log:1"}')
  const again = await post(server.port, token, '{"source_ref":"log:1"}')
  const refused = await post(server.port, token, '[]')
  const lost = await send(server.port, { path: '/nowhere?a=b' })
  await stop(server)

  const lines = server.stderr().trimEnd().split('\n')
  const records = lines.map((line) => JSON.parse(line) as Record<string, unknown>)
  for (const record of records) {
    assert.equal(typeof record.level, 'string')
    assert.equal(new Date(String(record.time)).toISOString(), record.time)
  }
  const requests = records.filter((record) => record.msg === 'request')
  assert.equal(requests.length, 4)
  const keyId = token.slice(4, 14)
  const expected = [
    { answer: stored, route: '/v1/inbox/events', status: 200, key_id: keyId, event_id: 1, outcome: 'stored' },
    { answer: again, route: '/v1/inbox/events', status: 200, key_id: keyId, event_id: 1, outcome: 'duplicate' },
    { answer: refused, route: '/v1/inbox/events', status: 400, key_id: keyId, error: 'invalid_json' },
    { answer: lost, route: null, status: 404, path: '/nowhere', error: 'not_found' },
  ]
  for (const { answer, ...fields } of expected) {
    const found = requests.find((record) => record.request_id === answer.headers['x-request-id'])
    assert.ok(found, `there is a line for request ${String(answer.headers['x-request-id'])}`)
    assert.deepEqual({ ...found, ...fields }, found)
    assert.ok(typeof found.ms === 'number' && found.ms >= 0)
  }
})

test('a change of the settings by flag or environment is in force, and flags win', async (t) => {
  const env = { INTRAY_DATABASE_URL: newDatabase(), INTRAY_LEGACY_TESTER: 'on', INTRAY_LOG_LEVEL: 'silent' }
  const server = await startServer(t, env, [LAUNCHER, 'serve', '--legacy-tester', 'off', '--host', 'localhost'])
  assert.equal((await fetch(`${server.url}/api/inbox-test`)).status, 404)
  await stop(server)
  assert.equal(server.stderr(), '')
})

test('--print-config prints every setting and no secret', async () => {
  const file = join(tempFolder('config'), 'url')
  writeFileSync(file, 'postgres://intray:hunter2@db.example/intray\n')
  const env = { INTRAY_DATABASE_URL_FILE: file, INTRAY_MAX_BODY_BYTES: '2048', INTRAY_STOP_TIMEOUT: '90s' }
  const { code, stdout, stderr } = await intray(['serve', '--print-config', '--port', '81'], env)
  assert.deepEqual([code, stderr], [0, ''])
  const lines = stdout.toString().trimEnd().split('\n')
  assert.deepEqual(
    lines.map((line) => line.slice(0, line.indexOf('='))),
    SETTING_NAMES.map(variableName),
  )
  assert.ok(lines.includes('INTRAY_MAX_BODY_BYTES=2048'))
  assert.ok(lines.includes('INTRAY_PORT=81'))
  assert.ok(lines.includes('INTRAY_STOP_TIMEOUT=90s'))
  assert.ok(lines.some((line) => line.startsWith('INTRAY_DATABASE_URL=postgres://intray:') && line.includes('@db.')))
  assert.ok(!stdout.includes('hunter2'))
})

/** A start that must be refused: ends by itself, with the code, one sentence on stderr and nothing on stdout. */
async function refused(env: Record<string, string>, args: readonly string[] = []): Promise<[number | null, string]> {
  const { code, stdout, stderr } = await runToEnd([LAUNCHER, 'serve', ...args], { INTRAY_PORT: '0', ...env })
  assert.equal(stdout.toString(), '')
  return [code, stderr]
}

async function assertRefused(env: Record<string, string>, sentence: RegExp): Promise<void> {
  const [code, stderr] = await refused(env)
  assert.equal(code, 1, stderr)
  assert.match(stderr, sentence)
  assert.equal(stderr.trimEnd().split('\n').length, 1, `one line, without a stack:\n${stderr}`)
}

test('a start on a port that is taken is refused with a sentence', async (t) => {
  const other = net.createServer().listen(0, '127.0.0.1')
  t.after(() => other.close())
  await once(other, 'listening')
  const { port } = other.address() as net.AddressInfo
  const env = { INTRAY_DATABASE_URL: newDatabase(), INTRAY_PORT: String(port) }
  await assertRefused(
    env,
    new RegExp(`^intray: Port ${port} on 127\\.0\\.0\\.1 is in use by another program\\. .*--port`),
  )
})

test('a start on an address that is not of this machine is refused with a sentence', async () => {
  const sentence = /^intray: 203\.0\.113\.7 is not an address of this machine\. /
  await assertRefused({ INTRAY_DATABASE_URL: newDatabase(), INTRAY_HOST: '203.0.113.7' }, sentence)
})

test('a start on a database that another server holds is refused with a sentence, and that server goes on', async (t) => {
  const env = { INTRAY_DATABASE_URL: newDatabase() }
  const first = await startServer(t, env)
  await assertRefused(env, /^intray: Another Intray server is running on \S+intray\.db\. Stop it first/)
  assert.equal((await send(first.port, { path: '/readyz' })).status, 200)
  first.child.kill('SIGKILL')
  await first.exited
  const next = await startServer(t, env)
  assert.equal((await send(next.port, { path: '/readyz' })).status, 200, 'a killed server holds nothing')
})

test('a start on a read-only disk is refused with a sentence, whether the database is there or not', async (t) => {
  let existing = ''
  const folder = await readOnlyFolder(t, async (writable) => {
    existing = `sqlite:${join(writable, 'there', 'intray.db')}`
    await withStore(existing, (store) => createToken(store))
  })
  const sentence = /^intray: The database \S+ cannot be (opened|written)[.:].*\bwrit/
  await assertRefused({ INTRAY_DATABASE_URL: existing }, sentence)
  await assertRefused({ INTRAY_DATABASE_URL: `sqlite:${join(folder, 'intray.db')}` }, sentence)
  await assertRefused({ INTRAY_DATABASE_URL: `sqlite:${join(folder, 'new', 'intray.db')}` }, sentence)
})

test('a start on a schema newer than the code is refused with a sentence, and nothing is touched', async () => {
  const databaseUrl = newDatabase()
  const token = await withStore(databaseUrl, (store) => createToken(store))
  const db = new DatabaseSync(databaseUrl.slice('sqlite:'.length))
  db.exec("INSERT INTO schema_migrations (version, name, checksum, applied_at) VALUES (99, 'later', 'x', 0)")
  db.close()
  const sentence = /^intray: The database has schema version \d+, newer than the \d+ this version of Intray knows\. /
  await assertRefused({ INTRAY_DATABASE_URL: databaseUrl }, sentence)
  const list = await intray(['token', 'list'], { INTRAY_DATABASE_URL: databaseUrl })
  assert.equal(list.code, 1)
  assert.match(list.stderr, sentence)
  assert.ok(!list.stdout.includes(token.slice(4, 14)))
})

test('a start on a file that is no database is refused with a sentence, and the file stays as it is', async () => {
  const path = join(tempFolder('start'), 'intray.db')
  const text = 'dear diary, '.repeat(1000)
  writeFileSync(path, text)
  await assertRefused({ INTRAY_DATABASE_URL: `sqlite:${path}` }, /^intray: \S+ is not a SQLite database/)
  assert.equal(readFileSync(path, 'utf8'), text)
})

test('a database URL that is not understood is refused with a sentence that does not repeat it', async () => {
  for (const databaseUrl of ['mysql://root:hunter2@localhost/x', 'intray.db', 'sqlite:', 'sqlite::memory:']) {
    const [code, stderr] = await refused({ INTRAY_DATABASE_URL: databaseUrl })
    assert.notEqual(code, 0)
    assert.match(stderr, /^intray: INTRAY_DATABASE_URL must .*sqlite:\.\/data\/intray\.db/)
    assert.ok(!stderr.includes('hunter2'))
  }
})

test('wrong settings are all reported at once, and a misspelt one with the name it resembles', async () => {
  const [code, stderr] = await refused({
    INTRAY_DATABASE_URL: newDatabase(),
    INTRAY_PORT: '70000',
    INTRAY_MAX_BODY_BYTES: 'lots',
    INTRAY_STOP_TIMEOUT: '5 minutes',
    INTRAY_LEGACY_TESTER: 'maybe',
    INTRAY_INTAKE_SCOPES: 'cf,NOT A SCOPE',
    INTRAY_MAX_BODY_BYTE: '1',
  })
  assert.equal(code, 2)
  for (const name of ['PORT', 'MAX_BODY_BYTES', 'STOP_TIMEOUT', 'LEGACY_TESTER', 'INTAKE_SCOPES']) {
    assert.match(stderr, new RegExp(`^intray: INTRAY_${name} .+\\.$`, 'm'))
  }
  assert.match(stderr, /INTRAY_MAX_BODY_BYTE is not a setting\. Did you mean INTRAY_MAX_BODY_BYTES\?/)
})

test('a flag of serve that does not exist, or has a wrong value, is refused', async () => {
  const env = { INTRAY_DATABASE_URL: newDatabase() }
  const [unknown, unknownText] = await refused(env, ['--prot', '8081'])
  assert.equal(unknown, 2)
  assert.match(unknownText, /--prot/)
  const [wrong, wrongText] = await refused(env, ['--port', 'eighty'])
  assert.equal(wrong, 2)
  assert.match(wrongText, /^intray: --port must be a whole number/)
})

test('a server that was refused has left a database that the next start can use', async (t) => {
  const other = net.createServer().listen(0, '127.0.0.1')
  await once(other, 'listening')
  const { port } = other.address() as net.AddressInfo
  const env = { INTRAY_DATABASE_URL: newDatabase() }
  const [code] = await refused({ ...env, INTRAY_PORT: String(port) })
  assert.equal(code, 1)
  other.close()
  const server = await startServer(t, env)
  const line = await until('the curl line is printed', () => CURL_LINE.exec(server.stdout())?.[1])
  assert.equal(await paste(line), '{"ok":true,"id":1}', 'no starter token was used up by the refused start')
  await stop(server)
  assert.equal((await readJournal(env.INTRAY_DATABASE_URL)).length, 1)
})
