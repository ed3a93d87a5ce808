// The launcher, and what all commands have in common: help, suggestions, exit codes.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { chmodSync, copyFileSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { COMMANDS } from '../../src/cli/run.ts'
import { flagName, SETTING_NAMES } from '../../src/config.ts'
import { newDatabaseEnv, runToEnd } from '../support/command.ts'
import { cleanEnvironment, intray, LAUNCHER, ROOT } from '../support/process.ts'
import { tempFolder } from '../support/temp.ts'

/** Every command line that names a command or a sub-command. */
async function everyCommand(): Promise<string[][]> {
  const lines: string[][] = []
  for (const [name, load] of Object.entries(COMMANDS)) {
    const command = await load()
    lines.push([name])
    if ('subcommands' in command) lines.push(...Object.keys(command.subcommands).map((sub) => [name, sub]))
  }
  return lines
}

test('without a command, with help or --help, the overview names every command', async () => {
  for (const args of [[], ['help'], ['--help'], ['-h'], ['help', '--help']]) {
    const { code, stdout, stderr } = await intray(args, {})
    assert.deepEqual([code, stderr], [0, ''])
    for (const command of Object.keys(COMMANDS)) {
      assert.match(stdout.toString(), new RegExp(`^  ${command} +\\S`, 'm'))
    }
  }
})

test('--version prints the version of package.json', async () => {
  const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string }
  for (const flag of ['--version', '-v']) {
    const { code, stdout, stderr } = await intray([flag], {})
    assert.deepEqual([code, stdout.toString(), stderr], [0, `intray ${version}\n`, ''])
  }
})

