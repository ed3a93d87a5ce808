// What an endpoint's URL could reach on this machine, in every spelling: no connection arrives. With a guard that allows every
// address, the same requests arrive.

import assert from 'node:assert/strict'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type TestContext, test } from 'node:test'
import { AddressGuard } from '../../src/processing/push/address-guard.ts'
import { HttpClient, type PushResult } from '../../src/processing/push/http-client.ts'
import { createResolver, type ResolveName } from '../../src/processing/push/resolver.ts'
import { parseTargetUrl } from '../../src/processing/push/target-url.ts'

/** A slow machine is no time-out. */
const LONG_MS = 600_000
const GUARDED = new AddressGuard()
const ALL = new AddressGuard(['0.0.0.0/0', '::/0'])

interface Listener {
  readonly port: number
  connections: number
  requests: number
}

type Answer = (req: IncomingMessage, res: ServerResponse) => void

/** On every address of this machine. */
async function listen(t: TestContext, answer: Answer = (_req, res) => res.end('reached')): Promise<Listener> {
  const server = createServer((req, res) => {
    listener.requests += 1
    req.resume()
    answer(req, res)
  })
  server.on('connection', () => {
    listener.connections += 1
  })
  await new Promise<void>((resolve) => server.listen(0, '::', resolve))
  t.after(() => server.close())
  const listener: Listener = { port: (server.address() as AddressInfo).port, connections: 0, requests: 0 }
  return listener
}

async function push(text: string, guard: AddressGuard, resolve: ResolveName = createResolver()): Promise<PushResult> {
  const parsed = parseTargetUrl(text)
  if ('problem' in parsed) return { failure: 'forbidden_address', reason: parsed.problem, ms: 0 }
  const client = new HttpClient({ url: parsed.url, guard, resolve, maxSockets: 1 })
  try {
    return await client.post({ headers: { 'Content-Length': '2' }, body: [Buffer.from('{}')], timeoutMs: LONG_MS })
  } finally {
    client.stop()
  }
}

/** Hosts as they stand in a URL. All mean this machine, or an address that no push may reach. */
const LOOPBACK = [
  ...['127.0.0.1', '127.0.0.1.', '127.1', '127.0.1', '127.1.2.3', '127.255.255.254', '2130706433', '2130706433.'],
  ...['017700000001', '0177.0.0.1', '0177.1', '0x7f000001', '0x7f.1', '0x7f.0.0.1', '0x7F.0x0.0x0.0x1', '127.0x1'],
  ...['00000177.0000.0000.0001', '0x7f.0.01', '127.0.0.01', '127.000.000.001', '%31%32%37.0.0.1', '127%2e0%2e0%2e1'],
  ...['127。0。0。1', '127．0．0．1', '１２７.０.０.１', '①②⑦.⓪.⓪.①', '0', '0.0.0.0', '0x0', '00', '0.0', '0x00000000'],
  ...[
    '[::1]',
    '[0:0:0:0:0:0:0:1]',
    '[::0001]',
    '[0000:0000:0000:0000:0000:0000:0000:0001]',
    '[::]',
    '[0::0]',
    '[::0.0.0.1]',
  ],
  ...[
    '[::ffff:127.0.0.1]',
    '[::ffff:7f00:1]',
    '[::FFFF:7F00:0001]',
    '[0:0:0:0:0:ffff:127.0.0.1]',
    '[::ffff:127.1.2.3]',
  ],
  ...['[::ffff:0.0.0.0]', '[::ffff:0:127.0.0.1]', '[::127.0.0.1]', '[64:ff9b::127.0.0.1]', '[64:ff9b::7f00:1]'],
  ...[
    '[64:ff9b:1::7f00:1]',
    '[2002:7f00:1::]',
    '[2002:7f00:0001::1]',
    'localhost',
    'LOCALHOST',
    'localhost.',
    'LocalHost',
  ],
]
const OTHERS = [
  ...['169.254.169.254', '0xa9fea9fe', '2852039166', '[::ffff:169.254.169.254]', '100.100.100.200', '192.0.0.192'],
  ...['168.63.129.16', '[fd00:ec2::254]', '[fe80::1]', '10.0.0.1', '0xa.1', '012.1', '192.168.1.1', '3232235777'],
  ...['172.16.0.1', '[fd12:3456::1]', '224.0.0.1', '255.255.255.255', '198.18.0.1', '[::ffff:10.0.0.1]', '[ff02::1]'],
]
const WITH_USER = ['user@127.0.0.1', 'user:pass@localhost', 'example.com@127.0.0.1', 'example.com:80@[::1]']

