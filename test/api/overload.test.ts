// What is given up when there is too much to do, and in which order.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import type { Store } from '../../src/store/contract/store.ts'
import { type TestApp, startTestApp } from '../support/app.ts'
import { RawConnection } from '../support/client.ts'
import { drivers } from '../support/drivers.ts'
import { scrape } from '../support/metrics.ts'
import { until, within } from '../support/until.ts'

const [sqlite] = drivers
const bearer = (token: string) => ({ Authorization: `Bearer ${token}` })

function command(app: TestApp, token: string, path: string, body: object) {
  const headers = { ...bearer(token), 'Content-Type': 'application/json' }
  return app.send({ method: 'POST', path: `/v1/inbox/${path}`, headers, body: JSON.stringify(body) })
}

function rawClaim(token: string, waitS: number): string {
  const body = JSON.stringify({ wait_s: waitS })
  return `POST /v1/inbox/claims HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`
}

function rawStream(token: string): string {
  return `GET /v1/inbox/stream HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n\r\n`
}

/** How a stream is answered; it is closed at once. */
async function streamStatus(app: TestApp, token: string): Promise<number> {
  const connection = await RawConnection.open(app.port)
  connection.write(rawStream(token))
  const [, status] = await until('it is answered', () => /^HTTP\/1\.1 (\d+) /.exec(connection.text))
  connection.destroy()
  return Number(status)
}

/** A store whose commits wait until they are let go. */
function holding() {
  const gate = Promise.withResolvers<void>()
  const wrapStore = (store: Store): Store => ({
    ...store,
    journal: {
      append: async (items) => {
        await gate.promise
        return store.journal.append(items)
      },
    },
  })
  return { wrapStore, release: gate.resolve }
}

test('while the intake is pressed, reads and claims are answered 503; messages, acks and health go on', async (t) => {
  const held = holding()
  const app = await startTestApp(t, sqlite!, { settings: { queueMaxEvents: '4' }, wrapStore: held.wrapStore })
  const processor = await app.createToken({ scope: 'processor' })
  const list = () => app.send({ path: '/v1/inbox/events', headers: bearer(processor) })
  const lease = { id: 1, lease_id: '01a1dee5-bd1b-7578-a15a-bf8cab1f6b66' }
  const posts = [app.post({ n: 1 }), app.post({ n: 2 })]
  assert.equal((await list()).status, 200, 'half full')
  posts.push(app.post({ n: 3 }))
  let shed = await list()
  await until('three wait', async () => (shed = await list()).status === 503)
  assert.deepEqual([shed.json?.error, shed.json?.stored, shed.headers['retry-after']], ['overloaded', 'no', '1'])
  assert.equal((await command(app, processor, 'claims', {})).status, 503)
  assert.equal((await app.send({ path: '/v1/inbox/stream', headers: bearer(processor) })).status, 503)
  assert.equal((await command(app, processor, 'claims/ack', lease)).status, 409, 'an ack is carried out')
  assert.equal((await app.send({ path: '/api/ping', headers: bearer(app.token) })).status, 200)
  assert.equal((await app.send({ path: '/readyz' })).status, 200)
  posts.push(app.post({ n: 4 }))
  held.release()
  assert.deepEqual(
    (await Promise.all(posts)).map(({ status }) => status),
    [200, 200, 200, 200],
  )
  assert.equal((await list()).status, 200, 'and back')
})

test('only so many reads are under way at once, of a tenant and in all; one more is answered 503, and none when they are done', async (t) => {
  const gate = Promise.withResolvers<void>()
  let reading = 0
  const wrapStore = (store: Store): Store => ({
    ...store,
    lists: {
      ...store.lists,
      refusals: async (...args) => {
        reading += 1
        await gate.promise
        return store.lists.refusals(...args)
      },
    },
  })
  const app = await startTestApp(t, sqlite!, { settings: { inboxMaxRequests: '3', tenantShare: '67' }, wrapStore })
  const headers = bearer(await app.createToken({ scope: 'processor' }))
  const other = bearer(await app.createToken({ scope: 'processor', companyId: 43 }))
  const read = (as = headers) => app.send({ path: '/v1/inbox/refusals', headers: as })
  const open = [read(), read()]
  await until('both are under way', () => reading === 2)
  assert.equal((await read()).json?.error, 'overloaded', 'its share is taken')
  open.push(read(other))
  await until('another tenant has room', () => reading === 3)
  assert.equal((await read(other)).json?.error, 'overloaded', 'all is taken')
  assert.equal((await app.post({})).status, 200, 'a message is taken')
  gate.resolve()
  for (const answer of await Promise.all(open)) assert.equal(answer.status, 200)
  assert.equal((await read()).status, 200)
})

