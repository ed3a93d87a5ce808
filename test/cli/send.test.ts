// `./intray send`: messages from a file or stdin, as they are, once.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { chmodSync, writeFileSync } from 'node:fs'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { after, before, describe, type TestContext, test } from 'node:test'
import { startCommand } from '../support/fed-command.ts'
import { createToken, readJournal, withStore } from '../support/journal.ts'
import { type Finished, intray, startServer } from '../support/process.ts'
import { tempFolder } from '../support/temp.ts'
import { within } from '../support/until.ts'

interface Service {
  readonly url: string
  readonly databaseUrl: string
  readonly tokenFile: string
  readonly token: string
  /** A file with this content. */
  file(name: string, content: string | Uint8Array): string
  /** Sends with the token in its file; the summary as JSON. */
  send(...args: string[]): Promise<Finished & { readonly json: Record<string, unknown> }>
  payloads(): Promise<string[]>
}

async function startService(t: TestContext): Promise<Service> {
  const folder = tempFolder('cli-send')
  const databaseUrl = `sqlite:${join(folder, 'intray.db')}`
  const token = await withStore(databaseUrl, (store) => createToken(store))
  const { url } = await startServer(t, { INTRAY_DATABASE_URL: databaseUrl })
  const file = (name: string, content: string | Uint8Array) => {
    writeFileSync(join(folder, name), content)
    return join(folder, name)
  }
  const tokenFile = file('token', `${token}\n`)
  chmodSync(tokenFile, 0o600)
  return {
    url,
    databaseUrl,
    tokenFile,
    token,
    file,
    send: async (...args) => {
      const done = await within(
        'the command',
        intray(['send', ...args, '--url', url, '--token-file', tokenFile, '--json'], {}),
      )
      return { ...done, json: done.stdout.length > 0 ? JSON.parse(done.stdout.toString()) : {} }
    },
    payloads: async () => (await readJournal(databaseUrl)).map(({ payload }) => Buffer.from(payload!).toString()),
  }
}

