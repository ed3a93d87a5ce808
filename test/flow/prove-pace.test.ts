// The client of the proofs of overload tells good from late from refused from nothing.

import assert from 'node:assert/strict'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type TestContext, test } from 'node:test'
import { closedLoop, openLoop } from '../../prove/pace.ts'
import { until } from '../support/until.ts'

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
  return { port, token: 'x', seconds: 1, patienceMs: 60_000 }
}

const stored = (res: ServerResponse) => res.end('{"ok":true,"id":1}')
const refuse = (res: ServerResponse) => res.writeHead(503, { 'Retry-After': '1' }).end('{"ok":false,"stored":"no"}')

test('an open loop offers what it was told to, whatever is answered', async (t) => {
  const pace = await serve(t, (_req, res, number) => (number % 2 ? refuse(res) : stored(res)))
  const figures = await openLoop(pace, 200, 300)
  assert.deepEqual([figures.offered, figures.sent], [200, 200])
  assert.deepEqual([figures.acknowledged, figures.good, figures.refused], [100, 100, 100])
  assert.deepEqual([figures.other, figures.unanswered], [0, 0])
})

test('a 503 that does not say when to come back, or that nothing was stored, counts as something else', async (t) => {
  const pace = await serve(t, (_req, res, number) => {
    if (number % 2) res.writeHead(503).end('{"stored":"no"}')
    else res.writeHead(503, { 'Retry-After': '1' }).end('{"stored":"unknown"}')
  })
  const figures = await openLoop(pace, 20, 10)
  assert.deepEqual([figures.refused, figures.other], [0, 20])
})

test('what comes after the patience of its sender is acknowledged, and no good', async (t) => {
  const pace = await serve(t, (_req, res) => setTimeout(() => stored(res), 50))
  const figures = await openLoop({ ...pace, patienceMs: 10 }, 20, 30)
  assert.deepEqual([figures.acknowledged, figures.good, figures.goodPerSecond], [20, 0, 0])
  assert.ok(figures.p50Ms >= 49)
})

test('a connection that is cut off is no answer', async (t) => {
  const pace = await serve(t, (req) => req.socket.destroy())
  assert.equal((await openLoop(pace, 20, 30)).unanswered, 20)
})

test('with all connections waiting, what is due is offered and not sent', async (t) => {
  const waiting: ServerResponse[] = []
  const pace = await serve(t, (_req, res, number) => {
    waiting.push(res)
    if (number === 2) setTimeout(() => waiting.forEach(stored), 1500)
  })
  const figures = await openLoop(pace, 30, 3)
  assert.deepEqual([figures.offered, figures.sent, figures.acknowledged], [30, 3, 3])
})

test('a closed loop sends again as soon as it is answered', async (t) => {
  let most = 0
  let open = 0
  const pace = await serve(t, (_req, res) => {
    most = Math.max(most, ++open)
    setImmediate(() => {
      open -= 1
      stored(res)
    })
  })
  // A loop lasts a second, in which this process may stand still.
  const figures = await until('a connection sent more than once', async () => {
    const one = await closedLoop(pace, 4)
    return one.acknowledged > 4 && one
  })
  assert.equal(figures.acknowledged, figures.sent)
  assert.ok(most <= 4)
})
