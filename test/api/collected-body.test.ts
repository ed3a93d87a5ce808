// A body that is taken from the parser: node has to believe that the stream was read to its end.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { test } from 'node:test'
import { collectBody } from '../../src/http/wire/body.ts'

interface Internals {
  readonly _dumped: boolean
  readonly socket: { readonly parser: { readonly incoming: unknown } }
}

/** What node still does with a request, once its answer is out. */
async function afterAnswer(collect: (req: IncomingMessage) => Promise<unknown>) {
  const requests: IncomingMessage[] = []
  const server = createServer(async (req, res) => {
    requests.push(req)
    await collect(req)
    res.end('ok')
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
  socket.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}')
  await once(socket, 'data')
  const [req] = requests as unknown as [IncomingMessage & Internals]
  const left = {
    isDumped: req._dumped,
    isHeld: req.socket.parser.incoming !== null,
    hasEnded: req.readableEnded,
    listensForClose: req.listenerCount('close'),
  }
  socket.destroy()
  server.close()
  return left
}

test('after the answer node has let go of a request whose body was collected', async () => {
  const left = await afterAnswer((req) => collectBody(req, 100))
  assert.deepEqual(left, { isDumped: false, isHeld: false, hasEnded: true, listensForClose: 0 })
})

test('the control: a request whose body nobody took is read to its end by node', async () => {
  const { isDumped } = await afterAnswer(async () => {})
  assert.equal(isDumped, true)
})
