// Clients that are slow, that leave in the middle, and that pack a lot into little: each is answered or forgotten, nothing
// of it is stored, and nothing of it stays behind.

import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { gunzipSync, gzipSync } from 'node:zlib'
import { startTestApp, type TestApp } from '../support/app.ts'
import { RawConnection } from '../support/client.ts'
import { drivers } from '../support/drivers.ts'
import { until, within } from '../support/until.ts'
import { type HostileCase, refusal, wireOf } from './hostile-case.ts'
import { type Tokens, tokensOf } from './senders.ts'
import { fortressOf, Siege } from './siege.ts'
import { violations } from './verdict.ts'
import { play } from './wire.ts'

const TIMEOUT = { timeout: 300_000 }
const sqlite = drivers[0]!

interface Beginning {
  readonly name: string
  readonly bytes: Buffer
}

/** Requests of every address that reads a body, each cut off at some place. */
function beginnings({ sender, processor }: Tokens): Beginning[] {
  const body = Buffer.from('{"source_ref":"half"}')
  return [
    ['/v1/inbox/events', sender] as const,
    ['/api/inbox', sender] as const,
    ['/v1/inbox/claims', processor] as const,
    ['/v1/inbox/subscriptions', processor] as const,
  ].flatMap(([path, token]) => {
    const head = ['Host: intray.test', `Authorization: Bearer ${token}`, 'Content-Type: application/json']
    const line = `POST ${path} HTTP/1.1`
    const sized = wireOf(line, [...head, `Content-Length: ${body.length}`], body)
    const chunks = wireOf(line, [...head, 'Transfer-Encoding: chunked'], Buffer.from('5\r\n{"a":\r\n'))
    return [
      { name: `${path}: half a request line`, bytes: sized.subarray(0, 8) },
      { name: `${path}: half a header`, bytes: sized.subarray(0, 60) },
      { name: `${path}: no end of headers`, bytes: sized.subarray(0, sized.indexOf('\r\n\r\n') + 2) },
      { name: `${path}: no body`, bytes: sized.subarray(0, -body.length) },
      { name: `${path}: all but a byte`, bytes: sized.subarray(0, -1) },
      { name: `${path}: no last chunk`, bytes: chunks },
      { name: `${path}: half a chunk`, bytes: chunks.subarray(0, -4) },
      { name: `${path}: half a trailer`, bytes: Buffer.concat([chunks, Buffer.from('0\r\nX: y')]) },
    ]
  })
}

async function stored(app: TestApp, tokens: Tokens): Promise<unknown[]> {
  await app.indexed()
  const answer = await app.send({
    path: '/v1/inbox/events?limit=200',
    headers: { Authorization: `Bearer ${tokens.processor}` },
  })
  return answer.json!.events as unknown[]
}

test('408: whoever stops in the middle, wherever that is; nothing is stored', TIMEOUT, async (t) => {
  const app = await startTestApp(t, sqlite, { settings: { headersTimeout: '100ms', requestTimeout: '200ms' } })
  const tokens = await tokensOf(app)
  const cases = beginnings(tokens).map(
    ({ name, bytes }): HostileCase => ({
      name,
      pieces: [bytes],
      answers: [refusal(408, 'request_timeout')],
      stored: [],
      connection: 'closed',
    }),
  )
  const found = await Promise.all(cases.map(async (item) => violations(item, await play(app.port, item))))
  assert.deepEqual(found.flat(), [])
  assert.deepEqual(await stored(app, tokens), [])
})

test('408: headers and bodies that come a byte at a time and never end', TIMEOUT, async (t) => {
  const app = await startTestApp(t, sqlite, { settings: { headersTimeout: '100ms', requestTimeout: '200ms' } })
  const tokens = await tokensOf(app)
  const head = `POST /api/inbox HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${tokens.sender}\r\nContent-Type: application/json\r\n`
  const drips = [
    [head, 'X-Drip: y\r\n'],
    [`${head}Content-Length: 1000000\r\n\r\n`, ' '],
    [`${head}Transfer-Encoding: chunked\r\n\r\n`, '1\r\n \r\n'],
  ] as const
  const answers = await Promise.all(
    drips.map(async ([beginning, drop]) => {
      const connection = await RawConnection.open(app.port)
      t.after(() => connection.destroy())
      connection.write(beginning)
      const dripping = setInterval(() => connection.write(drop), 5)
      const [answer] = await within('an answer', connection.answers(1))
      clearInterval(dripping)
      return answer?.status
    }),
  )
  assert.deepEqual(answers, [408, 408, 408])
  assert.deepEqual(await stored(app, tokens), [])
})

