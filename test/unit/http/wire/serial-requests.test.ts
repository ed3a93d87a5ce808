// One request at a time on a connection, in memory: with Node's HTTP server alone as control.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import http, { type IncomingMessage, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { type Duplex, duplexPair } from 'node:stream'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { closeAfterAnswer } from '../../../../src/http/wire/open-answer.ts'
import { SerialRequests, serialRequests } from '../../../../src/http/wire/serial-requests.ts'
import { TurnQueue } from '../../../../src/runtime/turn-queue.ts'

type Run = (req: IncomingMessage, res: ServerResponse) => void

/** Room of each direction of a connection. */
const ROOM = 16 * 1024

interface Connection {
  readonly client: Duplex
  readonly socket: Socket
  readonly serial: SerialRequests
}

/** A connection whose requests are passed to `run`. Node's clientError closes it. */
function connect(run: Run, isSerial = true, turns = new TurnQueue()): Connection {
  const server = http.createServer((req, res) => {
    if (isSerial) assert.ok(serialRequests(req.socket)!.begin(req, res), 'two requests at once')
    run(req, res)
  })
  ;(server as http.Server & { httpAllowHalfOpen: boolean }).httpAllowHalfOpen = true
  server.on('connect', (req) => {
    serialRequests(req.socket)!.stop()
    req.socket.end('HTTP/1.1 400 Bad Request\r\n\r\n')
  })
  const [client, side] = duplexPair({ highWaterMark: ROOM })
  client.on('error', () => {})
  const socket = side as unknown as Socket
  const attach = () => server.emit('connection', socket)
  if (!isSerial) attach()
  return { client, socket, serial: isSerial ? new SerialRequests(socket, turns.of('one'), attach) : null! }
}

