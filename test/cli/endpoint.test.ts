// `./intray endpoint`: set, list, show, pause, resume, rotate, test, replay, remove, beside a server that takes over each change.

import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { existsSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { secretsKeyFile } from '../../src/store/open.ts'
import { createToken, withStore } from '../support/journal.ts'
import { type Driver, drivers } from '../support/drivers.ts'
import { idOf, item } from '../store/rows.ts'
import { intray, startServer } from '../support/process.ts'
import { isSignedWith, startReceiver, status } from '../support/receiver.ts'
import { tempFolder } from '../support/temp.ts'
import { until } from '../support/until.ts'

const TENANT = ['--account', '7', '--company', '42']
/** A receiver that stands still is not pushed to twice. */
const PATIENT = ['--timeout', '60s']

interface Setting {
  readonly env: Record<string, string>
  readonly url: string
  /** Runs a command that must succeed, and parses what it prints. */
  run(...args: string[]): Promise<Record<string, unknown>>
  /** The same without --json: what people read. */
  told(...args: string[]): Promise<string>
  fails(code: number, ...args: string[]): Promise<string>
}

async function setting(driver: Driver): Promise<Setting> {
  const url = await driver.newDatabase()
  const env = {
    INTRAY_DATABASE_URL: url,
    INTRAY_SECRETS_KEY: randomBytes(32).toString('base64'),
    INTRAY_PUSH_ALLOW: 'loopback',
  }
  assert.equal((await intray(['init'], env)).code, 0)
  await withStore(url, (store) => createToken(store))
  const told = async (...args: string[]) => {
    const { code, stdout, stderr } = await intray(['endpoint', ...args, ...TENANT], env)
    assert.equal(code, 0, stderr)
    return stdout.toString()
  }
  return {
    env,
    url,
    told,
    run: async (...args) => JSON.parse(await told(...args, '--json')) as Record<string, unknown>,
    fails: async (code, ...args) => {
      const finished = await intray(['endpoint', ...args, ...TENANT], env)
      assert.equal(finished.code, code, finished.stderr)
      return finished.stderr
    },
  }
}

const store = (url: string, count: number) =>
  withStore(url, async (opened) =>
    (await opened.journal.append(Array.from({ length: count }, () => item({ channelRef: 'c' })))).map(idOf),
  )

const auditOf = (url: string) =>
  withStore(url, async (opened) =>
    (await opened.operators.listAudit(null, 50)).map(({ action }) => action).toReversed(),
  )

for (const driver of drivers) {
  test(`${driver.name}: an endpoint is set, changed, paused, resumed, rotated, replayed and removed, on every server within seconds`, async (t) => {
    const { env, url, run, told, fails } = await setting(driver)
    const receiver = await startReceiver(t)
    const servers = [await startServer(t, env)]
    // SQLite has one server.
    if (driver.name !== 'sqlite') servers.push(await startServer(t, env))
    const inForce = async (revision: number) => {
      for (const { stderr } of servers) {
        await until(`revision ${revision} is in effect`, () => stderr().includes(`"revision":${revision},`))
      }
    }
    const folder = tempFolder('endpoint')
    const headers = join(folder, 'headers')
    writeFileSync(headers, 'X-Api-Key: very-secret\n')
    const secret = ['--secret-header-file', headers]
    const made = await run('set', '--url', receiver.url, '--header', 'X-Team: crm', ...secret, ...PATIENT)
    assert.equal(made.url, receiver.url.replace(/\?.*/, '?[redacted]'))
    assert.deepEqual(made.headers, [
      { name: 'X-Team', value: 'crm', secret: false },
      { name: 'X-Api-Key', value: null, secret: true },
    ])
    await inForce(1)
    const [first] = await store(url, 1)
    const one = await until('it arrived', () => receiver.received[0])
    assert.ok(isSignedWith(String(made.secret), one))
    assert.deepEqual([one.eventId, one.headers['x-api-key'], one.headers['x-team']], [first, 'very-secret', 'crm'])

    await run('pause')
    await inForce(2)
    const [second] = await store(url, 1)
    assert.equal((await run('show')).state, 'paused')
    await run('resume')
    await until('the other one arrived', () => receiver.received[1]?.eventId === second)

    const rotated = await run('rotate-secret', '--overlap', '1h')
    await inForce(4)
    await store(url, 1)
    const three = await until('a third one arrived', () => receiver.received[2])
    for (const secret of [made.secret, rotated.secret]) assert.ok(isSignedWith(String(secret), three))

    const range = ['--from', '1', '--to', String(second)]
    const counted = await until('both are done', async () => {
      const { matched, replayed } = await run('replay', ...range)
      return matched === 2 && { matched, replayed }
    })
    assert.equal(counted.replayed, 0)
    assert.equal(await told('replay', ...range, '--yes'), '2 of 2 events are delivered again.\n')
    await until('they arrived again', () => receiver.received.length === 5)
    assert.equal(receiver.received.filter(({ id }) => id === one.id).length, 2)

    const tested = await run('test')
    assert.deepEqual([tested.status, tested.body], [200, 'ok'])
    assert.equal(receiver.received.at(-1)?.headers['intray-test'], 'true')
    receiver.respond = status(503)
    assert.equal((await intray(['endpoint', 'test', ...TENANT], env)).code, 1)

    const listed = await intray(['endpoint', 'list', '--json'], env)
    assert.equal((JSON.parse(listed.stdout.toString()) as { subscription: string }).subscription, 'default')
    assert.equal(await told('remove'), 'The endpoint of default is removed.\n')
    assert.match(await fails(1, 'show'), /has no endpoint. Set one: \.\/intray endpoint set/)
    const actions = ['set', 'pause', 'resume', 'rotate', 'replay', 'test', 'test', 'remove'].map(
      (name) => `endpoint_${name}`,
    )
    assert.deepEqual(await auditOf(url), actions)
  })
}

test('what is wrong with an endpoint is said before anything is stored', async () => {
  const { run, fails } = await setting(drivers[0]!)
  const url = 'https://example.com/'
  assert.match(await fails(2, 'set'), /A new endpoint needs --url URL/)
  assert.match(await fails(2, 'set', '--url', 'ftp://example.com'), /--url must be a URL that begins with https/)
  assert.match(await fails(2, 'set', '--url', 'https://u:p@example.com'), /must not hold a user or password/)
  assert.match(await fails(2, 'set', '--url', url, '--timeout', '2h'), /--timeout must be a duration from 1s to 60s/)
  assert.match(await fails(2, 'set', '--url', url, '--header', 'nothing'), /must be written as Name: value/)
  assert.match(await fails(2, 'set', '--url', url, '--header', 'Host: x'), /names Host, which the service sets/)
  assert.match(await fails(1, 'set', '--url', url, '--subscription', 'crm'), /inbox subscription crm/)
  assert.equal((await run('set', '--url', url)).state, 'active')
})

test('an endpoint on PostgreSQL needs INTRAY_SECRETS_KEY', async () => {
  const { env } = await setting(drivers[1]!)
  const { INTRAY_SECRETS_KEY: _left, ...without } = env
  const { code, stderr } = await intray(['endpoint', 'set', '--url', 'https://example.com/', ...TENANT], without)
  assert.equal(code, 1)
  assert.match(stderr, /INTRAY_SECRETS_KEY is not set/)
})

test('on SQLite the first endpoint makes the key file', async (t: TestContext) => {
  const { env, url } = await setting(drivers[0]!)
  const { INTRAY_SECRETS_KEY: _left, ...without } = env
  const receiver = await startReceiver(t)
  const { code, stderr } = await intray(['endpoint', 'set', '--url', receiver.url, ...TENANT], without)
  assert.equal(code, 0, stderr)
  await startServer(t, without)
  await store(url, 1)
  await until('it arrived', () => receiver.received.length === 1)
})

test('a key file that was lost is not replaced for a hook while an endpoint is sealed under it', async () => {
  const { env, url } = await setting(drivers[0]!)
  const { INTRAY_SECRETS_KEY: _left, ...without } = env
  const set = await intray(['endpoint', 'set', '--url', 'https://example.com/', ...TENANT], without)
  assert.equal(set.code, 0, set.stderr)
  const file = secretsKeyFile(url)!
  rmSync(file)
  const { code, stderr } = await intray(['hook', 'create', '--recipe', 'telegram', ...TENANT], without)
  assert.deepEqual([code, /key of secrets is missing: put back/.test(stderr)], [1, true], stderr)
  assert.ok(!existsSync(file))
})

for (const driver of drivers) {
  test(`${driver.name}: a tenant that moves takes its endpoint along, and is pushed to from there alone`, async (t) => {
    const { env, url, run } = await setting(driver)
    const receiver = await startReceiver(t)
    await run('set', '--url', receiver.url, ...PATIENT)
    const target = await driver.newDatabase()
    const targetEnv = { ...env, INTRAY_DATABASE_URL: target }
    assert.equal((await intray(['init', '--key-from', url], targetEnv)).code, 0)
    await startServer(t, env)
    const [first] = await store(url, 1)
    await until('the source pushes', () => receiver.received.length === 1)
    // What was not acknowledged yet would be delivered again by the target, once its lease has ended.
    const range = ['--from', String(first), '--to', String(first)]
    await until('it is done', async () => (await run('replay', ...range)).matched === 1)
    const moved = await intray(['copy', '--tenant', '7/42', '--from', url, '--to', target], {})
    assert.equal(moved.code, 0, moved.stderr)
    await withStore(url, async ({ endpoints }) => {
      const [gone] = await endpoints.changedSince(0, 10)
      assert.equal(gone?.isGone, true, 'the source no longer pushes')
    })
    await startServer(t, targetEnv)
    await store(target, 1)
    await until('the target pushes', () => receiver.received.length === 2)
    const [one, two] = receiver.received
    assert.equal(one!.eventId, first)
    assert.ok(
      two!.eventId > one!.eventId && two!.id.split('_')[2] === one!.id.split('_')[2],
      'the endpoint is the same',
    )
  })
}
