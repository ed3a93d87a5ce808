// No secret is ever written down: canary tokens go in by every door, and neither the log nor stdout, the files of the
// database or an answer may hold a piece of one afterwards.

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { mintToken } from '../../src/auth/token.ts'
import { ROUTES } from '../../src/http/routes.ts'
import { randomBase62 } from '../../src/runtime/id.ts'
import type { Store } from '../../src/store/contract/store.ts'
import { databaseFiles, findCanaries, type Place } from '../support/canaries.ts'
import { RawConnection, send } from '../support/client.ts'
import { createToken, withStore } from '../support/journal.ts'
import { type ServerProcess, startServer } from '../support/process.ts'
import { tempFolder } from '../support/temp.ts'
import { until, within } from '../support/until.ts'

/** The bytes of a request that carries the token somewhere. */
type Door = (token: string) => string | Buffer

function request(method: string, target: string, headers: readonly string[], body: string | Buffer = ''): Buffer {
  const length = body.length > 0 ? [`Content-Length: ${Buffer.byteLength(body)}`] : []
  const head = [`${method} ${target} HTTP/1.1`, 'Host: test', 'Connection: close', ...length, ...headers].join('\r\n')
  return Buffer.concat([Buffer.from(`${head}\r\n\r\n`), Buffer.from(body)])
}

const JSON_TYPE = 'Content-Type: application/json'
const bearer = (token: string) => `Authorization: Bearer ${token}`
const intake = (headers: readonly string[], body: string | Buffer = '{}') =>
  request('POST', '/v1/inbox/events', headers, body)

/** Where the token is the request's own credential: every kind of token goes in here. */
const AS_CREDENTIAL: Record<string, Door> = {
  'bearer of ping': (token) => request('GET', '/api/ping', [bearer(token)]),
  'bearer of an accepted message': (token) => intake([bearer(token), JSON_TYPE]),
  'bearer of the alias': (token) => request('POST', '/api/inbox', [bearer(token), JSON_TYPE], '{}'),
  'bearer of a message refused for its JSON': (token) => intake([bearer(token), JSON_TYPE], '{"a":'),
  'bearer of a message refused for its refs': (token) => intake([bearer(token), JSON_TYPE], '{"source_ref":true}'),
  'bearer of a message refused for its type': (token) => intake([bearer(token), 'Content-Type: text/html']),
  'bearer of a message refused for its encoding': (token) => intake([bearer(token), JSON_TYPE, 'Content-Encoding: br']),
  'bearer of a message that is too large': (token) => intake([bearer(token), JSON_TYPE], `{"a":"${'x'.repeat(5000)}"}`),
  'bearer with Expect: 100-continue': (token) => intake([bearer(token), JSON_TYPE, 'Expect: 100-continue']),
  'bearer with an unknown Expect': (token) => intake([bearer(token), JSON_TYPE, 'Expect: 200-ok']),
  'query of the tester': (token) => request('GET', `/api/inbox-test?token=${token}`, []),
  'query and header of the tester': (token) => request('GET', `/api/inbox-test?token=${token}`, [bearer(token)]),
  'query of the tester, half encoded': (token) =>
    request('GET', `/api/inbox-test/?x=1&token=${token.replaceAll('_', '%5F')}`, []),
}