test('every command and sub-command answers --help and help with its own usage, and touches no database', async () => {
  const folder = tempFolder('cli-help')
  const env = { INTRAY_DATABASE_URL: `sqlite:${join(folder, 'intray.db')}` }
  const commands = await everyCommand()
  assert.ok(commands.length > 25, String(commands.length))
  for (const words of commands) {
    const asked = await Promise.all(
      [
        [...words, '--help'],
        ['help', ...words],
      ].map((args) => intray(args, env)),
    )
    for (const { code, stdout, stderr } of asked) {
      assert.deepEqual([code, stderr], [0, ''], words.join(' '))
      assert.match(stdout.toString(), new RegExp(`^Usage: \\./intray ${words.join(' ')} `))
      assert.doesNotMatch(stdout.toString(), /undefined|\[object/)
    }
    assert.equal(asked[0]!.stdout.toString(), asked[1]!.stdout.toString())
  }
  assert.deepEqual(readdirSync(folder), [])
})

const HELP: Record<string, readonly string[]> = {
  serve: ['--print-config', ...SETTING_NAMES.map((name) => `--${flagName(name)}`)],
  token: ['create', 'list', 'show', 'disable', 'enable', 'limit', 'rotate'],
  'token list': [
    '--account',
    '--company',
    '--scope',
    '--active',
    '--inactive',
    '--expired',
    '--unused-since',
    '--json',
  ],
  'token create': ['--account', '--company', '--scope', '--expires', '--label', '--rate-limit', '--json'],
  'token rotate': ['KEY_ID', '--overlap', '--expires', '--json'],
  operator: ['add', 'list', 'link', 'password', 'role', 'disable', 'enable', 'remove'],
  'operator add': ['NAME', '--role', '--tenant', '--json'],
  send: ['--token-file', '--token', '--url', '--ndjson', '--concurrency', '--tries', '--new', '--json'],
  inbox: ['list', 'show', 'tail', 'claim', 'ack', 'release', 'requeue', '--account'],
  'event show': ['./intray event show ID', '--raw', '--json'],
  reindex: ['./intray reindex', '--status', '--json'],
}

test('the help of a command names its sub-commands and flags', async () => {
  for (const [words, parts] of Object.entries(HELP)) {
    const { stdout } = await intray([...words.split(' '), '--help'], {})
    for (const part of parts) assert.ok(stdout.includes(part), `${words} --help names ${part}`)
  }
})

test('an unknown command or sub-command is refused with code 2 and at most one name, a near one', async () => {
  for (const [words, meant] of [
    ['tokn', 'token'],
    ['server', 'serve'],
    ['re-index', 'reindex'],
    ['events', 'event'],
    ['inbox lst', 'inbox list'],
    ['token creat', 'token create'],
    ['token ls', 'token list'],
    ['operator ad', 'operator add'],
    ['help tokn', 'token'],
    ['help inbox clam', 'inbox claim'],
    ['tokn --help', 'token'],
    ['inbox lst --help', 'inbox list'],
    ['frobnicate', null],
    ['message', null],
    ['token destroy', null],
    ['inbox constructor', null],
    ['constructor', null],
    ['__proto__', null],
    ['toString', null],
    ['help frobnicate', null],
  ] as const) {
    const { code, stdout, stderr } = await intray(words.split(' '), {})
    assert.deepEqual([code, stdout.toString()], [2, ''], words)
    const given = words.replace('help ', '').replace(' --help', '')
    const [said, help, ...more] = stderr.trimEnd().split('\n')
    assert.equal(said, `intray: There is no command "${given}".${meant === null ? '' : ` Did you mean "${meant}"?`}`)
    assert.match(help!, /^Help: \.\/intray( (token|inbox|operator))? --help$/)
    assert.deepEqual(more, [])
  }
  const empty = await intray([''], {})
  assert.equal(empty.code, 2)
  assert.match(empty.stderr, /^intray: There is no command ""\.\n/)
})

test('a command without its sub-command is refused with code 2', async () => {
  for (const args of [['token'], ['inbox', '--account', '1'], ['operator', '--json'], ['event']]) {
    const { code, stdout, stderr } = await intray(args, {})
    assert.deepEqual([code, stdout.toString()], [2, ''])
    assert.equal(stderr, `intray: ./intray ${args[0]} needs a sub-command.\nHelp: ./intray ${args[0]} --help\n`)
  }
})

test('a wrong flag or argument is named, and the error points to the help of the command', async () => {
  for (const [line, said, command] of [
    ['token create --acount 1', 'There is no flag --acount. Did you mean --account?', 'token create'],
    ['token list --frobnicate', 'There is no flag --frobnicate.', 'token list'],
    ['token create --account', '--account needs a value.', 'token create'],
    ['token create --account --json', '--account needs a value.', 'token create'],
    ['token list --json=1', '--json takes no value.', 'token list'],
    ['token show', 'KEY_ID is missing.', 'token show'],
    ['token show a b', 'Unexpected argument "b".', 'token show'],
    ['serve now', 'Unexpected argument "now".', 'serve'],
    ['doctor --sample x', '--sample takes a whole number from 1 to 999999999.', 'doctor'],
    ['inbox list', 'The tenant is missing. Give --account N and --company N.', 'inbox list'],
    ['copy', 'The target is missing. Give --to URL or --to-file FILE.', 'copy'],
  ] as const) {
    const { code, stdout, stderr } = await intray(line.split(' '), {})
    assert.deepEqual([code, stdout.toString()], [2, ''], line)
    assert.equal(stderr, `intray: ${said}\nHelp: ./intray ${command} --help\n`)
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
  const { code, stderr } = await intray(['init'], { INTRAY_DATABASE_URL_FILE: join(folder, 'url') })
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
  const { code, stderr } = await runToEnd(['./link', 'init'], {}, { cwd: folder })
  assert.equal(code, 0, stderr)
  assert.ok(readdirSync(join(folder, 'data')).includes('intray.db'))
})

test('a reader that has enough is left alone: no complaint, and what was begun is done', async () => {
  const settings = await newDatabaseEnv('cli-pipe')
  const env = cleanEnvironment(settings)
  // The reader is gone long before the first line; the code is the command's own.
  const line = '"$0" token create --account 7 --company 42 --scope cf --label piped | true'
  const { stderr, status } = spawnSync('bash', ['-o', 'pipefail', '-c', line, LAUNCHER], { env })
  assert.deepEqual([status, stderr.toString()], [0, `Database: ${settings.INTRAY_DATABASE_URL}\n`])
  const listed = spawnSync(LAUNCHER, ['token', 'list', '--json'], { env })
  assert.equal((JSON.parse(listed.stdout.toString()) as { label: string }).label, 'piped')
})