test('streams that open at once take no places of reads, and ask the store one question after the other', async (t) => {
  const gate = Promise.withResolvers<void>()
  let [asking, most, asked] = [0, 0, 0]
  const wrapStore = (store: Store): Store => ({
    ...store,
    follow: {
      ...store.follow,
      head: async () => {
        most = Math.max(most, ++asking)
        asked += 1
        await gate.promise
        asking -= 1
        return store.follow.head()
      },
    },
  })
  const app = await startTestApp(t, sqlite!, { settings: { inboxMaxRequests: '1' }, wrapStore })
  const token = await app.createToken({ scope: 'processor' })
  const opening = Array.from({ length: 40 }, () => streamStatus(app, token))
  await until('the first asks', () => asked > 0)
  const headers = bearer(token)
  assert.equal((await app.send({ path: '/v1/inbox/refusals', headers })).status, 200, 'a read finds the one place')
  gate.resolve()
  assert.deepEqual(new Set(await Promise.all(opening)), new Set([200]))
  assert.equal(most, 1)
  assert.ok(asked < 40, `${asked} questions for 40 streams`)
})

test('only so many claims wait on a node, and those of clients that left make room', async (t) => {
  const app = await startTestApp(t, sqlite!, { settings: { inboxMaxClaims: '2', tenantShare: '100' } })
  const token = await app.createToken({ scope: 'processor' })
  const waiting = await Promise.all([RawConnection.open(app.port), RawConnection.open(app.port)])
  t.after(() => waiting.map((connection) => connection.destroy()))
  for (const connection of waiting) connection.write(rawClaim(token, 20))
  await until('two wait', async () => (await command(app, token, 'claims', {})).status === 503)
  waiting[0]!.destroy()
  await until('one left', async () => (await command(app, token, 'claims', {})).status === 200)
})

test('a tenant that takes all it can get leaves places for the others, for claims and for streams', async (t) => {
  const settings = { inboxMaxClaims: '4', maxStreams: '4', tenantShare: '50' }
  const app = await startTestApp(t, sqlite!, { settings })
  const greedy = await app.createToken({ scope: 'processor' })
  const other = await app.createToken({ scope: 'processor', companyId: 43 })
  const opened: RawConnection[] = []
  const open = async (request: string) => {
    const connection = await RawConnection.open(app.port)
    opened.push(connection)
    connection.write(request)
  }
  for (const request of [rawClaim(greedy, 20), rawStream(greedy)]) {
    for (let n = 0; n < 2; n += 1) await open(request)
  }
  await until(
    'the greedy one gets no claim more',
    async () => (await command(app, greedy, 'claims', {})).status === 503,
  )
  await until('nor a stream', async () => (await streamStatus(app, greedy)) === 503)
  assert.equal((await command(app, other, 'claims', {})).status, 200)
  assert.equal(await streamStatus(app, other), 200)
  for (const connection of opened) connection.destroy()
})

test('claims sent ahead of their answers on one connection take one place; on connections of their own, all of them', async (t) => {
  const app = await startTestApp(t, sqlite!, { settings: { inboxMaxClaims: '6', metrics: '127.0.0.1:0' } })
  const token = await app.createToken({ scope: 'processor' })
  const opened: RawConnection[] = []
  t.after(() => opened.map((connection) => connection.destroy()))
  const send = async (bytes: string) => {
    const connection = await RawConnection.open(app.port)
    opened.push(connection)
    connection.write(bytes)
    return connection
  }
  const inProgress = async () => (await scrape(app)).get('intray_inbox_claims')
  const greedy = await send(rawClaim(token, 20).repeat(50))
  await until('the first waits', async () => (await inProgress()) === 1)
  assert.equal((await command(app, token, 'claims', {})).status, 200)
  for (let n = 0; n < 2; n += 1) await send(rawClaim(token, 20))
  await until('three wait', async () => (await inProgress()) === 3)
  greedy.destroy()
  await until('its client is gone, and the others behind it with it', async () => (await inProgress()) === 2)
})

test('one address has only so many connections; behind a trusted proxy, the client that it names has so many requests', async (t) => {
  const settings = { connectionsPerAddress: '3', inboxMaxClaims: '100' }
  const opened: RawConnection[] = []
  const open = async (app: TestApp) => {
    const connection = await RawConnection.open(app.port)
    opened.push(connection)
    return connection
  }
  t.after(() => opened.map((connection) => connection.destroy()))
  const direct = await startTestApp(t, sqlite!, { settings })
  for (let n = 0; n < 3; n += 1) await open(direct)
  await within('one too many is closed', (await open(direct)).closed)
  opened[0]!.destroy()
  await until('another one is taken', async () => {
    const next = await open(direct)
    next.write('GET /livez HTTP/1.1\r\nHost: x\r\n\r\n')
    return (await next.answers(1)).length === 1
  })

  const proxied = await startTestApp(t, sqlite!, { settings: { ...settings, trustedProxies: 'loopback' } })
  const token = await proxied.createToken({ scope: 'processor' })
  const named = (request: string, address: string) =>
    request.replace('Host: x', `Host: x\r\nX-Forwarded-For: ${address}`)
  for (let n = 0; n < 3; n += 1) (await open(proxied)).write(named(rawClaim(token, 20), '203.0.113.7'))
  const ask = (address: string) =>
    proxied.send({ method: 'GET', path: '/livez', headers: { 'X-Forwarded-For': address } })
  await until('one too many is answered', async () => (await ask('203.0.113.7')).status === 503)
  assert.equal((await proxied.post('{}', { 'X-Forwarded-For': '203.0.113.7' })).status, 503)
  assert.equal((await proxied.post('{}', { 'X-Forwarded-For': '203.0.113.8' })).status, 200)
  assert.equal((await ask('203.0.113.8')).status, 200)
})

