// What the front does with a client that sends and does not read: the API tests have all else, over real sockets.

import assert from 'node:assert/strict'
import type { Socket } from 'node:net'
import { type Duplex, duplexPair } from 'node:stream'
import { test } from 'node:test'
import { Exchange } from '../../../src/http/exchange.ts'
import { Front } from '../../../src/http/front.ts'
import { ROUTES } from '../../../src/http/routes.ts'
import { createLogger } from '../../../src/runtime/log.ts'

const PATH = '/v1/inbox/events'
const REQUEST = `POST ${PATH} HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}`
const LIMIT = 1000

/** As much of a socket as the front needs, with room for a few answers. */
function socketPair(): { client: Duplex; socket: Socket } {
  const [client, side] = duplexPair({ highWaterMark: LIMIT })
  const socket = Object.assign(side, { destroySoon: () => side.end() }) as unknown as Socket
  return { client, socket }
}

test('a client that does not read its answers is left to node, which stops reading, before they pile up', async () => {
  const { client, socket } = socketPair()
  const given = Promise.withResolvers<Socket>()
  const lifecycle = { stopping: false }
  let answered = 0
  const front = new Front({
    routes: new Map([[PATH, ROUTES.find(({ path }) => path === PATH)!]]),
    lane: async (call) => call.answer({ status: 200, headers: {}, body: '{"ok":true}' }),
    maxHeaderBytes: 4096,
    keepAliveTimeout: 1000,
    lifecycle,
    logger: createLogger('silent', () => {}),
    toNode: given.resolve,
    onBroken: (error) => given.reject(error),
    begin: () => new Exchange(lifecycle),
    end: () => {
      answered += 1
      setImmediate(send)
    },
  })
  const send = () => client.write(REQUEST)
  front.take(socket)
  send()
  assert.equal(await given.promise, socket)
  assert.ok(answered > 1, `${answered} answers`)
  assert.ok(socket.writableLength < 3 * LIMIT, `${socket.writableLength} bytes`)
})