test(
  'HEAD and OPTIONS are answered while their body is still coming, not when nobody waits for it any more',
  TIMEOUT,
  async (t) => {
    const app = await startTestApp(t, sqlite)
    const open = async (method: string) => {
      const connection = await RawConnection.open(app.port)
      t.after(() => connection.destroy())
      connection.write(`${method} /api/inbox HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n \r\n`)
      return connection
    }
    const isAnswered = (text: string) => text.includes('\r\n\r\n')
    for (const method of ['HEAD', 'OPTIONS']) {
      // Asked again where the machine stood still for as long as a body is waited for: then both come at once.
      await until(`${method} is answered before a body is given up`, async () => {
        // Refused before: it is closed first, when its body is given up.
        const earlier = await open('POST')
        await within('the refusal', earlier.until(isAnswered))
        const later = await open(method)
        const first = await Promise.race([
          later.until(isAnswered).then(() => 'the answer'),
          earlier.closed.then(() => 'the end of the wait'),
        ])
        return first === 'the answer'
      })
    }
  },
)

test('whoever leaves in the middle leaves nothing behind: no message, no connection, no error', TIMEOUT, async (t) => {
  // Fewer places than clients: a place that is not given back would be missed.
  const app = await startTestApp(t, sqlite, {
    settings: { maxConnections: '12', maxStreams: '2', tenantShare: '100', queueMaxEvents: '4' },
  })
  const tokens = await tokensOf(app)
  const isFree = () =>
    app.send({ path: '/livez' }).then(
      ({ status }) => status === 200,
      () => false,
    )
  let left = 0
  for (const leave of ['destroy', 'resetAndDestroy', 'end'] as const) {
    for (const { bytes } of beginnings(tokens)) {
      await leaveAfter(app, bytes, leave)
      left += 1
    }
    const stream = wireOf('GET /v1/inbox/stream HTTP/1.1', ['Host: a', `Authorization: Bearer ${tokens.processor}`])
    for (let count = 0; count < 4; count += 1) {
      await leaveAfter(app, stream, leave)
      left += 1
    }
    await until('there is room for another client', isFree)
  }
  assert.ok(left > 100, `${left} clients left`)
  assert.deepEqual(await stored(app, tokens), [])
  await until('there is room for a stream', async () => {
    const connection = await RawConnection.open(app.port)
    connection.write(wireOf('GET /v1/inbox/stream HTTP/1.1', ['Host: a', `Authorization: Bearer ${tokens.processor}`]))
    const text = await within(
      'the head of an answer',
      connection.until((received) => received.includes('\r\n\r\n')),
    )
    connection.destroy()
    return text.startsWith('HTTP/1.1 200')
  })
  for (let count = 0; count < 8; count += 1) {
    await until('a message is taken', async () => (await app.post('{}').catch(() => null))?.status === 200)
  }
  // Who came while others still held the places was told so: that they were given back is seen above.
  assert.deepEqual(
    app.log.filter(({ level, error }) => (level === 'error' || level === 'warn') && error !== 'overloaded'),
    [],
  )
})

async function leaveAfter(app: TestApp, bytes: Buffer, leave: 'destroy' | 'resetAndDestroy' | 'end'): Promise<void> {
  // Others that have just left may still hold their places.
  await until('a connection is taken', async () => {
    const connection = await RawConnection.open(app.port)
    const isSent = await new Promise<boolean>((resolve) => connection.socket.write(bytes, (error) => resolve(!error)))
    connection.socket[leave]()
    await within('the connection is closed', connection.closed)
    return isSent
  })
}

const MEMBER_BYTES = 1_048_576
const BOMB_MEMBERS = 400

/** 400 MB of spaces in 400 kB. */
function makeBomb(): Buffer {
  return Buffer.concat(Array<Buffer>(BOMB_MEMBERS).fill(gzipSync(Buffer.alloc(MEMBER_BYTES, ' '), { level: 9 })))
}