describe('send', () => {
  let service: Service
  const cleanUps: (() => unknown)[] = []
  before(async () => {
    service = await startService({ after: (work: () => unknown) => cleanUps.push(work) } as unknown as TestContext)
  })
  after(async () => {
    for (const work of cleanUps) await work()
  })

  test('a file that is one object is one message, byte for byte, line breaks and all', async (t) => {
    const own = await startService(t)
    const odd = '\ufeff\r\n{"source_ref":"odd",\r\n "n":1.0,"n":12345678901234567890 }\n\n'
    const { code, json, stderr } = await own.send(own.file('one.json', odd))
    assert.deepEqual([code, stderr], [0, ''])
    assert.deepEqual(json, { sent: 1, stored: 1, duplicate: 0, conflict: 0, refused: 0, failed: 0, refusals: [] })
    assert.deepEqual(await own.payloads(), [odd])
  })

  test('every line of an NDJSON file is a message; the same file again stores nothing, with --new it does', async (t) => {
    const own = await startService(t)
    const lines = Array.from({ length: 500 }, (_, n) => `{"n": ${n},"é":"🙂"}`)
    // Two lines alike are two messages; blank ones are none.
    const content = `${lines.join('\n')}\r\n\n  \n{"n": 0,"é":"🙂"}`
    const path = own.file('many.ndjson', content)
    const first = await own.send(path)
    assert.deepEqual([first.code, first.json.stored], [0, 501])
    const again = await own.send(path)
    assert.deepEqual([again.code, again.json.stored, again.json.duplicate], [0, 0, 501])
    assert.deepEqual((await own.payloads()).toSorted(), [...lines, lines[0]!].toSorted())
    const anew = await own.send(path, '--new', '--concurrency', '1')
    assert.deepEqual([anew.code, anew.json.stored], [0, 501])
    assert.deepEqual((await own.payloads()).slice(501), [...lines, lines[0]!], 'one at a time keeps their order')
  })

  test('stdin is read with - and without a name, and told to be lines by --ndjson', async (t) => {
    const credentials = ['--url', service.url, '--token-file', service.tokenFile, '--json']
    for (const [args, input, sent] of [
      [['-'], '{"source_ref":"stdin:1",\n"text":"one"}', 1],
      [[], '{"source_ref":"stdin:2"}', 1],
      [['--ndjson'], '{"source_ref":"stdin:3"}\n{"source_ref":"stdin:4"}\n', 2],
    ] as const) {
      const done = await within('the command', startCommand(t, ['send', ...args, ...credentials], {}, input).finished)
      assert.equal(done.code, 0, done.stderr)
      assert.equal(JSON.parse(done.stdout.toString()).stored, sent)
    }
  })

  test('refused lines are told with their numbers and reasons, and the others are stored', async () => {
    const content = '{"source_ref":"r:1"}\n{not json\n\n{"source_ref":[]}\n{"source_ref":"r:5"}\n["r"]\n'
    const path = service.file('refused.ndjson', content)
    const { code, json } = await service.send(path)
    assert.equal(code, 1)
    assert.deepEqual([json.sent, json.stored, json.refused], [5, 2, 3])
    const refusals = (json.refusals as { line: number; status: number; error: string }[])
      .toSorted((a, b) => a.line - b.line)
      .map(({ line, status, error }) => [line, status, error])
    assert.deepEqual(refusals, [
      [2, 400, 'invalid_json'],
      [4, 422, 'invalid_payload'],
      [6, 400, 'invalid_json'],
    ])
    const shown = await intray(['send', path, '--url', service.url, '--token-file', service.tokenFile], {})
    assert.match(shown.stdout.toString(), /^5 sent: 0 stored, 2 stored before, 3 refused\.$/m)
    assert.match(
      shown.stdout.toString(),
      /^ {2}line 2: 400 invalid_json: The body is not valid JSON at line 1, column 2/m,
    )
    assert.match(
      shown.stdout.toString(),
      /^ {2}line 4: 422 invalid_payload\n {4}\/source_ref: `source_ref` is neither a string nor an integer\. Send it in quotes\.$/m,
    )
  })

  test('other bytes under a known source_ref are told as what they became', async () => {
    const path = service.file('conflict.ndjson', '{"source_ref":"c:1"}\n{"source_ref":"c:1","second":true}\n')
    const { code, json } = await service.send(path, '--concurrency', '1')
    assert.deepEqual([code, json.stored, json.conflict], [0, 1, 1])
  })

  test('a token that does not work ends it at the first message, and is never printed', async () => {
    const processor = await withStore(service.databaseUrl, (store) => createToken(store, { scope: 'processor' }))
    const path = service.file('x.ndjson', '{"source_ref":"never:1"}\n{"source_ref":"never:2"}\n'.repeat(100))
    for (const [token, complaint] of [
      ['itr_nonsense', /invalid_token: This token is not known here/],
      [processor, /forbidden_scope: This token has the scope processor, which may not send\./],
    ] as const) {
      const done = await intray(['send', path, '--url', service.url, '--token', token], {})
      assert.deepEqual([done.code, done.stdout.toString()], [1, ''])
      assert.match(done.stderr, complaint)
      assert.ok(!done.stderr.includes(token))
    }
    const refs = (await readJournal(service.databaseUrl)).map(({ event }) => event.sourceRef)
    assert.equal(
      refs.some((ref) => ref?.startsWith('never')),
      false,
    )
  })

  test('an address where nobody is, and one that is not Intray', async () => {
    const path = service.file('one.json', '{}')
    const flags = ['--token', 'itr_x', '--tries', '2', '--json']
    const gone = await intray(['send', path, '--url', 'http://127.0.0.1:1', ...flags], {})
    assert.equal(gone.code, 1)
    const { failed, refusals } = JSON.parse(gone.stdout.toString())
    assert.deepEqual([failed, refusals[0].error], [1, 'ECONNREFUSED'])
    const elsewhere = await intray(['send', path, '--url', `${service.url}/elsewhere`, ...flags], {})
    assert.equal(elsewhere.code, 1)
    assert.match(elsewhere.stderr, /not_found/)
  })

  test('a call that is wrong is refused with code 2, what cannot be read with code 1', async () => {
    const path = service.file('one.json', '{}')
    for (const args of [
      [path],
      [path, path, '--token', 'x'],
      [path, '--token', 'x', '--token-file', 'y'],
      [path, '--token', 'two words'],
      [path, '--token', 'x', '--concurrency', '0'],
      [path, '--token', 'x', '--tries', 'many'],
      [path, '--token', 'x', '--url', 'ftp://a'],
      [path, '--token', 'x', '--url', 'http://user:word@a'],
    ]) {
      const { code, stderr } = await intray(['send', ...args], {})
      assert.equal(code, 2, `${args.join(' ')}: ${stderr}`)
    }
    for (const args of [
      [join(path, 'nowhere'), '--token', 'x'],
      [tempFolder(), '--token', 'x'],
      [path, '--token-file', join(path, 'nowhere')],
    ]) {
      const { code, stderr } = await intray(['send', ...args], {})
      assert.equal(code, 1, `${args.join(' ')}: ${stderr}`)
    }
  })

  test('what is refused for now is sent again after Retry-After, and an answer that is lost makes no second copy', async (t) => {
    const own = await startService(t)
    const path = own.file('many.ndjson', Array.from({ length: 40 }, (_, n) => `{"n":${n}}`).join('\n'))
    const way = await startTroubledWay(t, own.url)
    const args = ['send', path, '--url', way.url, '--token-file', own.tokenFile, '--json']
    const done = await within('the command', intray(args, {}))
    const json = JSON.parse(done.stdout.toString())
    assert.deepEqual([done.code, json.sent, json.failed], [0, 40, 0], done.stderr)
    t.diagnostic(`${way.seen.overloaded} told to wait, ${way.seen.lost} answers lost; ${json.duplicate} stored before`)
    assert.ok(way.seen.overloaded > 0 && way.seen.lost > 0)
    assert.equal(json.duplicate, way.seen.lost)
    assert.equal((await own.payloads()).length, 40, 'each once')
    assert.equal(way.seen.tooEarly, 0, 'nobody came back before the time')
  })
})