/** Where a token has no business to be. */
const MISPLACED: Record<string, Door> = {
  'in the path': (token) => request('GET', `/v1/inbox/${token}`, []),
  'in the path, alone': (token) => request('GET', `/${token}/`, []),
  'in a long path': (token) => request('GET', `/${'p'.repeat(180)}${token}`, []),
  'in the path of an absolute target': (token) => request('GET', `http://${token}@test/${token}`, []),
  'in the path, with a bad escape': (token) => request('GET', `/%zz/${token}`, []),
  'in the query of an unknown path': (token) => request('GET', `/nowhere?token=${token}`, []),
  'as the method': (token) => request(token, '/api/ping', []),
  'as the whole request line': (token) => `${token}\r\n\r\n`,
  'as the protocol': (token) => `GET /api/ping ${token}\r\n\r\n`,
  'in a header name': (token) => request('GET', '/api/ping', [`${token}: x`]),
  'in a broken header line': (token) => request('GET', '/api/ping', [`Authorization Bearer ${token}`]),
  'in oversized headers': (token) => request('GET', '/api/ping', [bearer(token), `X-Long: ${'x'.repeat(40_000)}`]),
  'in an oversized query': (token) => request('GET', `/api/inbox-test?token=${token}&x=${'x'.repeat(40_000)}`, []),
  'twice in Authorization': (token) => request('GET', '/api/ping', [bearer(token), bearer(token)]),
  'twice in Authorization of a message': (token) => intake([bearer(token), bearer(token), JSON_TYPE]),
  'under another scheme': (token) => request('GET', '/api/ping', [`Authorization: Token ${token}`]),
  'without a scheme': (token) => request('GET', '/api/ping', [`Authorization: ${token}`]),
  'as Basic credentials': (token) => request('GET', '/api/ping', [`Authorization: Basic ${token}`]),
  'in Cookie': (token) => request('GET', '/api/ping', [`Cookie: token=${token}`]),
  'in X-Api-Key': (token) => request('GET', '/api/ping', [`X-Api-Key: ${token}`]),
  'in the user agent': (token) => request('GET', '/api/ping', [`User-Agent: plugin/1 (${token})`]),
  'in a cut-off user agent': (token) => request('GET', '/api/ping', [`User-Agent: ${'u'.repeat(170)} ${token}`]),
  'in Referer': (token) => request('GET', '/api/ping', [`Referer: https://example.org/?token=${token}`]),
  'in Host': (token) => `GET /api/ping HTTP/1.1\r\nHost: ${token}\r\nConnection: close\r\n\r\n`,
  'in two Hosts': (token) => request('GET', '/api/ping', [`Host: ${token}`]),
  'in Expect': (token) => request('GET', '/api/ping', [`Expect: ${token}`]),
  'in Transfer-Encoding': (token) => request('POST', '/api/inbox', [`Transfer-Encoding: ${token}`]),
  'in Content-Length': (token) => request('POST', '/api/inbox', [`Content-Length: ${token}`]),
  'in CONNECT': (token) => `CONNECT ${token}:443 HTTP/1.1\r\nHost: test\r\n\r\n`,
  'in Upgrade': (token) => request('GET', '/api/ping', ['Connection: upgrade', `Upgrade: ${token}`]),
  ...Object.fromEntries(
    ROUTES.map(({ method, path }) => [
      `in the query of ${method} ${path}`,
      (token: string) => request(method, `${path}?token=${token}`, [JSON_TYPE], method === 'POST' ? '{}' : ''),
    ]),
  ),
}

