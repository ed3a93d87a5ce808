// deploy/systemd, checked by systemd's own programs, which work where no systemd runs.

import assert from 'node:assert/strict'
import { accessSync, constants, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { loadConfig, SETTINGS } from '../../src/config.ts'
import { hasProgram, isRoot } from '../../prove/debian.ts'
import { runToEnd } from '../support/command.ts'
import { LAUNCHER, ROOT } from '../support/process.ts'
import { tempFolder } from '../support/temp.ts'

const FOLDER = join(ROOT, 'deploy/systemd')
/** In tenths, of 100. A service without restrictions has about 95. */
const MAX_EXPOSURE = 25
/** A primary process kills workers that have not ended this long after their time. */
const WORKERS_GRACE_S = 5
/** What proxies may be given to notice that the service stops. */
const READY_DELAY_S = 10

const skip = hasProgram('systemd-analyze') ? false : 'systemd-analyze is not installed (Debian: systemd)'
const skipWithoutRoot = skip || (isRoot ? false : 'users and owners of folders need root')

const read = (name: string) => readFileSync(join(FOLDER, name), 'utf8')
const service = read('intray.service')
const lines = (name: string) => read(name).trim().split('\n')

function settingOf(unit: string, key: string): string {
  const found = new RegExp(`^${key}=(.*)$`, 'm').exec(unit)
  assert.ok(found, `${key} is not set`)
  return found[1]!
}

async function run(command: readonly string[]): Promise<{ code: number | null; said: string }> {
  const { code, stdout, stderr } = await runToEnd(command, {})
  return { code, said: `${stdout}${stderr}` }
}

/** Both units in a folder of their own; the service runs the launcher of this checkout. */
function unitsWith(change: (text: string) => string): string[] {
  const folder = tempFolder('systemd')
  const here = service.replace('/opt/intray/intray', LAUNCHER)
  assert.notEqual(here, service)
  const units = { 'intray.service': change(here), 'intray.socket': read('intray.socket') }
  return Object.entries(units).map(([name, text]) => {
    const path = join(folder, name)
    writeFileSync(path, text)
    return path
  })
}

const verify = (units: readonly string[]) => run(['systemd-analyze', 'verify', '--man=no', ...units])
const exposure = (unit: string) =>
  run(['systemd-analyze', 'security', '--offline=true', `--threshold=${MAX_EXPOSURE}`, '--no-pager', unit])

test('systemd finds nothing to say about the units; of a misspelt key it does', { skip }, async () => {
  const clean = await verify(unitsWith((text) => text))
  assert.deepEqual(clean, { code: 0, said: '' })
  const misspelt = await verify(unitsWith((text) => text.replace('TimeoutStopSec', 'TimeoutStopSecs')))
  assert.match(misspelt.said, /Unknown key.*TimeoutStopSecs/)
})

test('the exposure of the service is at most 2.5; without its restrictions it is above', { skip }, async () => {
  const [unit] = unitsWith((text) => text)
  const restricted = await exposure(unit!)
  assert.equal(restricted.code, 0, restricted.said)
  assert.match(restricted.said, /Overall exposure level for intray.service: [0-2]\.\d/)
  const [open] = unitsWith((text) => text.replaceAll(/^(Restrict|Protect|Private|SystemCall|Capability).*$/gm, ''))
  assert.notEqual((await exposure(open!)).code, 0)
})

test('users and folders are made as the service needs them', { skip: skipWithoutRoot }, async () => {
  const root = tempFolder('systemd-root')
  mkdirSync(join(root, 'etc'))
  const user = await run(['systemd-sysusers', `--root=${root}`, join(FOLDER, 'intray.sysusers')])
  assert.equal(user.code, 0, user.said)
  const [, uid, gid] = /^intray:x:(\d+):(\d+):[^:]*:\/var\/lib\/intray:.*nologin$/m.exec(
    readFileSync(join(root, 'etc/passwd'), 'utf8'),
  )!
  const folders = await run(['systemd-tmpfiles', `--root=${root}`, '--create', join(FOLDER, 'intray.tmpfiles')])
  assert.equal(folders.code, 0, folders.said)
  const state = statSync(join(root, 'var/lib/intray'))
  assert.deepEqual([state.mode & 0o777, state.uid, state.gid], [0o700, Number(uid), Number(gid)])
  const settings = statSync(join(root, 'etc/intray'))
  assert.deepEqual([settings.mode & 0o777, settings.uid], [0o755, 0])
})

test('the service may take longer to stop than it takes by itself', () => {
  const ownSeconds = READY_DELAY_S + SETTINGS.stopTimeout.fallback / 1000 + WORKERS_GRACE_S
  assert.ok(Number(settingOf(service, 'TimeoutStopSec')) > ownSeconds)
})

test('the settings are those of Intray, and the units agree with them', () => {
  const settings = loadConfig(Object.fromEntries(lines('intray.env').map((line) => line.split('=', 2))))
  assert.equal(settings.databaseUrl, `sqlite:/var/lib/${settingOf(service, 'StateDirectory')}/intray.db`)
  const { host, port } = SETTINGS
  assert.equal(settingOf(read('intray.socket'), 'ListenStream'), `${host.fallback}:${port.fallback}`)
  const [program] = settingOf(service, 'ExecStart').split(' ')
  accessSync(join(ROOT, program!.replace('/opt/intray/', '')), constants.X_OK)
})

test('the settings can be pasted on a command line with $(cat …), as the docs do', () => {
  for (const line of lines('intray.env')) assert.match(line, /^INTRAY_[A-Z_]+=[^\s"'$`\\]+$/)
})
