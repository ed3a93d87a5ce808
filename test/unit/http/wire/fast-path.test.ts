// The fast path with clients that do not read or do not send. The API tests cover the rest over real sockets.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { type Duplex, duplexPair } from 'node:stream'
import { test } from 'node:test'
import { Exchange } from '../../../../src/http/exchange.ts'
import { ROUTES } from '../../../../src/http/routes.ts'
import { FastPath, type FastPathOptions } from '../../../../src/http/wire/fast-path.ts'
import { createLogger } from '../../../../src/runtime/log.ts'
import { TurnQueue } from '../../../../src/runtime/turn-queue.ts'

const PATH = '/v1/inbox/events'
const REQUEST = `POST ${PATH} HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}`
const LIMIT = 1000

/** The parts of a socket that the fast path needs, with room for a few answers. */
function socketPair(): { client: Duplex; socket: Socket } {
  const [client, side] = duplexPair({ highWaterMark: LIMIT })
  const socket = Object.assign(side, { destroySoon: () => side.end() }) as unknown as Socket
  return { client, socket }
}

interface Options {
  readonly passToNode: (socket: Socket) => void
  readonly handler?: FastPathOptions['handler']
  readonly end?: () => void
  readonly maxPerTurn?: number
  readonly onClientError?: (error: Error) => void
}

const answerOk: FastPathOptions['handler'] = async (call) =>
  call.answer({ status: 200, headers: {}, body: '{"ok":true}' })

function newFastPath({ passToNode, handler = answerOk, end = () => {}, maxPerTurn, onClientError }: Options): FastPath {
  const lifecycle = { stopping: false }
  const turns = new TurnQueue({
    ...(maxPerTurn === undefined ? {} : { maxPerTurn }),
    maxTurnMs: Number.POSITIVE_INFINITY,
  })
  return new FastPath({
    routes: new Map([[PATH, ROUTES.find(({ path }) => path === PATH)!]]),
    handler,
    maxHeaderBytes: 4096,
    maxHeaders: 100,
    keepAliveTimeout: 1000,
    lifecycle,
    turnsOf: () => turns.of('one'),
    logger: createLogger('silent', () => {}),
    passToNode,
    onClientError: onClientError ?? ((error) => assert.fail(error)),
    begin: () => new Exchange(lifecycle),
    end,
  })
}

test('a client that does not read its answers goes to Node, which stops reading, before they accumulate', async () => {
  const { client, socket } = socketPair()
  const given = Promise.withResolvers<Socket>()
  let answered = 0
  const end = () => {
    answered += 1
    setImmediate(send)
  }
  const fastPath = newFastPath({ passToNode: given.resolve, end })
  const send = () => client.write(REQUEST)
  fastPath.accept(socket)
  send()
  assert.equal(await given.promise, socket)
  assert.ok(answered > 1, `${answered} answers`)
  assert.ok(socket.writableLength < 3 * LIMIT, `${socket.writableLength} bytes`)
})

/** Waits until written bytes were read and answered: streams take a few turns. */
const settled = async () => {
  for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve))
}

test('a connection without a complete request goes to Node after half a second', async (t) => {
  for (const said of ['', REQUEST.slice(0, 30)]) {
    t.mock.timers.enable({ apis: ['setInterval'] })
    const { client, socket } = socketPair()
    const given: Socket[] = []
    newFastPath({ passToNode: (one) => given.push(one) }).accept(socket)
    if (said !== '') client.write(said)
    await settled()
    t.mock.timers.tick(500)
    assert.deepEqual(given, [])
    t.mock.timers.tick(125)
    assert.deepEqual(given, [socket])
    assert.equal(socket.destroyed, false)
    t.mock.timers.reset()
  }
})

