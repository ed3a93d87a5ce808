// No secret of a hook is ever written down in clear: hook ids and signing secrets go in by every door, and neither the log nor stdout, the
// files of the database, metrics, the audit log, pages of the console or an answer holds a piece of one afterwards.

import assert from 'node:assert/strict'
import { createHmac, randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { type TestContext, test } from 'node:test'
import { issueHook } from '../../src/auth/hook-lifecycle.ts'
import { mintHookId } from '../../src/auth/token.ts'
import { HOOK_PATH } from '../../src/model/hook.ts'
import { randomBase62 } from '../../src/runtime/id.ts'
import { Secrets } from '../../src/runtime/secrets.ts'
import type { Store } from '../../src/store/contract/store.ts'
import { secretsKeyFile } from '../../src/store/open.ts'
import { findCanaries, type Place, placesOfDatabase } from '../support/canaries.ts'
import { RawConnection, send } from '../support/client.ts'
import { type Driver, drivers } from '../support/drivers.ts'
import { createToken, withStore } from '../support/journal.ts'
import { intray, startServer } from '../support/process.ts'
import { until, within } from '../support/until.ts'

const TENANT = { accountId: 7, companyId: 42 }

async function makeHook(store: Store, secrets: Secrets, recipe: string, secret: string | null): Promise<string> {
  const box = await secrets.boxForSealing(async () => (await store.hooks.list('', 1)).length > 0)
  const terms = { scope: 'hook', label: recipe, expiresAt: null, rateLimit: null, maxBody: null, definition: null }
  const { opened } = await issueHook(store.hooks, box, TENANT, { ...terms, recipe: `${recipe}/1`, secret }, Date.now())
  return opened.hookId
}

function request(method: string, target: string, headers: readonly string[], body = ''): string {
  const length = body === '' ? [] : [`Content-Length: ${Buffer.byteLength(body)}`]
  return `${[`${method} ${target} HTTP/1.1`, 'Host: test', 'Connection: close', ...length, ...headers].join('\r\n')}\r\n\r\n${body}`
}

/** As a URL may have it: it reaches the hook like the plain one. */
const escaped = (text: string) => Array.from(text, (char) => `%${char.charCodeAt(0).toString(16)}`).join('')

const JSON_TYPE = 'Content-Type: application/json'
const FORM = 'Content-Type: application/x-www-form-urlencoded'

for (const driver of drivers) {
  test(`${driver.name}: hook ids and signing secrets leave no trace in logs, errors, metrics, the database, audit or console`, (t) =>
    leavesNoTrace(t, driver))
}

async function leavesNoTrace(t: TestContext, driver: Driver): Promise<void> {
  const url = await driver.newDatabase()
  // SQLite has a key file.
  const key = secretsKeyFile(url) === null ? randomBytes(32) : null
  const keyEnv: Record<string, string> = key === null ? {} : { INTRAY_SECRETS_KEY: key.toString('base64') }
  const secrets = new Secrets({ key, file: secretsKeyFile(url) })
  const canaries = new Map<string, string>()
  const canary = (what: string, text = randomBase62(36)): string => {
    canaries.set(text, what)
    return text
  }
  const secret = {
    github: canary('a signing secret'),
    telegram: canary('a secret token'),
    rotated: canary('a rotated secret'),
  }
  const { bearer, ids } = await withStore(url, async (store) => ({
    bearer: await createToken(store),
    ids: {
      form: canary('the id of a hook without a signature', await makeHook(store, secrets, 'elementor', null)),
      github: canary('the id of a signed hook', await makeHook(store, secrets, 'github', secret.github)),
      telegram: canary(
        'the id of a hook with a secret token',
        await makeHook(store, secrets, 'telegram', secret.telegram),
      ),
      whatsapp: canary(
        'the id of a hook with a challenge',
        await makeHook(store, secrets, 'whatsapp', canary('an app secret')),
      ),
      unknown: canary('an unknown hook id', mintHookId().token),
    },
  }))
  canary('the escaped id of a hook', escaped(ids.form))
  const env = {
    ...keyEnv,
    INTRAY_DATABASE_URL: url,
    INTRAY_MAX_BODY_BYTES: '4096',
    INTRAY_LOG_LEVEL: 'debug',
    INTRAY_METRICS: '127.0.0.1:0',
  }
  const server = await startServer(t, env)
  const at = (id: string) => `${HOOK_PATH}${id}`
  const signed = (body: string) =>
    `X-Hub-Signature-256: sha256=${createHmac('sha256', secret.github).update(body).digest('hex')}`
  const doors: Record<string, string> = {
    'stored, without a signature': request('POST', at(ids.form), [FORM], 'name=Ada'),
    'stored, signed': request('POST', at(ids.github), [JSON_TYPE, signed('{"zen":1}')], '{"zen":1}'),
    'stored, with a secret token': request(
      'POST',
      at(ids.telegram),
      [JSON_TYPE, `X-Telegram-Bot-Api-Secret-Token: ${secret.telegram}`],
      '{"update_id":1}',
    ),
    'with a wrong signature': request('POST', at(ids.github), [JSON_TYPE, signed('{}')], '{"zen":2}'),
    'with a wrong secret token': request(
      'POST',
      at(ids.telegram),
      [JSON_TYPE, `X-Telegram-Bot-Api-Secret-Token: ${canary('a wrong secret token')}`],
      '{"update_id":2}',
    ),
    'with no signature': request('POST', at(ids.github), [JSON_TYPE], '{}'),
    'refused for its JSON': request(
      'POST',
      at(ids.telegram),
      [JSON_TYPE, `X-Telegram-Bot-Api-Secret-Token: ${secret.telegram}`],
      '{"a":',
    ),
    'refused, with its address in the body': request(
      'POST',
      at(ids.github),
      [JSON_TYPE],
      `{"url":"https://x${at(ids.github)}"}`,
    ),
    'refused for its size': request('POST', at(ids.form), [FORM], `a=${'x'.repeat(5000)}`),
    'refused for its encoding': request('POST', at(ids.form), [FORM, 'Content-Encoding: br'], 'a=b'),
    'refused for its kind': request('POST', at(ids.github), ['Content-Type: text/html', signed('x')], 'x'),
    'by GET': request('GET', at(ids.form), []),
    'with a wrong verify token': request(
      'GET',
      `${at(ids.whatsapp)}?hub.mode=subscribe&hub.verify_token=x&hub.challenge=1`,
      [],
    ),
    'by another method': request('DELETE', at(ids.form), []),
    'with a trailing slash': request('POST', `${at(ids.form)}/`, [FORM], 'a=b'),
    'with more of a path': request('POST', `${at(ids.form)}/x`, [FORM], 'a=b'),
    'in a misspelt path': request('POST', `/v1/hook/${ids.form}`, [FORM], 'a=b'),
    'in a misspelt path, escaped': request('POST', `/v1/hook/${escaped(ids.form)}`, [FORM], 'a=b'),
    'in a path with a bad escape': request('POST', `/v1/hooks/%zz${ids.form}`, [FORM], 'a=b'),
    'in the path of an absolute target': request('POST', `http://test${at(ids.form)}`, [FORM], 'a=b'),
    unknown: request('POST', at(ids.unknown), [FORM], 'a=b'),
    'as a bearer token': request('POST', '/v1/inbox/events', [JSON_TYPE, `Authorization: Bearer ${ids.form}`], '{}'),
    'in the query of the tester': request('GET', `/api/inbox-test?token=${ids.form}`, []),
    'in the user agent': request(
      'POST',
      '/v1/inbox/events',
      [JSON_TYPE, `Authorization: Bearer ${bearer}`, `User-Agent: ${ids.form}`],
      '{}',
    ),
    'in Referer': request('GET', '/api/ping', [`Referer: https://x${at(ids.form)}`]),
    'as the Idempotency-Key': request(
      'POST',
      '/v1/inbox/events',
      [JSON_TYPE, `Authorization: Bearer ${bearer}`, `Idempotency-Key: ${ids.form}`],
      '{}',
    ),
  }
  const answers: Place[] = []
  for (const [name, bytes] of Object.entries(doors)) {
    const connection = await RawConnection.open(server.port)
    connection.write(bytes)
    await within(`the answer to a hook id ${name}`, connection.closed)
    assert.match(connection.text, /^HTTP\/1\.1 \d{3} /, name)
    answers.push({ name: `the answer ${name}`, bytes: Buffer.from(connection.text, 'latin1') })
  }
  assert.equal(answers.filter(({ bytes }) => bytes.includes('200 OK')).length, 7, 'the control: these are stored')

  // A rotation by the console: the session of a viewer, who may see no address, and the audit log of an admin.
  const link = (await until('the link is printed', () => /#link=(\w{43})\n/.exec(server.stdout())?.[1])) as string
  const signIn = await send(server.port, {
    method: 'POST',
    path: '/v1/console/session',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ link }),
  })
  const admin = {
    Cookie: signIn.headers['set-cookie']![0]!.split(';')[0]!,
    'Intray-Tenant': '7/42',
    Origin: server.url,
  }
  const keyId = ids.github.split('_')[1]!
  const rotation = await send(server.port, {
    method: 'POST',
    path: `/v1/console/hooks/${keyId}/rotate`,
    headers: { ...admin, 'Content-Type': 'application/json' },
    body: JSON.stringify({ what: 'secret', secret: secret.rotated, overlap: '1h' }),
  })
  assert.equal(rotation.status, 200, rotation.text)
  const paths = [
    '/v1/console/hooks',
    `/v1/console/hooks/${keyId}/deliveries`,
    '/v1/console/recipes',
    '/v1/console/audit',
    '/v1/console/tokens',
  ]
  for (const path of [
    ...paths,
    '/v1/console/overview',
    '/v1/inbox/events',
    '/v1/inbox/refusals',
    '/console',
    '/console/queue',
  ])
    answers.push({ name: path, bytes: Buffer.from((await send(server.port, { path, headers: admin })).text) })
  const metrics = await until(
    'the address of metrics is logged',
    () => /http:\/\/127\.0\.0\.1:\d+\/metrics/.exec(server.stderr())?.[0],
  )
  const scraped = await fetch(metrics as string).then((answer) => answer.text())
  assert.match(scraped, /reason="unknown_hook"\} 1/)
  answers.push({ name: 'metrics', bytes: Buffer.from(scraped) })
  const commands = [['hook', 'list'], ['token', 'list'], ['doctor'], ['serve', '--print-config'], ['hook', 'recipes']]
  for (const args of commands) {
    const { code, stdout, stderr } = await intray(args, { ...keyEnv, INTRAY_DATABASE_URL: url })
    assert.ok(code === 0 || args[0] === 'doctor', `${args.join(' ')}: ${stdout}${stderr}`)
    answers.push({ name: args.join(' '), bytes: Buffer.from(stdout.toString() + stderr) })
  }

  const running = await placesOfDatabase(url, 'while the server runs')
  server.child.kill('SIGTERM')
  assert.equal(await within('the server to end', server.exited), 0)
  const places = [
    ...running,
    ...(await placesOfDatabase(url, 'after the stop')),
    { name: 'stdout', bytes: Buffer.from(server.stdout()) },
    { name: 'stderr', bytes: Buffer.from(server.stderr()) },
    ...answers,
  ]
  t.diagnostic(`${canaries.size} canaries; ${places.length} files, streams and answers`)
  assert.deepEqual(findCanaries(places, canaries), [])
  const keyText = keyEnv.INTRAY_SECRETS_KEY ?? readFileSync(secretsKeyFile(url)!, 'utf8').trim()
  assert.deepEqual(findCanaries(places, new Map([[keyText, 'the key of secrets']])), [])
  assert.deepEqual(findCanaries([{ name: 'planted', bytes: Buffer.from(`x${secret.rotated}`) }], canaries), [
    'planted: a rotated secret',
  ])
  await withStore(url, async ({ hooks }) => assert.equal((await hooks.list('', 9)).length, 4, 'they are there, sealed'))
}
