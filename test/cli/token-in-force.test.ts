// `./intray token` beside a running server: when the command returns, the change is in force.

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { send, type TestAnswer } from '../support/client.ts'
import { intrayJson } from '../support/command.ts'
import { readJournal } from '../support/journal.ts'
import { post } from '../support/load.ts'
import { startServer } from '../support/process.ts'
import { tempFolder } from '../support/temp.ts'
import { until, within } from '../support/until.ts'

async function startBeside(t: TestContext) {
  const env = { INTRAY_DATABASE_URL: `sqlite:${join(tempFolder('cli-live'), 'intray.db')}` }
  const server = await startServer(t, env)
  const cli = (...args: string[]) => intrayJson(['token', ...args], env)
  return {
    env,
    server,
    cli,
    create: (...more: string[]) => cli('create', '--account', '7', '--company', '42', '--scope', 'cf', ...more),
    ping: (token: unknown) =>
      send(server.port, { path: '/api/ping', headers: { Authorization: `Bearer ${String(token)}` } }),
  }
}

const outcome = ({ status, json }: TestAnswer) => [status, json?.error]

test('a token works at once, stops with disable and works again with enable, each when the command returns', async (t) => {
  const { cli, create, ping } = await startBeside(t)
  const { token, key_id: keyId } = await create()
  const first = await ping(token)
  assert.deepEqual(first.json, { ok: true, account_id: 7, company_id: 42, scope: 'cf' })
  for (let round = 0; round < 2; round += 1) {
    await cli('disable', String(keyId))
    assert.deepEqual(outcome(await ping(token)), [401, 'token_disabled'])
    await cli('enable', String(keyId))
    assert.deepEqual(outcome(await ping(token)), [200, undefined])
  }
})

test('rotate without overlap disables the old token at once, and the new one dedupes against what the old one sent', async (t) => {
  const { env, server, cli, create, ping } = await startBeside(t)
  const old = await create()
  const body = '{"source_ref":"form:1","channel_ref":"site"}'
  assert.equal((await post(server.port, String(old.token), body)).text, '{"ok":true,"id":1}')
  const next = await cli('rotate', String(old.key_id))
  assert.deepEqual(outcome(await ping(old.token)), [401, 'token_disabled'])
  assert.deepEqual(outcome(await ping(next.token)), [200, undefined])
  assert.equal((await post(server.port, String(next.token), body)).text, '{"ok":true,"id":1,"duplicate":true}')
  assert.equal((await readJournal(env.INTRAY_DATABASE_URL)).length, 1)
})

test('rotate with an overlap lets both tokens work until the old one expires', async (t) => {
  const { cli, create, ping } = await startBeside(t)
  const old = await create()
  assert.equal((await ping(old.token)).status, 200)
  const next = await cli('rotate', String(old.key_id), '--overlap', '24h')
  assert.equal((await ping(old.token)).status, 200)
  assert.equal((await ping(next.token)).status, 200)
  const retiring = await cli('show', String(old.key_id))
  assert.equal(retiring.is_active, 1)
  const overlap = Date.parse(String(retiring.expires_at)) - Date.parse(String(next.created_at))
  assert.equal(overlap, 24 * 3_600_000)
  assert.equal(next.expires_at, null)

  const last = await cli('rotate', String(next.key_id), '--overlap', '2s')
  const late = await until('the overlap is over', async () => {
    const answer = await ping(next.token)
    return answer.status !== 200 && answer
  })
  assert.deepEqual(outcome(late), [401, 'token_expired'])
  assert.equal((await ping(last.token)).status, 200)
})

test('a token expires on a running server when its time is over, and one made for the past never works', async (t) => {
  const { create, ping } = await startBeside(t)
  const brief = await create('--expires', '2s')
  const past = await create('--expires', '2020-01-01T00:00:00Z')
  assert.deepEqual(outcome(await ping(past.token)), [401, 'token_expired'])
  const late = await until('the token has expired', async () => {
    const answer = await ping(brief.token)
    return answer.status !== 200 && answer
  })
  assert.deepEqual(outcome(late), [401, 'token_expired'])
})

test('last_used_at is there after a graceful stop, for the tokens that were used', async (t) => {
  const { server, cli, create, ping } = await startBeside(t)
  const used = await create()
  const unused = await create()
  assert.equal((await ping(used.token)).status, 200)
  server.child.kill('SIGTERM')
  assert.equal(await within('the server to end', server.exited), 0)
  const shown = await cli('show', String(used.key_id))
  assert.ok(Date.parse(String(shown.last_used_at)) >= Date.parse(String(shown.created_at)), String(shown.last_used_at))
  assert.equal((await cli('show', String(unused.key_id))).last_used_at, null)
})

test('disable returns without a server too, and the next start keeps to it', async (t) => {
  const first = await startBeside(t)
  const { token, key_id: keyId } = await first.create()
  assert.equal((await first.ping(token)).status, 200)
  first.server.child.kill('SIGKILL')
  await first.server.exited
  await first.cli('disable', String(keyId))
  const { port } = await startServer(t, first.env)
  const answer = await send(port, { path: '/api/ping', headers: { Authorization: `Bearer ${String(token)}` } })
  assert.deepEqual(outcome(answer), [401, 'token_disabled'])
})