/** By how much the most memory that was ever in use has grown, in bytes. */
async function peakGrowth(work: () => unknown): Promise<number> {
  const before = process.resourceUsage().maxRSS
  await work()
  return (process.resourceUsage().maxRSS - before) * 1024
}

test('413: a gzip bomb costs no more memory than a body may have', TIMEOUT, async (t) => {
  const app = await startTestApp(t, sqlite)
  const tokens = await tokensOf(app)
  const siege = new Siege(fortressOf(app))
  const bomb = makeBomb()
  const headers = [
    'Host: intray.test',
    `Authorization: Bearer ${tokens.sender}`,
    'Content-Type: application/json',
    'Content-Encoding: gzip',
    `Content-Length: ${bomb.length}`,
  ]
  const bombs = (count: number) =>
    Array.from(
      { length: count },
      (): HostileCase => ({
        name: 'a bomb',
        pieces: [wireOf('POST /v1/inbox/events HTTP/1.1', headers, bomb)],
        answers: [refusal(413, 'payload_too_large')],
        stored: [],
        connection: 'kept',
      }),
    )
  const whole = MEMBER_BYTES * BOMB_MEMBERS
  assert.deepEqual(await siege.play(bombs(8)), [])
  const grown = await peakGrowth(async () => assert.deepEqual(await siege.play(bombs(60)), []))
  assert.ok(grown < whole / 2, `60 bombs took ${Math.round(grown / 1e6)} MB`)
  // The control: one that goes off.
  const control = await peakGrowth(() => assert.equal(gunzipSync(bomb).length, whole))
  assert.ok(control > whole / 2, `a bomb without a limit took ${Math.round(control / 1e6)} MB`)
  t.diagnostic(
    `60 bombs of ${whole / 1e6} MB: ${Math.round(grown / 1e6)} MB; one without a limit: ${Math.round(control / 1e6)} MB`,
  )
})

test(
  'depth, 200,000 keys and texts of a megabyte are kept to the byte, indexed and shown',
  TIMEOUT,
  async (t: TestContext) => {
    for (const driver of drivers) {
      const app = await startTestApp(t, driver, { settings: { maxBodyBytes: '8388608' } })
      const tokens = await tokensOf(app)
      const named = {
        depth: `{"a":${'['.repeat(500_000)}${']'.repeat(500_000)}}`,
        'depth of objects': `${'{"message":'.repeat(200_000)}1${'}'.repeat(200_000)}`,
        '200,000 keys': `{${Array.from({ length: 200_000 }, (_, n) => `"key ${n}":${n}`).join(',')}}`,
        '200,000 times the same key': `{${'"message":{"text":"a"},'.repeat(200_000)}"a":1}`,
        'a list of 200,000': `{"meta":[${'0,'.repeat(200_000)}0]}`,
        'a text of 1 MB': `{"message":{"text":"${'\u{1f600}'.repeat(250_000)}"}}`,
        'a number of 1,000,000 digits': `{"a":${'9'.repeat(1_000_000)}}`,
        'a key of 1 MB': `{"${'k'.repeat(1_000_000)}":1}`,
        '200,000 words': `{"message":{"text":"${Array.from({ length: 200_000 }, (_, n) => n % 1000).join(' ')}"}}`,
      }
      const bodies = Object.values(named)
      const ids: number[] = []
      for (const [name, body] of Object.entries(named)) {
        const answer = await app.post(body)
        assert.equal(answer.status, 200, name)
        const id = answer.json!.id as number
        ids.push(id)
        assert.ok(Buffer.from((await app.store.events.payload(id))!).equals(Buffer.from(body)), name)
      }
      await app.indexed()
      for (const [n, id] of ids.entries()) {
        const event = (await app.store.events.find(id))!
        assert.equal((await app.store.events.indexEntry(event))?.unindexed, null)
        for (const path of [`/v1/inbox/events/${id}`, `/v1/inbox/events/${id}/payload`]) {
          // Not through the client of the other tests: it would hold every byte against the contract.
          const shown = await fetch(`${app.url}${path}`, { headers: { Authorization: `Bearer ${tokens.processor}` } })
          assert.ok((await shown.text()).includes(bodies[n]!), path)
          assert.equal(shown.status, 200)
        }
      }
    }
  },
)