const WAIT_S = 1

/** A way to the service on which every seventh message is told to wait, and every fifth answer is lost. */
async function startTroubledWay(t: TestContext, target: string) {
  const seen = { overloaded: 0, lost: 0, tooEarly: 0 }
  const waiting = new Map<string, number>()
  const met = new Set<string>()
  const server = http.createServer((req, res) => {
    const chunks: Buffer[] = []
    req.on('data', (chunk: Buffer) => chunks.push(chunk))
    req.on('end', () => {
      const key = String(req.headers['idempotency-key'])
      if ((waiting.get(key) ?? 0) > performance.now()) seen.tooEarly += 1
      const isNew = !met.has(key)
      met.add(key)
      if (isNew && met.size % 7 === 0) {
        seen.overloaded += 1
        waiting.set(key, performance.now() + 1000 * WAIT_S - 5)
        res.writeHead(503, { 'Content-Type': 'application/json', 'Retry-After': String(WAIT_S) })
        res.end('{"ok":false,"error":"overloaded","message":"Wait.","retryable":true}')
        return
      }
      const { method, headers } = req
      const onward = http.request(new URL(req.url!, target), { method, headers, agent: false }, (answer) => {
        if (isNew && met.size % 5 === 0) {
          seen.lost += 1
          answer.resume()
          answer.on('end', () => res.destroy())
        } else {
          res.writeHead(answer.statusCode!, answer.headers)
          answer.pipe(res)
        }
      })
      onward.end(Buffer.concat(chunks))
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, seen }
}
