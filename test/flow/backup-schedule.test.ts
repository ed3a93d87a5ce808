// Scheduled backups of a running server.

import assert from 'node:assert/strict'
import { mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { intrayJson } from '../support/command.ts'
import { createToken, withStore } from '../support/journal.ts'
import { post } from '../support/load.ts'
import { intray, startServer } from '../support/process.ts'
import { tempFolder } from '../support/temp.ts'
import { until } from '../support/until.ts'

test('a server backs itself up, keeps as many as it should, and doctor tells when that fails', async (t) => {
  const folder = tempFolder('schedule')
  const backups = join(folder, 'backups')
  mkdirSync(backups)
  const env = {
    INTRAY_DATABASE_URL: `sqlite:${join(folder, 'intray.db')}`,
    INTRAY_CONSOLE: 'off',
    INTRAY_BACKUP_TO: backups,
    INTRAY_BACKUP_EVERY: '1s',
    INTRAY_BACKUP_KEEP: '1',
  }
  const token = await withStore(env.INTRAY_DATABASE_URL, (store) => createToken(store))
  const server = await startServer(t, env)
  assert.equal((await post(server.port, token, '{"n":1}')).status, 200)
  const written = () => readdirSync(backups).filter((name) => name.endsWith('Z.db'))
  const [first] = await until('a backup is written', () => written().length > 0 && written())
  // The second one may have begun before the message was stored.
  let last = first!
  for (const which of ['second', 'third'])
    last = await until(`a ${which} one has replaced it`, () => {
      const [name, ...more] = written()
      return more.length === 0 && name! > last && name
    })
  server.child.kill('SIGTERM')
  assert.equal(await server.exited, 0)

  const verified = await intrayJson(['backup', '--verify', join(backups, written()[0]!)], {})
  assert.deepEqual([verified.ok, verified.rows], [true, 1])

  const doctor = async (every: string) => {
    const { stdout } = await intray(['doctor', '--json'], { ...env, INTRAY_BACKUP_EVERY: every })
    const { checks } = JSON.parse(String(stdout)) as { checks: { name: string; verdict: string }[] }
    return checks.find(({ name }) => name === 'backups')?.verdict
  }
  assert.equal(await doctor('1h'), 'ok', 'control')
  await until('the last backup is overdue', async () => (await doctor('1s')) === 'wrong')
})

test('a schedule on PostgreSQL is refused at the start', async () => {
  const env = { INTRAY_DATABASE_URL: 'postgres://127.0.0.1:1/intray', INTRAY_BACKUP_TO: '/backup' }
  const { code, stderr } = await intray(['serve'], env)
  assert.equal(code, 2)
  assert.match(stderr, /INTRAY_BACKUP_TO works with SQLite only/)
})