test('a tenant that sent too many bytes, as they are unpacked, waits: 429; another tenant goes on', async (t) => {
  const app = await startTestApp(t, sqlite!, { settings: { tenantBytesPerSecond: '1000' } })
  const other = bearer(await app.createToken({ scope: 'cf', companyId: 43 }))
  const body = JSON.stringify({ text: 'x'.repeat(500_000) })
  const packed = gzipSync(body)
  assert.ok(packed.length < 1000)
  assert.equal((await app.post(packed, { 'Content-Encoding': 'gzip' })).status, 200)
  const refused = await app.post('{}')
  assert.deepEqual([refused.status, refused.json?.error], [429, 'rate_limited'])
  assert.ok(Number(refused.headers['retry-after']) > 100)
  assert.equal((await app.post('{}', other)).status, 200)
})

test('half-sent bodies of one tenant leave room for those of another', async (t) => {
  const settings = { maxBodyBytes: '1048576', receivingMaxBytes: '4000000' }
  const app = await startTestApp(t, sqlite!, { settings })
  const other = bearer(await app.createToken({ scope: 'cf', companyId: 43 }))
  const body = JSON.stringify({ text: 'x'.repeat(900_000) })
  const opened: RawConnection[] = []
  // One after the other: bodies that grow side by side can leave each other too little, so that only one keeps its room.
  let isFull = false
  for (let n = 0; n < 20 && !isFull; n += 1) {
    const connection = await RawConnection.open(app.port)
    opened.push(connection)
    connection.write(
      `POST /api/inbox HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${app.token}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`,
    )
    connection.write(body.slice(0, -1))
    isFull = (await app.post(body)).status === 503
  }
  assert.ok(isFull, 'the tenant has no room left')
  assert.equal((await app.post(body, other)).status, 200)
  for (const connection of opened) connection.destroy()
})

test('bodies that are still arriving are bounded in sum: one too many is 503, small ones and those before it are stored', async (t) => {
  const settings = { maxBodyBytes: '1048576', receivingMaxBytes: '400000', metrics: '127.0.0.1:0' }
  const app = await startTestApp(t, sqlite!, { settings })
  const held = async () => (await scrape(app)).get('intray_receiving_bytes')!
  const head = (length: number) =>
    `POST /api/inbox HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${app.token}\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n\r\n`
  const body = Buffer.from(JSON.stringify({ text: 'x'.repeat(400_000) }))
  const half = 300_000
  await app.post({})
  const opened: RawConnection[] = []
  const open = async () => {
    const connection = await RawConnection.open(app.port)
    opened.push(connection)
    connection.write(head(body.length))
    return connection
  }
  const announced = await Promise.all(Array.from({ length: 20 }, open))
  const [first, second] = [await open(), await open()]
  first.write(body.subarray(0, half))
  await until('the first has its room, and announcing took none', async () => {
    const bytes = await held()
    return bytes > 200_000 && bytes <= 400_000
  })
  second.write(body.subarray(0, half))
  const [refused] = await second.answers(1)
  assert.deepEqual([refused?.status, refused?.json?.error, refused?.json?.stored], [503, 'overloaded', 'no'])
  assert.equal((await app.post({ small: true })).status, 200)
  first.write(body.subarray(half))
  assert.equal((await first.answers(1))[0]?.status, 200)
  announced[0]!.write(body)
  assert.equal((await announced[0]!.answers(1))[0]?.status, 200, 'there is room again')
  // Before the server stops, which would wait for their bodies.
  for (const connection of opened) connection.destroy()
})

for (const driver of drivers) {
  test(`${driver.name}: a tenant has only so many subscriptions; one that exists is found, one deleted makes room`, async (t) => {
    const app = await startTestApp(t, driver, { settings: { maxSubscriptions: '3' } })
    const token = await app.createToken({ scope: 'processor' })
    const create = async (name: string) => (await command(app, token, 'subscriptions', { name })).status
    const made = await Promise.all(['a', 'b', 'c', 'd', 'e', 'f'].map(create))
    assert.deepEqual(made.toSorted(), [200, 200, 409, 409, 409, 409], 'default is the third')
    const refused = await command(app, token, 'subscriptions', { name: 'g' })
    assert.equal(refused.json?.error, 'too_many_subscriptions')
    const { json } = await app.send({ path: '/v1/inbox/subscriptions', headers: bearer(token) })
    const [, kept] = json!.subscriptions as { name: string }[]
    assert.equal(await create(kept!.name), 200, 'it exists')
    const other = await app.createToken({ companyId: 43, scope: 'processor' })
    assert.equal((await command(app, other, 'subscriptions', { name: 'a' })).status, 200, 'another tenant')
    await app.send({ method: 'DELETE', path: `/v1/inbox/subscriptions/${kept!.name}`, headers: bearer(token) })
    assert.equal(await create('again'), 200)
  })
}
