import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { AddressGuard } from '../../src/processing/push/address-guard.ts'
import { HttpClient, type PushResult } from '../../src/processing/push/http-client.ts'

/** For what is answered: a slow machine is no time-out. */
const LONG_MS = 600_000
const SHORT_MS = 300
/** More than the buffers of a connection hold. */
const LARGE = 16 * 1024 * 1024

/** A client with one socket, for a server that does this with each connection. */
async function clientOf(t: TestContext, onSocket: (socket: Socket) => void): Promise<HttpClient> {
  const server = createServer((socket) => {
    socket.on('error', () => {})
    t.after(() => socket.destroy())
    onSocket(socket)
  }).listen(0, '127.0.0.1')
  t.after(() => server.close())
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const client = new HttpClient({
    url: new URL(`http://127.0.0.1:${port}/`),
    guard: new AddressGuard(['loopback']),
    resolve: async () => [],
    maxSockets: 1,
  })
  t.after(() => client.stop())
  return client
}

function post(client: HttpClient, size = 10, timeoutMs = LONG_MS): Promise<PushResult> {
  return client.post({
    headers: { 'Content-Length': String(size) },
    body: [Buffer.alloc(size, 'a')],
    timeoutMs,
  })
}

function outcome(result: PushResult): string | number {
  return 'status' in result ? result.status : result.failure
}

test('an answer that switches protocols is an answer like any other', async (t) => {
  const client = await clientOf(t, (socket) => {
    socket.once('data', () => socket.write('HTTP/1.1 101 No\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhello'))
  })
  assert.equal(outcome(await post(client)), 101)
  assert.equal(outcome(await post(client)), 101)
})

const HEAD = 'HTTP/1.1 200 OK\r\n'
const BEHIND_THE_STATUS: Record<string, (socket: Socket) => void> = {
  'a chunk that is none': (socket) => socket.write(`${HEAD}Transfer-Encoding: chunked\r\n\r\nZZZZ\r\n`),
  'bytes behind an empty answer': (socket) => socket.write('HTTP/1.1 204 No Content\r\n\r\n\0\0\0\0'),
  'a connection that is reset': (socket) =>
    socket.write(`${HEAD}Content-Length: 5000\r\n\r\nabc`, () => setImmediate(() => socket.resetAndDestroy())),
}

for (const [what, answer] of Object.entries(BEHIND_THE_STATUS)) {
  test(`${what} does not undo a status 2xx`, async (t) => {
    const client = await clientOf(t, (socket) => socket.once('data', () => answer(socket)))
    assert.match(String(outcome(await post(client))), /^20[04]$/)
  })
}

test('an answer before the body was read gives its socket back', async (t) => {
  const client = await clientOf(t, (socket) => {
    socket.pause()
    socket.write(`${HEAD}Content-Length: 0\r\n\r\n`)
  })
  for (let n = 0; n < 3; n += 1) assert.equal(outcome(await post(client, LARGE)), 200)
})

test('a request that waits for a socket ends at its time limit, and when the client stops', async (t) => {
  const client = await clientOf(t, () => {})
  const short = [post(client, 10, SHORT_MS), post(client, 10, SHORT_MS)]
  assert.deepEqual((await Promise.all(short)).map(outcome), ['timeout', 'timeout'])
  const late = [post(client), post(client)]
  client.stop()
  assert.deepEqual((await Promise.all(late)).map(outcome), ['stopped', 'stopped'])
})