/** Where a request with a good token of its own carries another, and is refused, or keeps only what is not the body. */
const misplacedInIntake = (valid: string): Record<string, Door> => ({
  'in a body refused for its JSON': (token) => intake([bearer(valid), JSON_TYPE], `{"token":"${token}",`),
  'in a body refused for its refs': (token) => intake([bearer(valid), JSON_TYPE], `{"source_ref":["${token}"]}`),
  'in an over-long body': (token) =>
    intake([bearer(valid), JSON_TYPE], `{"token":"${token}","x":"${'x'.repeat(5000)}"}`),
  'at the cut of an over-long body': (token) =>
    intake([bearer(valid), JSON_TYPE], `{"x":"${'x'.repeat(4096 - 40)} ${token}"}`.padEnd(6000)),
  'in a chunked over-long body': (token) => {
    const chunk = `{"token":"${token}","x":"${'x'.repeat(5000)}"}`
    const body = `${chunk.length.toString(16)}\r\n${chunk}\r\n0\r\n\r\n`
    const head = ['POST /api/inbox HTTP/1.1', 'Host: test', 'Connection: close', bearer(valid), JSON_TYPE]
    return `${[...head, 'Transfer-Encoding: chunked'].join('\r\n')}\r\n\r\n${body}`
  },
  'in a gzip body refused for its JSON': (token) =>
    intake([bearer(valid), JSON_TYPE, 'Content-Encoding: gzip'], gzipSync(`["${token}"]`)),
  'as the Idempotency-Key of an accepted message': (token) =>
    intake([bearer(valid), JSON_TYPE, `Idempotency-Key: ${token}`]),
  'in a body of another type': (token) => intake([bearer(valid), 'Content-Type: text/html'], `token=${token}`),
  'in a body that is not UTF-8': (token) =>
    intake([bearer(valid), JSON_TYPE], Buffer.concat([Buffer.from(`{"token":"${token}`), Buffer.from([0xff, 0xfe])])),
  'in the type of a refused message': (token) => intake([bearer(valid), `Content-Type: text/html; x=${token}`]),
  'in the encoding of a refused message': (token) => intake([bearer(valid), JSON_TYPE, `Content-Encoding: ${token}`]),
  'in the user agent of a refused message': (token) => intake([bearer(valid), JSON_TYPE, `User-Agent: ${token}`], '[]'),
  'in the user agent of an accepted message': (token) => intake([bearer(valid), JSON_TYPE, `User-Agent: ${token}`]),
  'in the type of an accepted message': (token) => intake([bearer(valid), `${JSON_TYPE}; x=${token}`]),
  'in traceparent of an accepted message': (token) => intake([bearer(valid), JSON_TYPE, `traceparent: 00-${token}`]),
  'in X-Request-Id of an accepted message': (token) => intake([bearer(valid), JSON_TYPE, `X-Request-Id: ${token}`]),
  'in the query of an accepted message': (token) =>
    request('POST', `/v1/inbox/events?token=${token}`, [bearer(valid), JSON_TYPE], '{}'),
  'in X-Forwarded-For of an accepted message': (token) =>
    intake([bearer(valid), JSON_TYPE, `X-Forwarded-For: ${token}`, `Cookie: t=${token}`]),
  'in the trailers of an accepted message': (token) =>
    `POST /api/inbox HTTP/1.1\r\nHost: test\r\nConnection: close\r\n${bearer(valid)}\r\n${JSON_TYPE}\r\n` +
    `Transfer-Encoding: chunked\r\nTrailer: X-Token\r\n\r\n2;${token}\r\n{}\r\n0\r\nX-Token: ${token}\r\n\r\n`,
})

/** A character of the checksum exchanged for another. */
function mistyped(token: string): string {
  return token.slice(0, -1) + (token.endsWith('a') ? 'b' : 'a')
}

const KINDS: Record<string, (store: Store) => Promise<string>> = {
  valid: (store) => createToken(store),
  processor: (store) => createToken(store, { scope: 'processor' }),
  disabled: (store) => createToken(store, { isActive: false }),
  expired: (store) => createToken(store, { expiresAt: 1000 }),
  unknown: async () => mintToken().token,
  mistyped: async (store) => mistyped(await createToken(store)),
}

interface Sent {
  /** Token → how it was sent. */
  readonly canaries: Map<string, string>
  readonly answers: Place[]
}

async function sendThrough(port: number, doors: Record<string, Door>, canary: () => string, sent: Sent, kind = '') {
  for (const [name, door] of Object.entries(doors)) {
    const token = canary()
    const sentAs = `${kind} ${name}`.trim()
    sent.canaries.set(token, sentAs)
    const connection = await RawConnection.open(port)
    connection.write(door(token))
    await within(`the answer to a token ${sentAs}`, connection.closed)
    assert.match(connection.text, /^HTTP\/1\.1 \d{3} /, `a token ${sentAs} gets an answer`)
    sent.answers.push({ name: 'answer', bytes: Buffer.from(connection.text, 'latin1') })
  }
}

interface Subject {
  readonly server: ServerProcess
  readonly databasePath: string
  readonly valid: string
}

async function startSubject(t: TestContext, prepare: (store: Store) => Promise<void> = async () => {}) {
  const databasePath = join(tempFolder('secrets'), 'intray.db')
  const databaseUrl = `sqlite:${databasePath}`
  const valid = await withStore(databaseUrl, async (store) => {
    await prepare(store)
    return createToken(store)
  })
  const env = { INTRAY_DATABASE_URL: databaseUrl, INTRAY_MAX_BODY_BYTES: '4096', INTRAY_LOG_LEVEL: 'debug' }
  const server = await startServer(t, env)
  return { server, databasePath, valid }
}

