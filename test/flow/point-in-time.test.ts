// A point-in-time recovery of PostgreSQL in mid-load, as docs/operating/backup.md describes it, and `./intray epoch` after it.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { chmodSync, chownSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { send } from '../support/client.ts'
import { createToken, withStore } from '../support/journal.ts'
import { Ledger, Load, post } from '../support/load.ts'
import { isRoot, NOBODY } from '../support/postgres/binaries.ts'
import { createDatabase, withClient } from '../support/postgres/databases.ts'
import { newCluster, startPostgres } from '../support/postgres/server.ts'
import { intray, startServer } from '../support/process.ts'
import { tempFolder } from '../support/temp.ts'
import { until } from '../support/until.ts'

const run = promisify(execFile)
/** A target with a name instead of a time: no clock decides. */
const TARGET = 'before_the_mistake'

/** PostgreSQL runs as another user if the tests run as root. */
function give(path: string): void {
  if (isRoot) chownSync(path, NOBODY, NOBODY)
}

/** A base backup by hand: npm brings no pg_basebackup. */
async function baseBackup(url: string, dataFolder: string): Promise<string> {
  const folder = tempFolder('base')
  chmodSync(folder, 0o755)
  await withClient(url, async (client) => {
    await client.query("SELECT pg_backup_start('base', fast => true)")
    // Files of the server may vanish meanwhile; the WAL brings back what belongs to them.
    await run('cp', ['-a', dataFolder, folder]).catch(() => {})
    const { rows } = await client.query('SELECT labelfile FROM pg_backup_stop(wait_for_archive => false)')
    writeFileSync(join(folder, 'data', 'backup_label'), rows[0].labelfile)
  })
  rmSync(join(folder, 'data', 'postmaster.pid'))
  writeFileSync(join(folder, 'data', 'recovery.signal'), '')
  for (const name of ['backup_label', 'recovery.signal']) give(join(folder, 'data', name))
  return folder
}

test('after a point-in-time recovery, `epoch` keeps lost ids from being given out again', async (t) => {
  const archive = tempFolder('archive')
  give(archive)
  const settings = { fsync: 'off', wal_level: 'replica', archive_mode: 'on', archive_command: `cp %p ${archive}/%f` }
  const old = await startPostgres(await newCluster(), settings)
  t.after(() => old.kill())
  const url = await createDatabase(old.url('postgres'))
  const tokens = await withStore(url, async (store) => ({
    sender: await createToken(store),
    processor: await createToken(store, { scope: 'processor' }),
  }))
  const first = await startServer(t, { INTRAY_DATABASE_URL: url, INTRAY_CONSOLE: 'off' })
  const ledger = new Ledger(14, 1000)
  const load = new Load({ port: first.port, token: tokens.sender, ledger, connections: 2 })
  const atLeast = (count: number) => until(`${count} messages`, () => ledger.acknowledged.size >= count)

  await atLeast(20)
  const base = await baseBackup(url, old.dataFolder)
  await atLeast(ledger.acknowledged.size + 20)
  const kept = new Map(ledger.acknowledged)
  await withClient(url, (client) => client.query('SELECT pg_create_restore_point($1)', [TARGET]))
  await atLeast(ledger.acknowledged.size + 20)
  first.child.kill('SIGKILL')
  await load.finished
  await old.crash()

  const recovered = await startPostgres(base, {
    fsync: 'off',
    // What was not archived yet is still in the old folder.
    restore_command: `cp ${archive}/%f %p || cp ${join(old.dataFolder, 'pg_wal')}/%f %p`,
    recovery_target_name: TARGET,
    recovery_target_action: 'promote',
  })
  t.after(() => recovered.kill())
  const env = { INTRAY_DATABASE_URL: recovered.url(url.slice(url.lastIndexOf('/') + 1)), INTRAY_CONSOLE: 'off' }
  await until('the recovery is over', () =>
    withClient(env.INTRAY_DATABASE_URL, async (client) => {
      const { rows } = await client.query('SELECT pg_is_in_recovery() AS recovering')
      return rows[0].recovering === false
    }),
  )
  // The killed server counts as running for some seconds after its last sign of life.
  const { stdout } = await until('the epoch has begun', async () => {
    const epoch = await intray(['epoch', '--no-erasures', '--json'], env)
    return epoch.code === 0 && epoch
  })
  const { gap } = JSON.parse(String(stdout)) as { gap: { after: number; before: number } }
  const lost = Math.max(...ledger.acknowledged.values())
  assert.ok(lost > gap.after, 'control: an acknowledged message was lost')

  const second = await startServer(t, env)
  for (const [ref, id] of kept) {
    const again = await post(second.port, tokens.sender, ledger.sent.get(ref)!)
    assert.deepEqual([again.status, again.json?.id], [200, id])
  }
  const fresh = await post(second.port, tokens.sender, '{"n":1}')
  assert.ok(Number(fresh.json?.id) > gap.before)
  const headers = { Authorization: `Bearer ${tokens.processor}`, 'Last-Event-ID': String(lost) }
  const refused = await send(second.port, { path: '/v1/inbox/stream', headers })
  assert.deepEqual([refused.status, refused.json?.error], [409, 'cursor_ahead'])
})