const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`
const post = (path: string, body: string) =>
  `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n${body}`
const chunks = (path: string, ...parts: string[]) =>
  `POST ${path} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n${[...parts, '']
    .map((part) => `${part.length.toString(16)}\r\n${part}\r\n`)
    .join('')}`

/** Streams in memory take several turns to settle. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 50; turn += 1) await new Promise((resolve) => setImmediate(resolve))
}

const bodyOf = (req: IncomingMessage) => text(req)

test('requests sent ahead run one at a time, in the order sent; Node alone opens them all', async () => {
  for (const isSerial of [true, false]) {
    const order: string[] = []
    let [open, most] = [0, 0]
    const run: Run = async (req, res) => {
      open += 1
      most = Math.max(most, open)
      const body = await bodyOf(req)
      // The first is the slowest.
      if (req.url === '/0') await settled()
      order.push(`${req.url}${body}`)
      open -= 1
      res.end(req.url)
    }
    const { client } = connect(run, isSerial)
    const answers = text(client)
    client.end(Array.from({ length: 30 }, (_, n) => (n % 3 === 0 ? post(`/${n}`, 'b') : get(`/${n}`))).join(''))
    assert.equal((await answers).match(/HTTP\/1\.1 200/g)?.length, 30)
    const sent = Array.from({ length: 30 }, (_, n) => (n % 3 === 0 ? `/${n}b` : `/${n}`))
    if (isSerial) {
      assert.equal(most, 1)
      assert.deepEqual(order, sent)
    } else {
      assert.ok(most > 20, `${most} at once`)
      assert.notDeepEqual(order, sent)
    }
  }
})

const CASES: readonly (readonly [bytes: string, seen: string])[] = [
  [get('/a'), 'GET /a '],
  [post('/b', 'one\r\n\r\ntwo'), 'POST /b one\r\n\r\ntwo'],
  [chunks('/c', 'x', '\r\n\r\n', 'yz'), 'POST /c x\r\n\r\nyz'],
  [`\r\n\r\n${get('/d')}`, 'GET /d '],
  [post('/e', ''), 'POST /e '],
  [
    'POST /f HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1;a=b\r\nf\r\n0\r\nX-Trailer: t\r\n\r\n',
    'POST /f f',
  ],
  [`HEAD${get('/g').slice(3)}`, 'HEAD /g '],
  [post('/h', 'POST / HTTP/1.1\r\n\r\n'), 'POST /h POST / HTTP/1.1\r\n\r\n'],
]

test('each request is seen whole, wherever the bytes are cut', async () => {
  const all = CASES.map(([bytes]) => bytes).join('')
  const expected = CASES.map(([, seen]) => seen)
  const splits = Array.from({ length: all.length - 1 }, (_, at) => [all.slice(0, at + 1), all.slice(at + 1)])
  for (const pieces of [[all], all.split(''), ...splits]) {
    const seen: string[] = []
    const { client } = connect(async (req, res) => {
      seen.push(`${req.method} ${req.url} ${await bodyOf(req)}`)
      res.end()
    })
    const answers = text(client)
    for (const piece of pieces) client.write(piece)
    client.end()
    await answers
    assert.deepEqual(seen, expected, JSON.stringify(pieces[0]))
  }
})

test('a client that does not read its answers is not read from; Node alone answers all that it has', async () => {
  const total = 400
  const counts: number[] = []
  for (const isSerial of [true, false]) {
    let ran = 0
    const { client, socket } = connect((_req, res) => {
      ran += 1
      res.end('x'.repeat(4 * ROOM))
    }, isSerial)
    client.write(get('/').repeat(total))
    await settled()
    counts.push(ran)
    if (!isSerial) continue
    assert.ok(socket.isPaused())
    // It goes on when the client reads.
    client.resume()
    while (ran < total) await settled()
    client.end(get('/last'))
    await once(client, 'end')
    assert.equal(ran, total + 1)
  }
  assert.equal(counts[0], 1)
  assert.equal(counts[1], total)
})

test('the rest of a request arrives while the one before is answered', async () => {
  const gate = Promise.withResolvers<void>()
  const seen: string[] = []
  const { client } = connect(async (req, res) => {
    const body = await bodyOf(req)
    if (req.url === '/slow') await gate.promise
    seen.push(`${req.url} ${body}`)
    res.end()
  })
  const answers = text(client)
  const second = post('/second', 'a body in two parts')
  client.write(get('/slow') + second.slice(0, 30))
  await settled()
  client.write(second.slice(30, 60))
  await settled()
  assert.deepEqual(seen, [])
  gate.resolve()
  await settled()
  client.end(second.slice(60))
  assert.equal((await answers).match(/200 OK/g)?.length, 2)
  assert.deepEqual(seen, ['/slow ', '/second a body in two parts'])
})

test('requests that wait behind another do not run once their client is gone', async () => {
  const held = Promise.withResolvers<ServerResponse>()
  let ran = 0
  const { client, socket } = connect((_req, res) => {
    ran += 1
    held.resolve(res)
  })
  client.write(get('/').repeat(50))
  const res = await held.promise
  const closed = once(res, 'close')
  socket.destroy()
  await closed
  await settled()
  assert.equal(ran, 1)
})

test('an answer before the body: the rest of the body is passed over, and the next request runs', async () => {
  const seen: string[] = []
  const { client } = connect((req, res) => {
    seen.push(req.url!)
    res.end()
  })
  const answers = text(client)
  const first = post('/early', get('/not-a-request').repeat(10))
  client.write(first.slice(0, 120))
  await settled()
  client.end(first.slice(120) + get('/next'))
  await answers
  assert.deepEqual(seen, ['/early', '/next'])
})

test('what follows an answer that closes, or CONNECT, is read and ignored', async () => {
  for (const first of [get('/closes'), 'CONNECT x:443 HTTP/1.1\r\nHost: x\r\n\r\n']) {
    let ran = 0
    const open = Promise.withResolvers<ServerResponse | null>()
    const { client, socket } = connect((req, res) => {
      ran += 1
      closeAfterAnswer(req.socket)
      open.resolve(res)
    })
    if (first.startsWith('CONNECT')) open.resolve(null)
    const ends = [once(client.resume(), 'end'), once(socket, 'end')]
    client.write(first)
    const res = await open.promise
    client.end(get('/ignored').repeat(2000))
    // More than fits into the connection: it is read to its end.
    await ends[1]
    res?.writeHead(200, { Connection: 'close' }).end()
    await ends[0]
    assert.equal(ran, first.startsWith('CONNECT') ? 0 : 1)
  }
})

test('a body of line ends only is read to its end', async () => {
  const { client } = connect(async (req, res) => res.end(String((await bodyOf(req)).length)))
  const answers = text(client)
  client.end(chunks('/', ...Array.from({ length: 200 }, () => '\r\n\r\n'.repeat(20))))
  assert.match(await answers, /16000/)
})

test('of chunks of one byte few are parsed in one turn, and the body arrives whole', async () => {
  // The first bytes may be parsed in the turn that read them, and as many in the one that follows it at once.
  const TURN_CHUNKS = 12_000
  const body = 'x'.repeat(40_000)
  const wire = Buffer.from(chunks('/', ...body))
  for (const isSerial of [true, false]) {
    let [inTurn, most, received] = [0, 0, 0]
    const ended = Promise.withResolvers<void>()
    const { client, socket } = connect((req, res) => {
      req.on('data', (chunk: Buffer) => {
        if (inTurn === 0) setImmediate(() => (inTurn = 0))
        inTurn += 1
        most = Math.max(most, inTurn)
        received += chunk.length
      })
      req.on('end', () => {
        res.end()
        ended.resolve()
      })
    }, isSerial)
    // All at once, as if the socket had read it in one go.
    socket.emit('data', wire)
    await ended.promise
    client.destroy()
    assert.equal(received, body.length)
    if (isSerial) assert.ok(most <= TURN_CHUNKS, `${most} chunks in one turn`)
    else assert.ok(most > TURN_CHUNKS, `control: Node parses all of them, ${most}`)
  }
})

test('bodies that arrive on many connections at once are parsed a few in a turn; without the limit, all in one', async () => {
  const [CONNECTIONS, PER_TURN] = [40, 8]
  const mostInOneTurn = async (maxPerTurn: number) => {
    const turns = new TurnQueue({ maxPerTurn, maxTurnMs: Number.POSITIVE_INFINITY })
    const part = Buffer.alloc(20_000, 'x')
    let [inTurn, most, received] = [0, 0, 0]
    const arrived = Promise.withResolvers<void>()
    const run: Run = (req) => {
      req.on('data', (chunk: Buffer) => {
        if (inTurn === 0) setImmediate(() => (inTurn = 0))
        inTurn += 1
        most = Math.max(most, inTurn)
        received += chunk.length
        if (received === CONNECTIONS * part.length) arrived.resolve()
      })
    }
    const connections = Array.from({ length: CONNECTIONS }, () => connect(run, true, turns))
    const head = Buffer.from('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 30000\r\n\r\n')
    for (const { socket } of connections) socket.emit('data', head)
    await settled()
    for (const { socket } of connections) socket.emit('data', part)
    await arrived.promise
    for (const { client, socket } of connections) {
      client.destroy()
      socket.destroy()
    }
    return most
  }
  // Some in the turn that read them, and as many in the one that follows it at once.
  const most = await mostInOneTurn(PER_TURN)
  assert.ok(most <= 2 * PER_TURN, `${most} in one turn`)
  assert.equal(await mostInOneTurn(Number.POSITIVE_INFINITY), CONNECTIONS)
})