/** Everything the server wrote anywhere: the files while it runs and after it stopped, both of its streams. */
async function everythingWritten({ server, databasePath }: Subject): Promise<Place[]> {
  const running = databaseFiles(databasePath, 'while the server runs')
  server.child.kill('SIGTERM')
  assert.equal(await within('the server to end', server.exited), 0)
  return [
    ...running,
    ...databaseFiles(databasePath, 'after the stop'),
    { name: 'stdout', bytes: Buffer.from(server.stdout()) },
    { name: 'stderr', bytes: Buffer.from(server.stderr()) },
  ]
}

test('a token sent through any door leaves no trace in logs, stdout, database files or answers', async (t) => {
  const sent: Sent = { canaries: new Map(), answers: [] }
  const credentials: [string, string[]][] = []
  const subject = await startSubject(t, async (store) => {
    for (const [kind, make] of Object.entries(KINDS)) {
      const tokens: string[] = []
      for (const _ of Object.keys(AS_CREDENTIAL)) tokens.push(await make(store))
      credentials.push([kind, tokens])
    }
  })
  const { port } = subject.server
  for (const [kind, tokens] of credentials) {
    await sendThrough(port, AS_CREDENTIAL, () => tokens.shift()!, sent, `${kind}, as`)
  }
  const misplaced = { ...MISPLACED, ...misplacedInIntake(subject.valid) }
  await sendThrough(port, misplaced, () => mintToken().token, sent)
  sent.canaries.set(subject.valid, 'as the bearer of everything else')

  const written = await everythingWritten(subject)
  t.diagnostic(
    `${sent.canaries.size} canaries sent; ${written.length} files and streams, ${sent.answers.length} answers`,
  )
  assert.ok(written.some(({ name, bytes }) => name === 'intray.db-wal while the server runs' && bytes.length > 0))
  const refusals = await withStore(`sqlite:${subject.databasePath}`, (store) =>
    store.refusals.list({ accountId: 7, companyId: 42 }, Number.MAX_SAFE_INTEGER, 1000),
  )
  assert.ok(
    refusals.length > 20,
    `refused requests were kept, so that there was something to redact: ${refusals.length}`,
  )
  assert.deepEqual(findCanaries([...written, ...sent.answers], sent.canaries), [])
})

test('a token in a form that does not look like one leaves no trace either', async (t) => {
  const sent: Sent = { canaries: new Map(), answers: [] }
  const subject = await startSubject(t)
  const { server, valid } = subject
  const doors: Record<string, Door> = {
    'in the path, its underscores encoded': (token) => request('GET', `/x/${token.replaceAll('_', '%5F')}`, []),
    'in the path, its first letter encoded': (token) => request('GET', `/x/%69${token.slice(1)}`, []),
    'in the path, cut off at the front': (token) => request('GET', `/x/${token.slice(2)}`, []),
    'in the user agent, cut off at the front': (token) =>
      request('GET', '/api/ping', [`User-Agent: ${token.slice(2)}`]),
    'in a refused body, its first letter escaped': (token) =>
      intake([bearer(valid), JSON_TYPE], `["\\u0069${token.slice(1)}"]`),
    'in a refused body, cut off at the front': (token) => intake([bearer(valid), JSON_TYPE], `["${token.slice(2)}"]`),
  }
  await sendThrough(server.port, doors, () => mintToken().token, sent)
  assert.deepEqual(findCanaries([...(await everythingWritten(subject)), ...sent.answers], sent.canaries), [])
})

