// Where plain requests and others meet on one connection: all are answered in their order, and each is stored once.

import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { startTestApp, type TestApp } from '../support/app.ts'
import { RawConnection } from '../support/client.ts'
import { drivers } from '../support/drivers.ts'
import { idOf, rowsStoredDuring } from '../support/intake.ts'
import { chunked, postHeaders, rawPost, rawRequest } from '../support/raw.ts'
import { until } from '../support/until.ts'

const PATH = '/v1/inbox/events'
const [sqlite] = drivers

const body = (n: number) => JSON.stringify({ source_ref: `m${n}`, n })

async function connect(t: TestContext, app: TestApp): Promise<RawConnection> {
  const connection = await RawConnection.open(app.port)
  connection.socket.setNoDelay(true)
  t.after(() => connection.destroy())
  return connection
}

/** Lets the service see what was written before it sees what is written next, as a rule: it has to be right in any case. */
const pause = async () => {
  for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve))
}

describe('plain requests and others on one connection', () => {
  const ping = (app: TestApp) => `GET /api/ping HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${app.token}\r\n\r\n`
  const inChunks = (app: TestApp, n: number) =>
    rawRequest({
      target: PATH,
      headers: [...postHeaders(app.token), 'Transfer-Encoding: chunked'],
      body: chunked(body(n), 5),
      sized: false,
    })

  test('one after the other: each is answered', async (t) => {
    const app = await startTestApp(t, sqlite!)
    const connection = await connect(t, app)
    const requests = [rawPost(PATH, app.token, body(0)), rawPost(PATH, app.token, body(1)), ping(app)]
    requests.push(inChunks(app, 2), rawPost(PATH, app.token, body(3)))
    const rows = await rowsStoredDuring(app, async () => {
      for (const [index, request] of requests.entries()) {
        connection.write(request)
        const answers = await connection.answers(index + 1)
        assert.equal(answers[index]?.status, 200)
      }
    })
    assert.deepEqual(
      rows.map(({ sourceRef }) => sourceRef),
      ['m0', 'm1', 'm2', 'm3'],
    )
  })

  for (const [how, between] of [
    ['in one piece', async () => {}],
    ['in pieces', pause],
  ] as const) {
    test(`sent ahead of their answers, ${how}: answered in order`, async (t) => {
      const app = await startTestApp(t, sqlite!)
      const connection = await connect(t, app)
      const rows = await rowsStoredDuring(app, async () => {
        for (let n = 0; n < 6; n += 1) {
          connection.write(n === 4 ? inChunks(app, n) : rawPost(PATH, app.token, body(n)))
          await between()
        }
        const answers = await connection.answers(6)
        assert.deepEqual(
          answers.map(({ status }) => status),
          Array(6).fill(200),
        )
        const ids = answers.map(idOf)
        assert.deepEqual(
          ids,
          ids.toSorted((a, b) => a - b),
        )
      })
      assert.deepEqual(
        rows.map(({ sourceRef }) => sourceRef),
        ['m0', 'm1', 'm2', 'm3', 'm4', 'm5'],
      )
    })
  }

  test('a head that was read before says nothing about another one: tokens, keys and agents are of each request', async (t) => {
    const app = await startTestApp(t, sqlite!)
    const connection = await connect(t, app)
    const post = (token: string, key: string, agent: string, text: string) =>
      rawRequest({
        target: PATH,
        headers: [...postHeaders(token), `Idempotency-Key: "${key}"`, `User-Agent: ${agent}`],
        body: JSON.stringify({ text }),
      })
    const wrong = `${app.token.slice(0, -1)}${app.token.endsWith('0') ? '1' : '0'}`
    const requests: [token: string, key: string, agent: string, text: string][] = [
      [app.token, 'one', 'first', '1'],
      [app.token, 'one', 'first', '2'],
      [app.token, 'one', 'first', '3'],
      [app.token, 'two', 'other', '4'],
      [app.token, 'two', 'other', 'another length'],
      [wrong, 'two', 'other', '5'],
      [app.token, 'two', 'other', '6'],
    ]
    const rows = await rowsStoredDuring(app, async () => {
      for (const [index, request] of requests.entries()) {
        connection.write(post(...request))
        const answers = await connection.answers(index + 1)
        assert.equal(answers[index]?.status, request[0] === wrong ? 401 : 200)
      }
    })
    assert.deepEqual(
      rows.map(({ idempotencyKey, userAgent }) => [idempotencyKey, userAgent]),
      [...Array(3).fill(['one', 'first']), ...Array(3).fill(['two', 'other'])],
    )
  })

  test('a proxy sends for two tenants over one connection: each message is its own, and a token that is disabled is refused there', async (t) => {
    const app = await startTestApp(t, sqlite!)
    const other = await app.createToken({ accountId: 8, companyId: 43 })
    const connection = await connect(t, app)
    const senders = [app.token, app.token, app.token, other, other, app.token, other, other, other]
    let answered = 0
    const post = async (token: string, text: string) => {
      connection.write(rawRequest({ target: PATH, headers: postHeaders(token), body: JSON.stringify({ text }) }))
      answered += 1
      return (await connection.answers(answered)).at(-1)!
    }
    const rows = await rowsStoredDuring(app, async () => {
      for (const [index, token] of senders.entries()) {
        assert.equal((await post(token, 'x'.repeat(1 + (index % 4)))).status, 200)
      }
    })
    assert.deepEqual(
      rows.map(({ accountId, companyId }) => `${accountId}/${companyId}`),
      senders.map((token) => (token === other ? '8/43' : '7/42')),
    )
    await app.store.tokens.setActive(other.split('_')[1]!, false, Date.now())
    await until('the token is refused', async () => (await post(other, 'x')).status === 401)
    assert.equal((await post(app.token, 'x')).status, 200)
  })

  test('in two pieces, cut anywhere: stored once, and the connection goes on', async (t) => {
    const app = await startTestApp(t, sqlite!)
    const connection = await connect(t, app)
    const length = rawPost(PATH, app.token, body(0)).length
    let n = 0
    const rows = await rowsStoredDuring(app, async () => {
      for (let cut = 1; cut < length; cut += 17) {
        const request = rawPost(PATH, app.token, body(n))
        connection.write(request.subarray(0, cut))
        await pause()
        connection.write(request.subarray(cut))
        n += 1
        assert.equal((await connection.answers(n)).at(-1)?.status, 200)
      }
    })
    assert.deepEqual(
      rows.map(({ sourceRef }) => sourceRef),
      Array.from({ length: n }, (_, index) => `m${index}`),
    )
  })

  test('a client that closes its side at once is answered, and the connection ends', async (t) => {
    const app = await startTestApp(t, sqlite!)
    for (const extra of [[], ['Connection: close']]) {
      const connection = await connect(t, app)
      connection.socket.end(rawRequest({ target: PATH, headers: [...postHeaders(app.token), ...extra], body: body(1) }))
      assert.equal((await connection.answers(1))[0]?.status, 200)
      await connection.closed
    }
  })

  test('Connection: close is answered with the same, and what is sent behind it is not looked at', async (t) => {
    const app = await startTestApp(t, sqlite!)
    const connection = await connect(t, app)
    const headers = [...postHeaders(app.token), 'Connection: close']
    const rows = await rowsStoredDuring(app, async () => {
      connection.write(rawRequest({ target: PATH, headers, body: body(1) }))
      await pause()
      connection.write(rawPost(PATH, app.token, body(2)))
      await connection.closed
    })
    const answers = await connection.answers(1)
    assert.deepEqual(
      answers.map(({ status, headers: { connection: wish } }) => [status, wish]),
      [[200, 'close']],
    )
    assert.deepEqual(
      rows.map(({ sourceRef }) => sourceRef),
      ['m1'],
    )
  })

  test('what is sent ahead of an answer and followed by the end of the stream is answered too', async (t) => {
    const app = await startTestApp(t, sqlite!)
    for (const behind of [
      [rawPost(PATH, app.token, body(1)), rawPost(PATH, app.token, body(2))],
      [Buffer.from(ping(app)), inChunks(app, 3)],
    ]) {
      const connection = await connect(t, app)
      connection.write(rawPost(PATH, app.token, body(0)))
      await pause()
      connection.socket.end(Buffer.concat(behind))
      await connection.closed
      assert.deepEqual(
        (await connection.answers(3)).map(({ status }) => status),
        [200, 200, 200],
      )
    }
  })

  test('a client that stops in the middle is timed by node: 408', async (t) => {
    const settings = { headersTimeout: '300ms', requestTimeout: '300ms' }
    const app = await startTestApp(t, sqlite!, { settings })
    for (const share of [0.3, 0.95]) {
      const request = rawPost(PATH, app.token, body(1))
      const connection = await connect(t, app)
      connection.write(rawPost(PATH, app.token, body(2)))
      await connection.answers(1)
      connection.write(request.subarray(0, Math.floor(share * request.length)))
      const [, late] = await connection.answers(2)
      assert.equal(late?.status, 408)
      await connection.closed
    }
  })
})
