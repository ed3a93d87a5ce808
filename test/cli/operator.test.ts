// `./intray operator`: who may sign in to the console, beside a running server and without one.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { send } from '../support/client.ts'
import { intrayJson, newDatabaseEnv } from '../support/command.ts'
import { startCommand } from '../support/fed-command.ts'
import { withStore } from '../support/journal.ts'
import { intray, startServer } from '../support/process.ts'
import { until } from '../support/until.ts'

const newEnv = () => newDatabaseEnv('cli-operator')

test('add makes an operator and a link; list shows each; every call is in the audit log', async () => {
  const env = await newEnv()
  const { link, ...made } = await intrayJson(['operator', 'add', 'ada', '--tenant', '1/1', '--tenant', '7/42'], env)
  assert.match(String(link), /^http:\/\/127\.0\.0\.1:8080\/console#link=[0-9A-Za-z]{43}$/)
  assert.deepEqual(
    { ...made, created_at: null },
    { name: 'ada', role: 'viewer', tenants: '1/1 7/42', signs_in_by: 'link', created_at: null, disabled_at: null },
  )
  await intrayJson(['operator', 'add', 'bob', '--role', 'admin'], env)
  const list = await intray(['operator', 'list'], env)
  assert.match(list.stdout.toString(), /^ada +viewer +active +link +1\/1 7\/42$/m)
  assert.match(list.stdout.toString(), /^bob +admin +active +link +all$/m)
  await withStore(env.INTRAY_DATABASE_URL, async ({ operators }) => {
    const entries = await operators.listAudit(null, 9)
    assert.deepEqual(entries.map(({ action, operator, target }) => [action, operator, target]).toSorted(), [
      ['operator_add', '(command line)', 'ada'],
      ['operator_add', '(command line)', 'bob'],
    ])
  })
})

test('role and remove keep the last admin unless told otherwise, end sessions, and are in the audit log', async () => {
  const env = await newEnv()
  await intrayJson(['operator', 'add', 'ada', '--role', 'admin'], env)
  await intrayJson(['operator', 'add', 'bob'], env)
  for (const args of [
    ['remove', 'ada'],
    ['role', 'ada', 'viewer'],
  ]) {
    const { code, stderr } = await intray(['operator', ...args], env)
    assert.equal(code, 1)
    assert.match(
      stderr,
      /^intray: Operator ada is the last admin who can sign in\. Add another first .* or add --yes\.$/m,
    )
  }
  assert.equal((await intrayJson(['operator', 'role', 'bob', 'admin'], env)).role, 'admin')
  assert.equal((await intrayJson(['operator', 'remove', 'ada'], env)).name, 'ada')
  const last = await intray(['operator', 'remove', 'bob', '--yes'], env)
  assert.deepEqual([last.code, last.stdout.toString()], [0, 'Operator bob is removed.\n'])
  await withStore(env.INTRAY_DATABASE_URL, async ({ operators }) => {
    assert.deepEqual(await operators.list(), [])
    const actions = (await operators.listAudit(null, 9)).map(({ action, target }) => `${action} ${target}`)
    assert.deepEqual(actions.toSorted(), [
      'operator_add ada',
      'operator_add bob',
      'operator_remove ada',
      'operator_remove bob',
      'operator_role bob',
    ])
  })
})

test('a call that is wrong changes nothing and says what to do', async () => {
  const env = await newEnv()
  await intrayJson(['operator', 'add', 'ada'], env)
  const wrong: [args: string[], code: number, says: RegExp][] = [
    [['add', 'Ada!'], 2, /NAME takes/],
    [['add', 'bob', '--role', 'root'], 2, /--role takes one of: viewer, admin/],
    [['add', 'bob', '--tenant', '1'], 2, /--tenant takes ACCOUNT\/COMPANY/],
    [['add', 'ada'], 1, /operator link ada/],
    [['add'], 2, /NAME is missing/],
    [['list', 'ada'], 2, /Unexpected argument "ada"/],
    [['disable', 'nobody'], 1, /There is no operator nobody/],
    [['disable', 'ada', '--role', 'admin'], 2, /There is no flag --role/],
    [['role', 'ada'], 2, /Give the name and the role/],
    [['role', 'ada', 'root'], 2, /ROLE is one of: viewer, admin/],
    [['role', 'nobody', 'admin'], 1, /There is no operator nobody/],
    [['remove', 'nobody'], 1, /There is no operator nobody/],
    [['fire', 'ada'], 2, /There is no command "operator fire"/],
  ]
  for (const [args, code, says] of wrong) {
    const finished = await intray(['operator', ...args], env)
    assert.equal(finished.code, code, args.join(' '))
    assert.match(finished.stderr, says)
  }
  const operators = await withStore(env.INTRAY_DATABASE_URL, (store) => store.operators.list())
  assert.deepEqual(
    operators.map(({ name }) => name),
    ['ada'],
  )
})

test('password reads from stdin; with it one signs in at a running server, and disable ends the session', async (t) => {
  const env = await newEnv()
  await intrayJson(['operator', 'add', 'ada'], env)
  const short = await startCommand(t, ['operator', 'password', 'ada'], env, 'short\n').finished
  assert.equal(short.code, 1)
  assert.match(short.stderr, /10 to 256 characters/)
  const set = await startCommand(t, ['operator', 'password', 'ada'], env, 'correct horse battery\n').finished
  assert.equal(set.code, 0, set.stderr)
  assert.ok(!set.stdout.includes('correct'))

  const server = await startServer(t, env)
  const signedIn = await send(server.port, {
    method: 'POST',
    path: '/v1/console/session',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ name: 'ada', password: 'correct horse battery' }),
  })
  assert.equal(signedIn.status, 200, signedIn.text)
  const headers = { Cookie: signedIn.headers['set-cookie']![0]!.split(';')[0]! }
  const ask = () => send(server.port, { path: '/v1/console/session', headers })
  assert.equal((await ask()).status, 200)
  assert.notEqual((await intrayJson(['operator', 'disable', 'ada'], env)).disabled_at, null)
  await until('the session is over', async () => (await ask()).status === 401)
  assert.equal((await intray(['operator', 'link', 'ada'], env)).code, 1, 'no link for who is disabled')
  assert.equal((await intrayJson(['operator', 'enable', 'ada'], env)).disabled_at, null)
  assert.equal((await ask()).status, 401, 'what was ended stays ended')
  const { link } = await intrayJson(['operator', 'link', 'ada'], env)
  assert.ok(String(link).startsWith(`${server.url}/console#link=`), 'the address of the running server')

  const byLink = await send(server.port, {
    method: 'POST',
    path: '/v1/console/session',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ link: String(link).split('#link=')[1] }),
  })
  const cookie = { Cookie: byLink.headers['set-cookie']![0]!.split(';')[0]! }
  const askAgain = () => send(server.port, { path: '/v1/console/session', headers: cookie })
  assert.equal((await askAgain()).status, 200, 'control')
  await intrayJson(['operator', 'remove', 'ada'], env)
  await until('the session of the removed operator is over', async () => (await askAgain()).status === 401)
})