test('the starter token is in nothing but the banner', async (t) => {
  const databasePath = join(tempFolder('secrets'), 'intray.db')
  const server = await startServer(t, { INTRAY_DATABASE_URL: `sqlite:${databasePath}` })
  const token = await until('the starter token is printed', () => /itr_\w{47}/.exec(server.stdout())?.[0])
  await until('the whole banner is printed', () => /#link=\w{43}\n\n.*\n\n$/s.test(server.stdout()))
  const banner = server.stdout()
  const sent: Sent = { canaries: new Map([[token, 'the starter token']]), answers: [] }
  await sendThrough(server.port, AS_CREDENTIAL, () => token, sent)
  const written = await everythingWritten({ server, databasePath, valid: token })
  assert.equal(server.stdout(), banner, 'nothing is printed after the banner')
  assert.deepEqual(
    findCanaries([...written.filter(({ name }) => name !== 'stdout'), ...sent.answers], sent.canaries),
    [],
  )
})

test('what signs an operator in is in nothing that is written: the link, the session, names and passwords that were tried', async (t) => {
  const subject = await startSubject(t)
  const { server } = subject
  const { port } = server
  const signIn = (body: object) =>
    send(port, {
      method: 'POST',
      path: '/v1/console/session',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
    })
  const link = (await until('the link is printed', () => /#link=(\w{43})\n/.exec(server.stdout())?.[1])) as string
  const canaries = new Map([[link, 'the link']])
  const canary = (what: string): string => {
    const text = randomBase62(43)
    canaries.set(text, what)
    return text
  }
  const signedIn = await signIn({ link })
  const cookie = signedIn.headers['set-cookie']![0]!.split(';')[0]!
  canaries.set(cookie.split('=')[1]!, 'the session')
  const answers = [
    await signIn({ link: canary('a link that there is not') }),
    await signIn({ name: canary('a password as the name'), password: canary('a password') }),
    await signIn({ name: 'admin', password: canary('a wrong password of somebody') }),
    await signIn({ link: canary('a link beside a name'), name: 'ada' }),
    await send(port, { path: `/console/${canary('a code in the path')}` }),
    await send(port, { path: `/console?link=${canary('a code in the query')}` }),
    await send(port, { path: '/v1/console/session', headers: { Cookie: `intray_session=${canary('a cookie')}` } }),
  ]
  for (const path of ['/v1/console/session', '/v1/console/audit', '/v1/inbox/events', '/v1/inbox/refusals']) {
    answers.push(await send(port, { path, headers: { Cookie: cookie, 'Intray-Tenant': '7/42' } }))
  }
  assert.deepEqual(
    answers.map(({ status }) => status),
    [401, 401, 401, 400, 200, 200, 401, 200, 200, 200, 200],
  )
  const places = answers.map(({ text, headers }) => ({
    name: 'answer',
    bytes: Buffer.from(text + JSON.stringify(headers)),
  }))
  const written = (await everythingWritten(subject)).filter(({ name }) => name !== 'stdout')
  assert.deepEqual(findCanaries([...written, ...places], canaries), [])
  assert.deepEqual(findCanaries([{ name: 'planted', bytes: Buffer.from(`x${link}`) }], canaries), ['planted: the link'])
})

test('the scanner finds what is there: a planted canary, a piece of one, and a token inside an accepted payload', async (t) => {
  const planted = mintToken().token
  const canaries = new Map([[planted, 'planted']])
  const place = (text: string): Place[] => [{ name: 'log', bytes: Buffer.from(text) }]
  assert.deepEqual(findCanaries(place(`{"path":"/x/${planted}"}`), canaries), ['log: planted'])
  assert.deepEqual(findCanaries(place(`{"path":"/x/${planted.slice(0, -20)}`), canaries), ['log: planted'])
  assert.deepEqual(findCanaries(place(`{"key_id":"${planted.slice(0, 14)}"}`), canaries), [])

  const subject = await startSubject(t)
  const sent: Sent = { canaries: new Map(), answers: [] }
  const doors: Record<string, Door> = {
    'in an accepted payload': (token) => intake([bearer(subject.valid), JSON_TYPE], `{"note":"${token}"}`),
  }
  await sendThrough(subject.server.port, doors, () => mintToken().token, sent)
  const hits = findCanaries([...(await everythingWritten(subject)), ...sent.answers], sent.canaries)
  assert.deepEqual(
    hits,
    ['intray.db-wal while the server runs: in an accepted payload', 'intray.db after the stop: in an accepted payload'],
    'kept byte for byte as the payload, and nowhere else',
  )
})
