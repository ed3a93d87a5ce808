// `./intray inbox tail`: a tenant's events as they come in, one line each.

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { send } from '../support/client.ts'
import { type Driver, drivers } from '../support/drivers.ts'
import { startCommand } from '../support/fed-command.ts'
import { createToken, untilIndexed, withStore } from '../support/journal.ts'
import { intray, startServer } from '../support/process.ts'
import { tempFolder } from '../support/temp.ts'
import { until, within } from '../support/until.ts'

const TENANT = ['--account', '7', '--company', '42']

async function start(t: TestContext, driver: Driver) {
  const env = { INTRAY_DATABASE_URL: await driver.newDatabase() }
  const [token, other] = await withStore(env.INTRAY_DATABASE_URL, async (store) => [
    await createToken(store),
    await createToken(store, { accountId: 8 }),
  ])
  const server = await startServer(t, env)
  const post = async (body: object, sender = token!) => {
    const headers = { Authorization: `Bearer ${sender}`, 'Content-Type': 'application/json' }
    const answer = await send(server.port, { method: 'POST', path: '/api/inbox', headers, body: JSON.stringify(body) })
    return answer.json?.id as number
  }
  const tail = (...args: string[]) => {
    const command = startCommand(t, ['inbox', 'tail', ...TENANT, ...args], env)
    return {
      ...command,
      lines: (count: number) =>
        until(`${count} lines`, () => {
          const lines = command.stdout().split('\n').slice(0, -1)
          return lines.length >= count && lines
        }),
    }
  }
  return { env, post, other: other!, tail }
}

for (const driver of drivers) {
  test(`${driver.name}: the events of the tenant, from an id on and as they come, until Ctrl-C`, async (t) => {
    const { env, post, other, tail } = await start(t, driver)
    const first = await post({ channel_ref: 'shop', contact: { name: 'Ada' }, message: { text: 'Hello' } })
    const second = await post({ source_ref: 's', contact: { email: 'b@c.example' } })
    await post({ message: { text: 'not yours' } }, other)
    const revision = await post({ source_ref: 's', message: { text: 'changed' } })
    assert.equal(revision, second)
    await untilIndexed(env.INTRAY_DATABASE_URL)
    const text = tail('--after', '0')
    const json = tail('--after', String(first), '--json')
    await text.lines(3)
    await json.lines(2)
    const last = await post({ message: { text: 'while you look' } })
    const lines = await text.lines(4)
    assert.match(lines[0]!, new RegExp(`^\\d{4}-[\\dT:.-]+Z +${first} {2}shop {2}Ada {2}Hello$`))
    assert.match(lines[1]!, new RegExp(` ${second} {2}- {2}b@c\\.example {2}-$`))
    assert.match(lines[2]!, new RegExp(`\\(revises ${second}\\) changed$`))
    assert.match(lines[3]!, new RegExp(` ${last} {2}- {2}- {2}while you look$`))
    const objects = (await json.lines(3)).map((line) => JSON.parse(line) as Record<string, unknown>)
    assert.deepEqual(
      objects.map(({ kind, snippet }) => [kind, snippet]),
      [
        ['event', null],
        ['revision', 'changed'],
        ['event', 'while you look'],
      ],
    )
    assert.deepEqual([objects[0]!.id, objects[2]!.id], [second, last])
    for (const command of [text, json]) {
      command.child.kill('SIGINT')
      const { code, stderr } = await within('its end', command.finished)
      assert.deepEqual([code, stderr], [0, ''])
    }
  })
}

test('without --after it begins with what comes in from now on; nothing in a message reaches the terminal', async (t) => {
  const { env, post, tail } = await start(t, drivers[0]!)
  await post({ message: { text: 'before' } })
  await untilIndexed(env.INTRAY_DATABASE_URL)
  const command = tail()
  // It says nothing when it is ready: what it shows first is one of these.
  let n = 0
  const lines = await until('the first line', async () => {
    const hostile = { name: '\u001b]0;owned\u0007', email: 'x' }
    await post({ channel_ref: `room\r\u001b[2K${n++}`, contact: hostile, message: { text: 'a\u202eb\u2028c' } })
    const found = command.stdout().split('\n').slice(0, -1)
    return found.length > 0 && found
  })
  assert.match(lines[0]!, / {2}room\\u000d\\u001b\[2K\d+ {2}\\u001b\]0;owned\\u0007 {2}a\\u202eb c$/)
  assert.doesNotMatch(command.stdout(), /[^\P{Cc}\n]|[\p{Cf}\u2028\u2029]|before/u)
})

test('a call that is wrong is refused with code 2', async () => {
  const env = { INTRAY_DATABASE_URL: `sqlite:${join(tempFolder(), 'intray.db')}` }
  for (const args of [
    [],
    ['tial', ...TENANT],
    ['tail'],
    ['tail', '--account', '7'],
    ['tail', '--account', 'x', '--company', '42'],
    ['tail', ...TENANT, '--after', '-1'],
    ['tail', ...TENANT, 'more'],
  ]) {
    const { code, stderr } = await intray(['inbox', ...args], env)
    assert.equal(code, 2, `${args.join(' ')}: ${stderr}`)
  }
})
