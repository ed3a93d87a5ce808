// What the PHP kit does about each answer, and that its token stays where it belongs. The answers that no service gives come
// from a server of the test: the proxy or captive portal between a site and Intray.

import assert from 'node:assert/strict'
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs'
import http from 'node:http'
import type net from 'node:net'
import { join } from 'node:path'
import { after, before, beforeEach, describe, test } from 'node:test'
import { runToEnd } from '../../support/command.ts'
import { drivers } from '../../support/drivers.ts'
import { missingPhp } from '../../support/php.ts'
import { ROOT } from '../../support/process.ts'
import { sharedApp } from '../../support/shared-app.ts'
import { tempFolder } from '../../support/temp.ts'
import { type Flushed, jsonOf, KIT, runKit, type Settings } from './kit.ts'

const TOKEN = 'itr_secret_of_this_test'
const RECEIPT = '{"ok":true,"id":1}'
const MINUTE = 60_000
const MAX_BACKOFF = 5 * MINUTE
const HOUR = 60 * MINUTE

interface Reply {
  readonly status: number
  readonly headers?: Record<string, string>
  readonly body?: string
}

interface Row {
  readonly source_ref: string
  readonly status: string
  readonly attempts: number
  readonly next_at: number
  readonly last_error: string | null
}

const skip = missingPhp()
const sqlite = () => `sqlite:${join(tempFolder('answers'), 'outbox.db')}`
const ROWS = `$pdo = new PDO(getenv('INTRAY_OUTBOX'));
  return $pdo->query('SELECT source_ref, status, attempts, next_at, last_error FROM intray_outbox ORDER BY id')
    ->fetchAll(PDO::FETCH_ASSOC);`
const SEND_AND_FLUSH = `$before = (int) floor(microtime(true) * 1000);
  foreach (json_decode(getenv('MESSAGES'), true) as $message) { $intray->send($message); }
  $flushed = $intray->flush();
  return ['before' => $before, 'flushed' => $flushed, 'after' => (int) ceil(microtime(true) * 1000),
    'rows' => (function () { ${ROWS} })()];`

