// `./intray event show`: what was stored, as it was stored.

import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { send } from '../support/client.ts'
import { intrayJson } from '../support/command.ts'
import { createToken, untilIndexed, withStore } from '../support/journal.ts'
import { intray, startServer } from '../support/process.ts'
import { tempFolder } from '../support/temp.ts'
import { within } from '../support/until.ts'

/** Valid UTF-8 that no careless copy leaves alone: BOM, CRLF, escapes, controls, all planes, no newline at the end. */
const ODD = Buffer.concat([
  Buffer.from([0xef, 0xbb, 0xbf]),
  Buffer.from(
    '\r\n{"source_ref":"odd:1","channel_ref":"odd","a":12345678901234567890,"a":1.0,"\\u0000":"\\ud800"' +
      ',"t":"\u007f\u0085\u2028\ufeff\uffff\u{10ffff}é🙂"\t}\r\n\r',
  ),
])
const HOSTILE = JSON.stringify({
  source_ref: 'evil\u001b]0;owned\u0007',
  channel_ref: 'room\r\u001b[2Kfake',
  contact: { name: '\u202egnp.exe', email: 'a@b.example\u009b31m' },
  message: { type: 'text\u0000\u0008', text: 'hello\u001b[31m red\u200b' },
})

const LARGE = `{"text":"${'🙂'.repeat(200_000)}"}`

/** A database that a server has filled and left: five events and a revision. */
async function filledDatabase(t: TestContext): Promise<{ INTRAY_DATABASE_URL: string }> {
  const env = { INTRAY_DATABASE_URL: `sqlite:${join(tempFolder('cli-event'), 'intray.db')}` }
  const token = await withStore(env.INTRAY_DATABASE_URL, (store) => createToken(store))
  const server = await startServer(t, env)
  const post = async (body: string | Buffer, more: Record<string, string> = {}) => {
    const credentials = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' }
    const headers = { ...credentials, 'User-Agent': 'plugin/1', ...more }
    const answer = await send(server.port, { method: 'POST', path: '/api/inbox', headers, body })
    assert.equal(answer.status, 200, answer.text)
  }
  await post(ODD)
  await post(ODD)
  await post('{"source_ref":"odd:1","second":true}')
  await post(HOSTILE)
  await post('{"contact":[],"meta":{"form_id":"12"}}', { 'Idempotency-Key': '"k-1"' })
  await post(LARGE)
  await untilIndexed(env.INTRAY_DATABASE_URL)
  server.child.kill('SIGTERM')
  assert.equal(await within('the server to end', server.exited), 0)
  return env
}

test('event show', async (t) => {
  const env = await filledDatabase(t)

  await t.test('--raw writes the payload byte for byte and nothing else', async () => {
    const { code, stdout, stderr } = await intray(['event', 'show', '1', '--raw'], env)
    assert.deepEqual([code, stderr], [0, ''])
    assert.deepEqual(stdout, ODD)
    const revision = await intray(['event', 'show', '2', '--raw'], env)
    assert.equal(revision.stdout.toString(), '{"source_ref":"odd:1","second":true}')
    const large = await intray(['event', 'show', '5', '--raw'], env)
    assert.ok(large.stdout.equals(Buffer.from(LARGE)), 'a large payload is written whole')
  })

  await t.test(
    '--json tells where it came from, what the index made of it and how often it was sent again',
    async () => {
      const shown = await intrayJson(['event', 'show', '1'], env)
      const { received_at: receivedAt, last_seen_at: lastSeenAt, request_id: requestId, key_id: keyId, ...rest } = shown
      assert.ok(Date.parse(String(lastSeenAt)) >= Date.parse(String(receivedAt)))
      assert.match(String(requestId), /^[0-9a-f-]{36}$/)
      assert.match(String(keyId), /^\w{10}$/)
      assert.deepEqual(rest, {
        id: 1,
        kind: 'event',
        revises: null,
        account_id: 7,
        company_id: 42,
        source_ref: 'odd:1',
        channel_ref: 'odd',
        idempotency_key: null,
        scope: 'cf',
        route: '/api/inbox',
        origin: 'intake',
        content_type: 'application/json',
        size: ODD.length,
        sha256: createHash('sha256').update(ODD).digest('hex'),
        erased_at: null,
        traceparent: null,
        user_agent: 'plugin/1',
        remote_addr: '127.0.0.1',
        recipe: null,
        indexed: true,
        unindexed: null,
        conversation_id: 1,
        contact_name: null,
        contact_email: null,
        message_type: null,
        snippet: null,
        warnings: [],
        resends: 1,
        revisions: 1,
        revision_ids: [2],
      })
      const revision = await intrayJson(['event', 'show', '2'], env)
      assert.deepEqual([revision.kind, revision.revises], ['revision', 1])
    },
  )

  await t.test(
    'fields of an unexpected type are shown as warnings, and the Idempotency-Key as it was meant',
    async () => {
      const shown = await intrayJson(['event', 'show', '4'], env)
      assert.equal(shown.idempotency_key, 'k-1')
      assert.equal(shown.source_ref, null)
      const paths = (shown.warnings as { path: string }[]).map(({ path }) => path)
      assert.deepEqual(paths.toSorted(), ['/contact', '/meta/form_id'])
      const { stdout } = await intray(['event', 'show', '4'], env)
      assert.match(stdout.toString(), /^\/contact +object +array$/m)
    },
  )

  await t.test(
    'text output names every field and lets no control character of the message reach the terminal',
    async () => {
      const { code, stdout } = await intray(['event', 'show', '3'], env)
      const text = stdout.toString()
      assert.equal(code, 0)
      assert.doesNotMatch(text, /[^\P{Cc}\n]|[\p{Cf}\u2028\u2029]/u)
      assert.match(text, /^source_ref +evil\\u001b\]0;owned\\u0007$/m)
      assert.match(text, /^channel_ref +room\\u000d\\u001b\[2Kfake$/m)
      assert.match(text, /^contact_name +\\u202egnp\.exe$/m)
      assert.match(text, /^indexed +yes$/m)
      assert.match(text, /event show 3 --raw/)
      const shown = await intrayJson(['event', 'show', '3'], env)
      assert.equal(shown.source_ref, 'evil\u001b]0;owned\u0007', '--json keeps them, as JSON escapes')
    },
  )

  await t.test('an id that does not exist is told with code 1', async () => {
    for (const more of [[], ['--raw'], ['--json']]) {
      const { code, stdout, stderr } = await intray(['event', 'show', '999', ...more], env)
      assert.deepEqual(
        [code, stdout.toString(), stderr],
        [1, '', "intray: There is no event 999. './intray inbox list' lists the events of a tenant.\n"],
      )
    }
  })

  await t.test('anything but show ID is refused with code 2', async () => {
    for (const args of [[], ['show'], ['show', '0'], ['show', 'x'], ['show', '-1'], ['show', '1', '2'], ['list']]) {
      const { code, stderr } = await intray(['event', ...args], env)
      assert.equal(code, 2, args.join(' '))
      assert.match(stderr, /^intray: /)
    }
  })
})
