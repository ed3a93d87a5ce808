// `./intray operator`: who may sign in to the console, beside a running server and without one.

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { send } from '../support/client.ts'
import { intrayJson } from '../support/command.ts'
import { startCommand } from '../support/fed-command.ts'
import { withStore } from '../support/journal.ts'
import { intray, startServer } from '../support/process.ts'
import { tempFolder } from '../support/temp.ts'
import { until } from '../support/until.ts'

const newEnv = () => ({ INTRAY_DATABASE_URL: `sqlite:${join(tempFolder('cli-operator'), 'intray.db')}` })

test('add makes an operator and a link; list shows each; every call is in the audit log', async () => {
  const env = newEnv()
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

test('a call that is wrong changes nothing and says what to do', async () => {
  const env = newEnv()
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

test('passwd reads from stdin; with it one signs in at a running server, and disable ends the session', async (t) => {
  const env = newEnv()
  await intrayJson(['operator', 'add', 'ada'], env)
  const short = await startCommand(t, ['operator', 'passwd', 'ada'], env, 'short\n').finished
  assert.equal(short.code, 1)
  assert.match(short.stderr, /10 to 256 characters/)
  const set = await startCommand(t, ['operator', 'passwd', 'ada'], env, 'correct horse battery\n').finished
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
  assert.match(String(link), /#link=/)
})