test('no spelling of an address of this machine is connected to', async (t) => {
  const listener = await listen(t)
  const hosts = [...LOOPBACK, ...OTHERS, ...WITH_USER]
  assert.ok(new Set(hosts).size === hosts.length && hosts.length > 80)
  for (const host of hosts) {
    const result = await push(`http://${host}:${listener.port}/`, GUARDED)
    // Not every machine has the name with a dot at its end.
    const wanted = host === 'localhost.' ? ['forbidden_address', 'unresolved'] : ['forbidden_address']
    assert.ok('failure' in result && wanted.includes(result.failure), `${host}: ${JSON.stringify(result)}`)
  }
  assert.equal(listener.connections, 0)

  // The control: nothing but the guard kept them away.
  await Promise.all(LOOPBACK.map((host) => push(`http://${host}:${listener.port}/`, ALL)))
  t.diagnostic(
    `${hosts.length} spellings: 0 connections; of ${LOOPBACK.length} without the guard: ${listener.requests}`,
  )
  assert.ok(listener.requests > 40, `only ${listener.requests} arrived without the guard`)
})

test('what is no URL of http or https, or has a user, is refused', () => {
  const texts = [
    'ftp://example.com',
    'file:///etc/passwd',
    'gopher://127.0.0.1:25/',
    'javascript:alert(1)',
    'example.com',
    '',
  ]
  for (const text of [
    ...texts,
    'https://u@example.com',
    'https://u:p@example.com',
    'https://example.com/#a',
    'https://[fe80::1%25eth0]/',
  ]) {
    assert.ok('problem' in parseTargetUrl(text), text)
  }
})

test('a name is connected to by the addresses that were checked, whatever DNS answers afterwards', async (t) => {
  const listener = await listen(t)
  // A server that answers with a public address first and with loopback afterwards (TTL 0).
  const rebinding = (answers: readonly string[][]): { resolve: ResolveName; asked: () => number } => {
    let asked = 0
    return { resolve: async () => answers[Math.min(asked++, answers.length - 1)]!, asked: () => asked }
  }
  for (const forbidden of ['127.0.0.1', '::1', '::ffff:127.0.0.1', '0.0.0.0', '10.0.0.1', '64:ff9b::7f00:1']) {
    const dns = rebinding([[forbidden]])
    const result = await push(`http://rebind.example:${listener.port}/`, GUARDED, dns.resolve)
    assert.ok('failure' in result && result.failure === 'forbidden_address', forbidden)
  }
  // None of several addresses is public: one of documentation is not either.
  const mixed = rebinding([['127.0.0.1', '192.0.2.1', '::1']])
  const result = await push(`http://rebind.example:${listener.port}/`, GUARDED, mixed.resolve)
  assert.ok('failure' in result && result.failure === 'forbidden_address')
  assert.equal(listener.connections, 0)

  // The check and the connection use one answer: a second one is not asked for.
  const changing = rebinding([['127.0.0.2'], ['127.0.0.1']])
  const onlyFirst = new AddressGuard(['127.0.0.2'])
  const reached = await push(`http://rebind.example:${listener.port}/`, onlyFirst, changing.resolve)
  assert.ok('status' in reached && reached.status === 200)
  assert.equal(changing.asked(), 1)
  const next = await push(`http://rebind.example:${listener.port}/`, onlyFirst, changing.resolve)
  assert.ok('failure' in next && next.failure === 'forbidden_address')
  assert.equal(listener.connections, 1)
})

test('a redirect is an answer and is not followed', async (t) => {
  const inside = await listen(t)
  for (const status of [301, 302, 303, 307, 308]) {
    const outside = await listen(t, (_req, res) => {
      res.writeHead(status, { Location: `http://127.0.0.1:${inside.port}/` }).end()
    })
    const result = await push(`http://localhost:${outside.port}/`, ALL)
    assert.ok('status' in result && result.status === status)
    assert.equal(outside.requests, 1)
  }
  assert.equal(inside.connections, 0)
})

test('what the operator allows is reached, and nothing beside it', async (t) => {
  const listener = await listen(t)
  const allowed = new AddressGuard(['127.0.0.0/8'])
  for (const host of ['127.0.0.1', '2130706433', '127.9.9.9']) {
    const result = await push(`http://${host}:${listener.port}/`, allowed)
    assert.ok('status' in result && result.status === 200, host)
  }
  const { connections } = listener
  for (const host of ['[::1]', '0.0.0.0']) {
    const result = await push(`http://${host}:${listener.port}/`, allowed)
    assert.ok('failure' in result && result.failure === 'forbidden_address', host)
  }
  assert.equal(listener.connections, connections)
})
