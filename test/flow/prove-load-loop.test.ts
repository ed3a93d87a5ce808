// The client of the proofs of overload tells good from late from refused from nothing.

import assert from 'node:assert/strict'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type TestContext, test } from 'node:test'
import { closedLoop, openLoop } from '../../prove/load-loop.ts'

type Answer = (req: IncomingMessage, res: ServerResponse, number: number) => void

async function serve(t: TestContext, answer: Answer) {
  let number = 0
  const server = createServer((req, res) => {
    req.resume().on('end', () => answer(req, res, number++))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return { port, token: 'x', seconds: 1, senderTimeoutMs: 60_000 }
}

const stored = (res: ServerResponse) => res.end('{"ok":true,"id":1}')
const refuse = (res: ServerResponse) => res.writeHead(503, { 'Retry-After': '1' }).end('{"ok":false,"stored":"no"}')

test('an open loop offers what it was told to, whatever is answered', async (t) => {
  const loop = await serve(t, (_req, res, number) => (number % 2 ? refuse(res) : stored(res)))
  const result = await openLoop(loop, 200, 300)
  assert.deepEqual([result.offered, result.sent], [200, 200])
  assert.deepEqual([result.acknowledged, result.good, result.refused], [100, 100, 100])
  assert.deepEqual([result.other, result.unanswered], [0, 0])
})

test('a 503 that does not say when to come back, or that nothing was stored, counts as something else', async (t) => {
  const loop = await serve(t, (_req, res, number) => {
    if (number % 2) res.writeHead(503).end('{"stored":"no"}')
    else res.writeHead(503, { 'Retry-After': '1' }).end('{"stored":"unknown"}')
  })
  const result = await openLoop(loop, 20, 10)
  assert.deepEqual([result.refused, result.other], [0, 20])
})

test('an answer after the timeout of its sender counts as acknowledged, not as good', async (t) => {
  const loop = await serve(t, (_req, res) => setTimeout(() => stored(res), 50))
  const result = await openLoop({ ...loop, senderTimeoutMs: 10 }, 20, 30)
  assert.deepEqual([result.acknowledged, result.good, result.goodPerSecond], [20, 0, 0])
  assert.ok(result.p50Ms >= 49)
})

test('a connection that is cut off is no answer', async (t) => {
  const loop = await serve(t, (req) => req.socket.destroy())
  assert.equal((await openLoop(loop, 20, 30)).unanswered, 20)
})

test('with all connections waiting, what is due is offered and not sent', async (t) => {
  const waiting: ServerResponse[] = []
  const loop = await serve(t, (_req, res, number) => {
    waiting.push(res)
    if (number === 2) setTimeout(() => waiting.forEach(stored), 1500)
  })
  const result = await openLoop(loop, 30, 3)
  assert.deepEqual([result.offered, result.sent, result.acknowledged], [30, 3, 3])
})

test('a closed loop sends again as soon as it is answered', async (t) => {
  let most = 0
  let open = 0
  const loop = await serve(t, (_req, res) => {
    most = Math.max(most, ++open)
    setImmediate(() => {
      open -= 1
      stored(res)
    })
  })
  const result = await closedLoop(loop, 4)
  assert.ok(result.acknowledged > 4)
  assert.equal(result.acknowledged, result.sent)
  assert.ok(most <= 4)
})
