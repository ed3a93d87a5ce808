// TLS on the server's own port: what holds for plain connections holds for these, and their handshakes have limits too.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import net from 'node:net'
import { type TestContext, test } from 'node:test'
import type tls from 'node:tls'
import type { SettingName } from '../../src/config.ts'
import { startTestApp, type TestApp } from '../support/app.ts'
import { makeCertificates, newPairFiles, noOpenssl } from '../support/certificates.ts'
import { RawConnection } from '../support/client.ts'
import { drivers } from '../support/drivers.ts'
import { createOperator, signInCode } from '../support/operators.ts'
import { allAnswers, chunked, firstAnswer, postHeaders, rawPost, rawRequest } from '../support/raw.ts'
import { until, within } from '../support/until.ts'

const NONE = { cert: '', key: '' }
const PATH = '/v1/inbox/events'
const [sqlite] = drivers
const [certificate = NONE] = makeCertificates(1)
const files = newPairFiles(certificate)

function startTls(t: TestContext, settings: Partial<Record<SettingName, string>> = {}): Promise<TestApp> {
  return startTestApp(t, sqlite!, { settings: { tlsCert: files.cert, tlsKey: files.key, ...settings } })
}

async function connect(t: TestContext, app: TestApp, options: tls.ConnectionOptions = {}): Promise<RawConnection> {
  const connection = await RawConnection.openTls(app.port, certificate.cert, options)
  t.after(() => connection.destroy())
  return connection
}

async function connectPlain(t: TestContext, app: TestApp): Promise<net.Socket> {
  const socket = net.connect({ port: app.port, host: '127.0.0.1' })
  socket.on('error', () => {}).resume()
  t.after(() => socket.destroy())
  await once(socket, 'connect')
  return socket
}

const ping = (app: TestApp) => rawRequest({ method: 'GET', target: '/api/ping', headers: postHeaders(app.token) })
const inChunks = (app: TestApp, body: string) =>
  rawRequest({
    target: PATH,
    headers: [...postHeaders(app.token), 'Transfer-Encoding: chunked'],
    body: chunked(body, 5),
    sized: false,
  })

test('plain requests and others, sent ahead of their answers, are answered in order and stored once', {
  skip: noOpenssl,
}, async (t) => {
  const app = await startTls(t)
  assert.match(app.url, /^https:\/\/127\.0\.0\.1:\d+$/)
  const requests = [
    rawPost(PATH, app.token, '{"source_ref":"a"}'),
    ping(app),
    rawPost(PATH, app.token, '{"source_ref":"b"}'),
    inChunks(app, '{"source_ref":"c"}'),
    rawPost(PATH, app.token, `{"source_ref":"d","text":"${'x'.repeat(200_000)}"}`),
  ]
  const received: unknown[] = []
  for (const pieces of [[Buffer.concat(requests)], requests]) {
    const connection = await connect(t, app)
    for (const piece of pieces) connection.write(piece)
    const answers = await allAnswers(connection, requests.length)
    assert.deepEqual(
      answers.map(({ status }) => status),
      requests.map(() => 200),
    )
    received.push(answers.map(({ json }) => (json?.duplicate ? `again ${String(json.id)}` : (json?.id ?? 'pong'))))
  }
  assert.deepEqual(received, [
    [1, 'pong', 2, 3, 4],
    ['again 1', 'pong', 'again 2', 'again 3', 'again 4'],
  ])
})

async function answerTo(t: TestContext, app: TestApp, bytes: Uint8Array): Promise<string> {
  const connection = await connect(t, app)
  connection.write(bytes)
  const { status, json } = await firstAnswer(connection)
  return `${status} ${String(json?.error)}`
}

test('the limits on heads and bodies are those of plain connections', { skip: noOpenssl }, async (t) => {
  const app = await startTls(t, { maxBodyBytes: '1024' })
  const headers = [...postHeaders(app.token), `X-Large: ${'x'.repeat(20_000)}`]
  const refused = [
    await answerTo(t, app, rawRequest({ target: PATH, headers })),
    await answerTo(t, app, rawPost(PATH, app.token, `"${'x'.repeat(2000)}"`)),
    await answerTo(t, app, inChunks(app, `"${'x'.repeat(2000)}"`)),
    await answerTo(t, app, Buffer.from('nonsense\r\n\r\n')),
  ]
  const tooLarge = '413 payload_too_large'
  assert.deepEqual(refused, ['431 headers_too_large', tooLarge, tooLarge, '400 invalid_request'])
})

test('the time-outs of heads and bodies are those of plain connections', { skip: noOpenssl }, async (t) => {
  const app = await startTls(t, { headersTimeout: '3s', requestTimeout: '3s' })
  // Where the machine stands still for as long, a connection is closed in its handshake: the next one is answered.
  const answered = (bytes: Uint8Array) => until('there is an answer', () => answerTo(t, app, bytes).catch(() => null))
  const late = await Promise.all([
    answered(Buffer.from('POST / HTTP/1.1\r\nHost: x\r\n')),
    answered(rawPost(PATH, app.token, '{"a":1}').subarray(0, -3)),
  ])
  assert.deepEqual(late, ['408 request_timeout', '408 request_timeout'])
})

