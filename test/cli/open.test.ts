// Which commands make a database, and what the others say where there is none: in the wrong folder, any other would report on an empty one.

import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { COMMANDS } from '../../src/cli/run.ts'
import { runToEnd } from '../support/command.ts'
import { drivers } from '../support/drivers.ts'
import { intray, LAUNCHER } from '../support/process.ts'
import { tempFolder } from '../support/temp.ts'

const TENANT = '--account 1 --company 1'
const MISSING = /^intray: (There is no database at \/|The database \w+ has no Intray data)/

/** For each command that takes a database, arguments that let it get as far as opening it. */
const CALLS: Readonly<Record<string, string>> = {
  'token create': TENANT,
  'token import': './tokens.csv',
  'token list': '',
  'token show': 'abc',
  'token disable': 'abc',
  'token enable': 'abc',
  'token limit': 'abc --rate-limit off',
  'token rotate': 'abc',
  'operator add': 'ada',
  'operator list': '',
  'operator link': 'ada',
  'operator password': 'ada',
  'operator role': 'ada admin',
  'operator disable': 'ada',
  'operator enable': 'ada',
  'operator remove': 'ada --yes',
  'inbox list': TENANT,
  'inbox show': `1 ${TENANT}`,
  'inbox tail': TENANT,
  'inbox claim': TENANT,
  'inbox ack': `1 lease ${TENANT}`,
  'inbox release': `1 lease ${TENANT}`,
  'inbox subscription': TENANT,
  'inbox requeue': `1 ${TENANT}`,
  'event show': '1',
  erase: '--event 1 --yes',
  'hook create': `--recipe telegram ${TENANT}`,
  'hook list': '',
  'hook show': 'abc',
  'hook disable': 'abc',
  'hook enable': 'abc',
  'hook rotate': 'abc',
  'hook send-sample': 'abc',
  'endpoint set': `--url https://crm.example.com/intray ${TENANT}`,
  'endpoint list': '',
  'endpoint show': TENANT,
  'endpoint pause': TENANT,
  'endpoint resume': TENANT,
  'endpoint rotate-secret': TENANT,
  'endpoint test': TENANT,
  'endpoint replay': `--from 1 --to 2 --yes ${TENANT}`,
  'endpoint remove': TENANT,
  'retention set': '--default --events 30d',
  'retention show': '',
  'retention preview': '',
  doctor: '',
  epoch: '--no-erasures',
  export: '--out ./out.ndjson',
  import: './out.ndjson',
  backup: './out.db',
  copy: '--to sqlite:./copy/intray.db',
  salvage: '--to ./salvaged.db',
  reindex: '',
}

const AT_ONCE = 4

/** These make a database (restore: the one that --to names), or take none. */
const OTHERS = ['serve', 'init', 'restore', 'send', 'verify', 'hook recipes', 'hook check']

async function leafCommands(): Promise<string[]> {
  const names: string[] = []
  for (const [name, load] of Object.entries(COMMANDS)) {
    const found = await load()
    if ('subcommands' in found) names.push(...Object.keys(found.subcommands).map((sub) => `${name} ${sub}`))
    else names.push(name)
  }
  return names
}

test('a command in an empty folder makes no file, and exits with 2 and the path it looked at', async () => {
  assert.deepEqual((await leafCommands()).toSorted(), [...Object.keys(CALLS), ...OTHERS].toSorted())
  const folder = tempFolder('empty')
  const calls = Object.entries(CALLS)
  for (let at = 0; at < calls.length; at += AT_ONCE) {
    await Promise.all(
      calls.slice(at, at + AT_ONCE).map(async ([name, args]) => {
        const line = [LAUNCHER, ...`${name} ${args}`.trim().split(' ')]
        const { code, stdout, stderr, databases } = await runToEnd(line, {}, { cwd: folder })
        assert.deepEqual([code, stdout.toString(), databases], [2, '', []], `${name}: ${stderr}`)
        assert.ok(stderr.startsWith(`intray: There is no database at ${join(folder, 'data', 'intray.db')}. `), stderr)
      }),
    )
    assert.deepEqual(readdirSync(folder, { recursive: true }), [], String(calls.slice(at, at + AT_ONCE)))
  }
  const control = await runToEnd([LAUNCHER, 'init'], {}, { cwd: folder })
  assert.equal(control.code, 0, control.stderr)
  assert.ok(readdirSync(join(folder, 'data')).includes('intray.db'), 'control: the listing shows a file that is made')
})

for (const driver of drivers) {
  test(`${driver.name}: init makes a database once, and every command names the one that it used`, async () => {
    const url = await driver.newDatabase()
    const env = { INTRAY_DATABASE_URL: url }
    const early = await intray(['operator', 'add', 'ada'], env)
    assert.equal(early.code, 2)
    assert.match(early.stderr, MISSING)
    assert.match(early.stderr, /^No server of this user runs here\. For a new database: \.\/intray init$/m)

    const made = await intray(['init'], env)
    const [, name] = /^The database is new: (\S+)$/m.exec(made.stdout.toString())!
    assert.deepEqual([made.code, made.stderr, made.databases], [0, '', []])
    const again = await intray(['init'], env)
    assert.deepEqual([again.code, again.stdout.toString()], [1, ''])
    assert.equal(again.stderr, `intray: There is a database already: ${name}. Nothing was changed.\n`)

    for (const line of ['token list', 'doctor', `token create ${TENANT}`, 'operator list', `inbox list ${TENANT}`]) {
      const used = await intray(line.split(' '), env)
      assert.deepEqual(used.databases, [name], `${line} names it once: ${used.stderr}`)
    }
    const parsed = await intray(['token', 'list', '--json'], env)
    assert.deepEqual([parsed.code, parsed.databases], [0, []])
    assert.equal((JSON.parse(parsed.stdout.toString()) as { account_id: number }).account_id, 1)
  })
}

test('init --json prints where the database is', async () => {
  const path = join(tempFolder('init'), 'a', 'intray.db')
  const { code, stdout } = await intray(['init', '--json'], { INTRAY_DATABASE_URL: `sqlite:${path}` })
  assert.deepEqual([code, JSON.parse(stdout.toString())], [0, { ok: true, database: `sqlite:${path}` }])
})