describe('what the PHP kit does about an answer', { skip }, () => {
  let server: http.Server
  let reply: (request: http.IncomingMessage, body: string) => Reply
  let requests: { path: string; body: string; authorization: string | undefined }[]
  let settings: Settings
  before(async () => {
    server = http.createServer((request, response) => {
      const chunks: Buffer[] = []
      request.on('data', (chunk: Buffer) => chunks.push(chunk))
      request.on('end', () => {
        const body = Buffer.concat(chunks).toString()
        requests.push({ path: request.url!, body, authorization: request.headers.authorization })
        const { status, headers = {}, body: answer = '' } = reply(request, body)
        response.writeHead(status, headers).end(answer)
      })
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  })
  after(() => server.close())
  beforeEach(() => {
    requests = []
    settings = { url: `http://127.0.0.1:${(server.address() as net.AddressInfo).port}`, token: TOKEN, outbox: sqlite() }
  })

  const sendTo = (messages: readonly object[]) =>
    jsonOf<{ before: number; after: number; flushed: Flushed; rows: Row[] }>(settings, SEND_AND_FLUSH, {
      MESSAGES: JSON.stringify(messages),
    })

  const inTenMinutes = new Date(Date.now() + 10 * MINUTE).toUTCString()
  const CASES: Record<string, [Reply, status: string, delay: [number, number], problem: RegExp | null]> = {
    'a receipt': [{ status: 200, body: RECEIPT }, 'sent', [0, 0], null],
    'a receipt of a duplicate': [{ status: 200, body: '{"ok":true,"id":7,"duplicate":true}' }, 'sent', [0, 0], null],
    'the page of a captive portal': [
      { status: 200, body: '<html>Accept the terms' },
      'waiting',
      [0, 1000],
      /not from Intray/,
    ],
    'a JSON that is no receipt': [{ status: 200, body: '{"ok":true}' }, 'waiting', [0, 1000], /not from Intray/],
    'a 204': [{ status: 204 }, 'waiting', [0, 1000], /HTTP 204/],
    'an endless page': [{ status: 200, body: `${RECEIPT}${' '.repeat(100_000)}` }, 'waiting', [0, 1000], /^No answer/],
    'a 408': [{ status: 408 }, 'waiting', [0, 1000], /HTTP 408/],
    'a 429': [{ status: 429, headers: { 'Retry-After': '120' } }, 'waiting', [2 * MINUTE, 2 * MINUTE], /HTTP 429/],
    'a 500': [{ status: 500 }, 'waiting', [0, 1000], /HTTP 500/],
    'a 503 until a date': [
      { status: 503, headers: { 'Retry-After': inTenMinutes } },
      'waiting',
      [0, 10 * MINUTE],
      /HTTP 503/,
    ],
    'a 503 for a year': [{ status: 503, headers: { 'Retry-After': '31536000' } }, 'waiting', [HOUR, HOUR], /HTTP 503/],
    'a 503 with nonsense': [{ status: 503, headers: { 'Retry-After': 'soon' } }, 'waiting', [0, 1000], /HTTP 503/],
    'a 401': [{ status: 401, body: '{"message":"Unknown."}' }, 'waiting', [MINUTE, MINUTE], /^HTTP 401: Unknown\.$/],
    'a 403': [{ status: 403, body: '{"error":"forbidden_scope"}' }, 'waiting', [MINUTE, MINUTE], /forbidden_scope/],
    'a redirect': [{ status: 302, headers: { Location: '/elsewhere' } }, 'waiting', [MINUTE, MINUTE], /redirect/],
    'a 400': [{ status: 400, body: '{"message":"No JSON."}' }, 'refused', [0, 1000], /^HTTP 400: No JSON\.$/],
    'a 413': [{ status: 413 }, 'refused', [0, 1000], /HTTP 413/],
    'a 422': [{ status: 422, body: '{"message":"Too long."}' }, 'refused', [0, 1000], /Too long/],
  }
  for (const [name, [answer, status, [atLeast, atMost], problem]] of Object.entries(CASES)) {
    test(`${name} makes a message ${status}`, async () => {
      reply = () => answer
      const { before, after, rows, flushed } = await sendTo([{ source_ref: 'a' }])
      const [row] = rows
      assert.equal(row!.status, status)
      // An answer that Intray did not give is tried again at once where the back-off is short; three times in a row at most.
      assert.ok(requests.length >= 1 && requests.length <= 3)
      assert.deepEqual([...new Set(requests.map(({ path }) => path))], ['/v1/inbox/events'])
      assert.equal(row!.attempts, requests.length)
      assert.ok(row!.next_at >= before + (atLeast > 1000 ? atLeast : 0), `${row!.next_at - before} ms`)
      const longest = atMost === 1000 ? 4000 : atMost
      assert.ok(row!.next_at <= after + longest, `${row!.next_at - after} ms`)
      if (problem === null) {
        assert.deepEqual([flushed.problem, row!.last_error], [null, null])
      } else {
        assert.match(flushed.problem!, problem)
        assert.match(row!.last_error!, problem)
      }
    })
  }

  test('the back-off grows to five minutes, at random, and has no last attempt', async () => {
    const delays = await jsonOf<number[]>(
      settings,
      `$method = new ReflectionMethod('Intray\\Outbox', 'delayMs');
       $method->setAccessible(true);
       return array_map(fn ($i) => $method->invoke(null, 100000, new Intray\\Answer(500, '')), range(1, 50));`,
    )
    assert.ok(delays.every((delay) => delay >= 0 && delay <= MAX_BACKOFF))
    assert.ok(Math.max(...delays) > MAX_BACKOFF / 4)
    assert.ok(new Set(delays).size > 25)
  })

  test('a waiting message holds back its own channel only, a refused one none', async () => {
    reply = (_request, body) => {
      const { source_ref } = JSON.parse(body) as { source_ref: string }
      if (source_ref === 'a1') return { status: 503, headers: { 'Retry-After': '3600' } }
      return source_ref === 'b1' ? { status: 422 } : { status: 200, body: RECEIPT }
    }
    const message = (source_ref: string, channel_ref?: string) => ({ source_ref, channel_ref })
    const messages = [message('a1', 'a'), message('a2', 'a'), message('b1', 'b'), message('b2', 'b'), message('c1')]
    await sendTo(messages)
    // Retry-After ended the first run; the second one sends what the waiting message does not hold back.
    await jsonOf(settings, 'return $intray->flush();')
    const statuses = async () => {
      const rows = await jsonOf<Row[]>(settings, ROWS)
      return Object.fromEntries(rows.map(({ source_ref, status }) => [source_ref, status]))
    }
    assert.deepEqual(await statuses(), { a1: 'waiting', a2: 'waiting', b1: 'refused', b2: 'sent', c1: 'sent' })

    const refused = requests.find(({ body }) => body.includes('"b1"'))!
    reply = () => ({ status: 200, body: RECEIPT })
    requests = []
    await jsonOf(settings, '$intray->outbox()->retryNow(); $intray->outbox()->resend(); return $intray->flush();')
    assert.deepEqual(await statuses(), { a1: 'sent', a2: 'sent', b1: 'sent', b2: 'sent', c1: 'sent' })
    const refs = requests.map(({ body }) => (JSON.parse(body) as { source_ref: string }).source_ref)
    assert.ok(refs.indexOf('a1') < refs.indexOf('a2'))
    assert.equal(requests.find(({ body }) => body.includes('"b1"'))!.body, refused.body)
  })

  test('the token is sent to this address, and is in no message, row or dump', async () => {
    reply = ({ headers }) => ({ status: 500, body: JSON.stringify({ message: `You sent ${headers.authorization}` }) })
    const { rows, flushed } = await sendTo([{ source_ref: 'a' }])
    assert.ok(requests.length > 0)
    assert.ok(requests.every(({ authorization }) => authorization === `Bearer ${TOKEN}`))
    const { stdout, stderr } = await runKit(
      settings,
      `var_dump($intray, $intray->transport()); print_r($intray); $intray->outbox()->add(['source_ref' => []]);`,
    )
    assert.match(stderr, /source_ref must be text/)
    assert.match(rows[0]!.last_error!, /You sent Bearer \[token\]/)
    assert.doesNotMatch(JSON.stringify([rows, flushed, stdout, stderr]), new RegExp(TOKEN))
  })

  test('sent messages are deleted after some days, and no others ever', async () => {
    reply = (_request, body) => (body.includes('"a"') ? { status: 200, body: RECEIPT } : { status: 422 })
    await sendTo([{ source_ref: 'a' }, { source_ref: 'b' }])
    const left = await jsonOf<Row[]>(settings, `$intray->outbox()->prune(-1); ${ROWS}`)
    assert.deepEqual(
      left.map(({ source_ref }) => source_ref),
      ['b'],
    )
  })
})

describe('the PHP kit and the service', { skip }, () => {
  const shared = sharedApp(drivers[0]!)
  const settings = (): Settings => ({ url: shared.app.url, token: shared.app.token, outbox: sqlite() })
  const command = (of: Settings, name: string) => runKit(of, `exit(Intray\\main(['Intray.php', '${name}']));`)

  test('ping says whether the token is valid, on the command line', async () => {
    const good = await command(settings(), 'ping')
    assert.deepEqual([good.code, good.stdout, good.stderr], [0, 'The token is valid.\n', ''])
    const bad = await command({ ...settings(), token: 'itr_nonsense' }, 'ping')
    assert.deepEqual([bad.code, bad.stdout], [1, ''])
    assert.match(bad.stderr, /^HTTP 401: This token is not known here/)
    const none = await command({ ...settings(), url: '' }, 'ping')
    assert.deepEqual(
      [none.code, none.stderr],
      [2, 'The URL of Intray is missing or does not begin with https://. Set INTRAY_URL.\n'],
    )
  })

  test('flush says what it did, and keeps messages while a setting is missing', async () => {
    const of = settings()
    await jsonOf(of, `return $intray->send(['message' => ['text' => "caf\\xc3\\xa9 \\xff"]]);`)
    const unset = await command({ ...of, token: '' }, 'flush')
    assert.deepEqual([unset.code, unset.stdout], [1, 'sent 0, refused 0, waiting 1\n'])
    const { code, stdout } = await command(of, 'flush')
    assert.deepEqual([code, stdout], [0, 'sent 1, refused 0, waiting 0\n'])
  })

  test('the example of the documentation arrives', async () => {
    const [, example] = /```php\n(.*?)```/s.exec(readFileSync(join(ROOT, 'docs/sending/php.md'), 'utf8'))!
    const folder = tempFolder('example')
    copyFileSync(KIT, join(folder, 'Intray.php'))
    writeFileSync(join(folder, 'send.php'), example!)
    const { url, token } = settings()
    const env = { INTRAY_URL: url, INTRAY_TOKEN: token, INTRAY_OUTBOX: 'sqlite:outbox.db' }
    const sent = await runToEnd(['php', 'send.php'], env, { cwd: folder })
    assert.deepEqual([sent.code, sent.stdout.toString(), sent.stderr], [0, '', ''])
    const { code, stdout } = await runToEnd(['php', 'Intray.php', 'flush'], env, { cwd: folder })
    assert.deepEqual([code, stdout.toString()], [0, 'sent 1, refused 0, waiting 0\n'])
  })

  test('constants are used where the environment has nothing', async () => {
    const { url, token } = settings()
    const script = `define('INTRAY_URL', '${url}'); define('INTRAY_TOKEN', '${token}'); return $intray->transport()->ping()->status;`
    assert.equal(await jsonOf({ url: '', token: '', outbox: '' }, script), 200)
  })
})

test('the plugin for WordPress has the same file', () => {
  assert.ok(readFileSync(KIT).equals(readFileSync(join(ROOT, 'kits/wordpress/intray/includes/Intray.php'))))
})