test('a client that ends its side after the request gets its answer', { skip: noOpenssl }, async (t) => {
  const app = await startTls(t)
  for (const request of [rawPost(PATH, app.token, '{}'), inChunks(app, '{}'), ping(app)]) {
    const connection = await connect(t, app, { allowHalfOpen: true } as tls.ConnectionOptions)
    connection.socket.end(request)
    assert.equal((await firstAnswer(connection)).status, 200)
    await within('the connection to close', connection.closed)
  }
})

test('a connection counts from before its handshake', { skip: noOpenssl }, async (t) => {
  const app = await startTls(t, { connectionsPerAddress: '2', headersTimeout: '1h', requestTimeout: '1h' })
  const silent = [await connectPlain(t, app), await connectPlain(t, app)]
  await assert.rejects(connect(t, app), 'two are open: a third is closed')
  for (const socket of silent) socket.destroy()
  await until('their places are free', async () => {
    const connection = await connect(t, app).catch(() => null)
    connection?.destroy()
    return connection !== null
  })
})

test('a connection without a handshake is closed after the headers timeout', { skip: noOpenssl }, async (t) => {
  const app = await startTls(t, { headersTimeout: '200ms' })
  const silent = await connectPlain(t, app)
  await within('the connection to close', once(silent, 'close'))
})

test('TLS 1.2 and 1.3 are spoken; older versions and HTTP/2 alone are not, and plain HTTP is told to use https', {
  skip: noOpenssl,
}, async (t) => {
  const app = await startTls(t)
  const pong = async (options: tls.ConnectionOptions) => {
    const connection = await connect(t, app, options)
    connection.write(ping(app))
    assert.equal((await firstAnswer(connection)).status, 200)
    return connection.socket as tls.TLSSocket
  }
  for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
    const socket = await pong({ minVersion: version, maxVersion: version, ALPNProtocols: ['h2', 'http/1.1'] })
    assert.deepEqual([socket.getProtocol(), socket.alpnProtocol], [version, 'http/1.1'])
  }
  const old = { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' } as const
  await assert.rejects(connect(t, app, old))
  await assert.rejects(connect(t, app, { ALPNProtocols: ['h2'] }))
  const plain = await connectPlain(t, app)
  let heard = ''
  plain.on('data', (chunk: Buffer) => (heard += chunk.toString('latin1')))
  plain.write(ping(app))
  await within('the plain connection to close', once(plain, 'close'))
  assert.match(heard, /^HTTP\/1\.1 400 .*"error":"invalid_request".*https:\/\//s)
  assert.ok(app.log.some(({ msg, reason }) => msg === 'broken TLS handshake' && reason === 'ERR_SSL_HTTP_REQUEST'))
  await pong({})
})

test('a stop finishes the request in progress and closes idle connections and handshakes', {
  skip: noOpenssl,
}, async (t) => {
  const app = await startTls(t, { stopTimeout: '1h', headersTimeout: '1h', requestTimeout: '1h' })
  const idle = await connect(t, app)
  idle.write(ping(app))
  await firstAnswer(idle)
  const handshake = await connectPlain(t, app)
  const open = await connect(t, app)
  const request = rawRequest({
    target: PATH,
    headers: [...postHeaders(app.token), 'Expect: 100-continue'],
    body: '{"a":1}',
  })
  open.write(request.subarray(0, -7))
  await within(
    '100 Continue',
    open.until((text) => text.startsWith('HTTP/1.1 100 ')),
  )
  const stopped = app.app.stop()
  await within('the idle one and the handshake to close', Promise.all([idle.closed, once(handshake, 'close')]))
  open.write('{"a":1}')
  const answer = await firstAnswer(open)
  assert.deepEqual([answer.status, answer.headers.connection], [200, 'close'])
  await within('the server to stop', stopped)
})

test('the console has secure cookies over TLS, on loopback too, and examples name https', {
  skip: noOpenssl,
}, async (t) => {
  const app = await startTls(t)
  const connection = await connect(t, app)
  const headers = [`Host: 127.0.0.1:${app.port}`]
  connection.write(rawRequest({ method: 'GET', target: '/docs', host: null, headers }))
  await connection.until((text) => text.includes('</html>'))
  assert.ok(connection.text.includes(`https://127.0.0.1:${app.port}/v1/inbox/events`))
  const link = await signInCode(app, await createOperator(app))
  const signingIn = await connect(t, app)
  const asJson = [...headers, 'Content-Type: application/json']
  const body = JSON.stringify({ link })
  signingIn.write(rawRequest({ target: '/v1/console/session', host: null, headers: asJson, body }))
  const cookie = String((await firstAnswer(signingIn)).headers['set-cookie'])
  assert.match(cookie, /^__Host-intray_session=[^;]+; .*Secure$/)
  const withCookie = [...headers, `Cookie: ${cookie.split(';')[0]}`]
  signingIn.write(rawRequest({ method: 'GET', target: '/v1/console/session', host: null, headers: withCookie }))
  assert.equal((await allAnswers(signingIn, 2))[1]!.status, 200)
})