test('an idle connection closes after the keep-alive timeout, which each answer restarts', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const { client, socket } = socketPair()
  client.resume()
  newFastPath({ passToNode: () => assert.fail('given to node') }).accept(socket)
  for (let request = 0; request < 3; request += 1) {
    client.write(REQUEST)
    await settled()
    // 1 s, and a second of grace.
    t.mock.timers.tick(2000)
    assert.equal(socket.destroyed, false)
  }
  t.mock.timers.tick(125)
  assert.equal(socket.destroyed, true)
})

test('a busy connection is neither passed to Node nor closed, for however long it takes', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const { client, socket } = socketPair()
  client.resume()
  const gate = Promise.withResolvers<void>()
  let answered = 0
  const handler: FastPathOptions['handler'] = async (call) => {
    await gate.promise
    return answerOk(call)
  }
  newFastPath({ passToNode: () => assert.fail('given to node'), handler, end: () => (answered += 1) }).accept(socket)
  client.write(REQUEST)
  await settled()
  t.mock.timers.tick(60_000)
  assert.equal(socket.destroyed, false)
  gate.resolve()
  await settled()
  assert.equal(answered, 1)
  t.mock.timers.tick(2000)
  assert.equal(socket.destroyed, false)
})

test('the interval stops without connections and starts with the next', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const fastPath = newFastPath({ passToNode: () => {} })
  const ticksOf = async (socket: Socket) => {
    fastPath.accept(socket)
    const before = fastPath.ticks
    t.mock.timers.tick(250)
    socket.destroy()
    await settled()
    t.mock.timers.tick(10_000)
    return fastPath.ticks - before
  }
  assert.equal(await ticksOf(socketPair().socket), 3)
  assert.equal(await ticksOf(socketPair().socket), 3)
})

test('many requests that arrive at once are handled a few in a turn; without the limit, all in one', async () => {
  const mostInOneTurn = async (maxPerTurn: number) => {
    let [turn, isOver] = [0, false]
    const perTurn = new Map<number, number>()
    const count = () => {
      turn += 1
      if (!isOver) setImmediate(count)
    }
    count()
    const handler: FastPathOptions['handler'] = (call) => {
      perTurn.set(turn, (perTurn.get(turn) ?? 0) + 1)
      return answerOk(call)
    }
    const fastPath = newFastPath({ passToNode: () => assert.fail('given to node'), handler, maxPerTurn })
    const clients = Array.from({ length: 100 }, () => {
      const { client, socket } = socketPair()
      fastPath.accept(socket)
      return client
    })
    const answers = clients.map((client) => once(client, 'data'))
    for (const client of clients) client.write(REQUEST)
    await Promise.all(answers)
    isOver = true
    for (const client of clients) client.destroy()
    return Math.max(...perTurn.values())
  }
  assert.ok((await mostInOneTurn(8)) <= 8)
  assert.equal(await mostInOneTurn(Number.POSITIVE_INFINITY), 100)
})

test('a request that waits for its turn: what comes behind it keeps its order, and a client that left is forgotten', async () => {
  const handledWith = async (behind: string) => {
    let [handled, broken] = [0, 0]
    const fastPath = newFastPath({
      passToNode: () => assert.fail('given to node'),
      handler: (call) => {
        handled += 1
        return answerOk(call)
      },
      maxPerTurn: 1,
      onClientError: () => {
        broken += 1
      },
    })
    const [first, second, third] = [socketPair(), socketPair(), socketPair()]
    for (const { client, socket } of [first, second, third]) {
      fastPath.accept(socket)
      client.on('error', () => {}).resume()
      client.write(REQUEST)
    }
    // The first takes the turn. The second sends more and ends its side, the third leaves, while they wait.
    if (behind !== '') second.client.write(behind)
    second.client.end()
    await new Promise((resolve) => process.nextTick(resolve))
    third.socket.destroy()
    await settled()
    return { handled, broken }
  }
  assert.deepEqual(await handledWith(''), { handled: 2, broken: 0 })
  assert.deepEqual(await handledWith(REQUEST), { handled: 3, broken: 0 })
  assert.deepEqual(await handledWith(REQUEST.slice(0, 40)), { handled: 2, broken: 1 })
})
