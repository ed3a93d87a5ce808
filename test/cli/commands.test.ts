// The launcher and the commands' common manners: help, suggestions, exit codes.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { chmodSync, copyFileSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { flagName, SETTING_NAMES } from '../../src/config.ts'
import { runToEnd } from '../support/command.ts'
import { cleanEnvironment, intray, LAUNCHER } from '../support/process.ts'
import { tempFolder } from '../support/temp.ts'

const COMMANDS = ['serve', 'token', 'operator', 'send', 'inbox', 'event', 'copy', 'reindex']

test('without a command, with help or --help, the overview names every command', async () => {
  for (const args of [[], ['help'], ['--help'], ['-h']]) {
    const { code, stdout, stderr } = await intray(args, {})
    assert.deepEqual([code, stderr], [0, ''])
    for (const command of COMMANDS) assert.match(stdout.toString(), new RegExp(`^  ${command} +\\S`, 'm'))
  }
})

const HELP: Record<string, readonly string[]> = {
  serve: ['--print-config', ...SETTING_NAMES.map((name) => `--${flagName(name)}`)],
  token: [
    ...['create', 'list', 'show', 'disable', 'enable', 'rotate'].map((action) => `./intray token ${action}`),
    ...['--account', '--company', '--scope', '--expires', '--label', '--overlap', '--json'],
  ],
  operator: [
    ...['add', 'list', 'link', 'passwd', 'disable', 'enable'].map((action) => `./intray operator ${action}`),
    ...['--role', '--tenant', '--json'],
  ],
  send: ['--token-file', '--token', '--url', '--ndjson', '--concurrency', '--tries', '--new', '--json'],
  inbox: ['./intray inbox ACTION', 'list', 'show', 'tail', 'claim', 'ack', 'release', 'requeue', '--account', '--json'],
  event: ['./intray event show ID', '--raw', '--json'],
  reindex: ['./intray reindex', '--status', '--json'],
}

test('--help of every command names its actions and flags, and touches no database', async () => {
  const folder = tempFolder('cli-help')
  const env = { INTRAY_DATABASE_URL: `sqlite:${join(folder, 'intray.db')}` }
  for (const [command, words] of Object.entries(HELP)) {
    const { code, stdout, stderr } = await intray([command, '--help'], env)
    assert.deepEqual([code, stderr], [0, ''])
    assert.match(stdout.toString(), new RegExp(`^Usage: \\./intray ${command}`))
    for (const word of words) assert.ok(stdout.includes(word), `${command} --help names ${word}`)
  }
  const long = await intray(['token', 'create', '--help'], env)
  assert.match(long.stdout.toString(), /^Usage: \.\/intray token create/)
  assert.deepEqual(readdirSync(folder), [])
})

test('an unknown command is refused with code 2 and the name it resembles', async () => {
  for (const [name, meant] of [
    ['tokn', 'token'],
    ['server', 'serve'],
    ['re-index', 'reindex'],
    ['events', 'event'],
  ]) {
    const { code, stdout, stderr } = await intray([name!], {})
    assert.deepEqual([code, stdout.toString()], [2, ''])
    assert.match(stderr, new RegExp(`^intray: There is no command "${name}"\\. Did you mean "${meant}"\\?`))
  }
  for (const name of ['constructor', '__proto__', 'toString', '']) {
    const { code, stderr } = await intray([name], {})
    assert.equal(code, 2, `"${name}": ${stderr}`)
    assert.match(stderr, /^intray: There is no command/)
  }
})

test('commands honour the settings: a misspelt one is refused with code 2', async () => {
  const { code, stderr } = await intray(['token', 'list'], { INTRAY_DATABASE_URI: 'sqlite:x.db' })
  assert.equal(code, 2)
  assert.match(stderr, /INTRAY_DATABASE_URI is not a setting\. Did you mean INTRAY_DATABASE_URL\?/)
})

test('a database URL in a file is read from there', async () => {
  const folder = tempFolder('cli-file')
  const path = join(folder, 'elsewhere', 'intray.db')
  writeFileSync(join(folder, 'url'), `sqlite:${path}\n`)
  const { code, stderr } = await intray(['token', 'list'], { INTRAY_DATABASE_URL_FILE: join(folder, 'url') })
  assert.equal(code, 0, stderr)
  assert.ok(readdirSync(join(folder, 'elsewhere')).includes('intray.db'))
  const twice = await intray(['token', 'list'], {
    INTRAY_DATABASE_URL_FILE: join(folder, 'url'),
    INTRAY_DATABASE_URL: `sqlite:${path}`,
  })
  assert.equal(twice.code, 2)
  assert.match(twice.stderr, /INTRAY_DATABASE_URL is set twice/)
})

test('the launcher says what to do where nothing is installed', async () => {
  const folder = join(tempFolder('cli-launcher'), 'a folder with spaces')
  mkdirSync(folder)
  copyFileSync(LAUNCHER, join(folder, 'intray'))
  chmodSync(join(folder, 'intray'), 0o755)
  const { code, stdout, stderr } = await runToEnd([join(folder, 'intray'), 'serve'], {})
  assert.deepEqual([code, stdout.toString()], [1, ''])
  assert.equal(stderr, `intray: Node 26 is not installed here yet. Run 'npm ci' in ${folder} first.\n`)
})

test('the launcher works through a link and from any folder, and relative databases are relative to that folder', async () => {
  const folder = tempFolder('cli-link')
  symlinkSync(LAUNCHER, join(folder, 'link'))
  const { code, stderr } = await runToEnd(['./link', 'token', 'list'], {}, { cwd: folder })
  assert.equal(code, 0, stderr)
  assert.ok(readdirSync(join(folder, 'data')).includes('intray.db'))
})

test('a reader that has enough is left alone: no complaint, and what was begun is done', () => {
  const env = cleanEnvironment({ INTRAY_DATABASE_URL: `sqlite:${join(tempFolder('cli-pipe'), 'intray.db')}` })
  // The reader is gone long before the first line; the code is the command's own.
  const line = '"$0" token create --account 7 --company 42 --scope cf --label piped | true'
  const { stderr, status } = spawnSync('bash', ['-o', 'pipefail', '-c', line, LAUNCHER], { env })
  assert.deepEqual([status, stderr.toString()], [0, ''])
  const listed = spawnSync(LAUNCHER, ['token', 'list', '--json'], { env })
  assert.equal((JSON.parse(listed.stdout.toString()) as { label: string }).label, 'piped')
})
