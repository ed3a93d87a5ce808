// Restores that are killed, and several at once: no server opens what is not whole, and the next restore starts over.

import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, readlinkSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type pg from 'pg'
import { EPOCH_IDS, type IdGap } from '../../src/model/id-gaps.ts'
import { openCopySide, openRestore, openStore } from '../../src/store/open.ts'
import { item } from '../store/rows.ts'
import { intrayJson, runToEnd } from '../support/command.ts'
import { withStore } from '../support/journal.ts'
import {
  connect,
  createDatabase,
  newMigratedDatabase,
  newPostgresDatabase,
  serverUrl,
  withClient,
} from '../support/postgres/databases.ts'
import { programs, WITHOUT_PROGRAMS, withPrograms } from '../support/postgres/debian.ts'
import { cleanEnvironment, intray, LAUNCHER } from '../support/process.ts'
import { tempFolder } from '../support/temp.ts'
import { until } from '../support/until.ts'

const ROWS = 60
const UNFINISHED = /A restore into this database has not finished\. .* run it again: it starts over\./

/** A database of either kind with a backup of it, made before one of its events was erased. */
async function backedUp(url: string, extension: string, env: Record<string, string>) {
  await withStore(url, async ({ journal }) => {
    for (let n = 0; n < ROWS; n++) {
      await journal.append([
        item({ sourceRef: `ref:${n}`, body: { source_ref: `ref:${n}`, text: 'x'.repeat(20_000) } }),
      ])
    }
  })
  const file = join(tempFolder('restore-kill'), `b${extension}`)
  await intrayJson(['backup', file], { ...env, INTRAY_DATABASE_URL: url })
  await intrayJson(['erase', '--event', '1', '--yes'], { ...env, INTRAY_DATABASE_URL: url })
  return { url, file }
}

function startRestore(t: TestContext, args: readonly string[], env: Record<string, string>): ChildProcess {
  const child = spawn(LAUNCHER, ['restore', ...args], { env: cleanEnvironment(env), stdio: 'ignore' })
  t.after(() => child.kill('SIGKILL'))
  return child
}

test('on SQLite a restore that is killed leaves no database, and the next one starts over', async (t) => {
  const { url, file } = await backedUp(`sqlite:${join(tempFolder('source'), 'intray.db')}`, '.db', {})
  const folder = tempFolder('target')
  const path = join(folder, 'intray.db')
  const args = [file, '--to', `sqlite:${path}`, '--erasures', url]
  /** What a restore makes, in this order. */
  const signs = [`${path}.part`, `${path}.part-wal`, `${path}.part.index.db`]
  let killed = 0
  for (let attempt = 0; attempt < 30 && killed < 6; attempt++) {
    const child = startRestore(t, args, {})
    const closed = once(child, 'close')
    const sign = signs[attempt % signs.length]!
    const isOver = () => child.exitCode !== null || existsSync(path)
    await until(`${sign} is there`, () => existsSync(sign) || isOver())
    child.kill('SIGKILL')
    await closed
    if (existsSync(path)) {
      // It finished before the signal came.
      rmSync(folder, { recursive: true })
      mkdirSync(folder)
      continue
    }
    killed += 1
    assert.ok(existsSync(`${path}.part`), 'killed in the middle')
  }
  assert.ok(killed >= 3, `${killed} restores were killed`)
  t.diagnostic(`killed ${killed} times`)
  const { erased, rows } = await intrayJson(['restore', ...args], {})
  assert.deepEqual([rows, erased], [ROWS, 1])
  assert.deepEqual(readdirSync(folder), ['intray.db'])
})

test('of restores to one path that run at once, one makes the database and the others say why not', async () => {
  const { file } = await backedUp(`sqlite:${join(tempFolder('source'), 'intray.db')}`, '.db', {})
  const folder = tempFolder('target')
  const path = join(folder, 'intray.db')
  const all = await Promise.all(
    Array.from({ length: 4 }, () => intray(['restore', file, '--to', `sqlite:${path}`, '--no-erasures'], {})),
  )
  const refused = all.filter(({ code }) => code === 1)
  assert.equal(refused.length, 3)
  for (const { stderr } of refused) {
    assert.match(stderr, /Another restore to .* is running|exists\. A restore overwrites nothing/)
  }
  assert.deepEqual(readdirSync(folder), ['intray.db'])
  const side = await openCopySide(`sqlite:${path}`, { mustExist: true })
  assert.equal(await side.count(side.tables.find(({ name }) => name === 'events')!), ROWS)
  await side.close()
})

test('a file that appears in the last moment is not overwritten', async () => {
  const { file } = await backedUp(`sqlite:${join(tempFolder('source'), 'intray.db')}`, '.db', {})
  const folder = tempFolder('target')
  const path = join(folder, 'intray.db')
  const target = await openRestore(file, `sqlite:${path}`)
  await target.load()
  // No check for existing files sees this one; a rename would replace it.
  symlinkSync('elsewhere', path)
  await assert.rejects(target.finish(Date.now()), { name: 'StoreRefused', message: /A restore overwrites nothing/ })
  await target.discard()
  assert.equal(readlinkSync(path), 'elsewhere')
  assert.deepEqual(readdirSync(folder), ['intray.db'])
})

/** Runs the real pg_restore, and kills the restore instead of it or after it, or holds it up there until a file appears. */
function wrapper(): string {
  const folder = tempFolder('wrapped')
  const script = `#!/bin/sh
[ "$1" = --version ] && exec ${programs}/pg_restore "$@"
[ "$STRIKE" = before ] && kill -9 $PPID && exit 1
[ "$STRIKE" = midway ] && exec ${programs}/pg_restore "$@"
${programs}/pg_restore "$@" || exit 1
[ "$STRIKE" = loaded ] && kill -9 $PPID
[ -n "$HOLD" ] || exit 0
touch "$HOLD.held"
for n in $(seq 2000); do [ -e "$HOLD.go" ] && exit 0; sleep 0.1; done
`
  writeFileSync(join(folder, 'pg_restore'), script, { mode: 0o755 })
  return folder
}

/** Sessions of pg_restore in the database. */
async function loading(client: pg.Client): Promise<{ pid: number; waits: boolean }[]> {
  const { rows } = await client.query(`SELECT pid, wait_event_type = 'Lock' AS waits FROM pg_stat_activity
    WHERE datname = current_database() AND application_name = 'intray_restore'`)
  return rows
}

async function hasWaiting(client: pg.Client): Promise<boolean> {
  const { rows } = await client.query('SELECT FROM pg_locks WHERE NOT granted')
  return rows.length > 0
}

test('on PostgreSQL a restore that is killed leaves a database that nobody opens, and the next one starts over', async (t) => {
  if (programs === null) return t.skip(WITHOUT_PROGRAMS)
  const { url, file } = await backedUp(await newMigratedDatabase(), '.dump', withPrograms)
  const target = await newPostgresDatabase()
  const args = [file, '--to', target, '--erasures', url]
  const env = { PATH: `${wrapper()}:${withPrograms.PATH}` }
  const own = { INTRAY_DATABASE_URL: target, INTRAY_PORT: '0', ...withPrograms }
  let killed = 0

  const assertRefused = async () => {
    killed += 1
    const refused = { name: 'StoreRefused', message: UNFINISHED }
    for (const role of ['server', 'tool'] as const) await assert.rejects(openStore(target, { role }), refused)
    await assert.rejects(openCopySide(target, { mustExist: true }), refused)
  }

  for (const point of ['before', 'loaded']) {
    const child = startRestore(t, args, { ...env, STRIKE: point })
    await once(child, 'close')
    assert.equal(child.signalCode, 'SIGKILL')
    await assertRefused()
  }
  for (const command of [['serve'], ['token', 'list'], ['init'], ['backup', join(tempFolder('none'), 'b.dump')]]) {
    const { code, stderr } = await runToEnd([LAUNCHER, ...command], own)
    assert.equal(code, 1, command.join(' '))
    assert.match(stderr, UNFINISHED)
  }
  const unmarked = await createDatabase(await serverUrl(), `TEMPLATE ${new URL(target).pathname.slice(1)}`)
  await withClient(unmarked, async (client) => {
    await client.query('DROP SCHEMA intray_restore')
    const { rows } = await client.query('SELECT count(*)::int AS gaps FROM intray.id_gaps')
    assert.deepEqual(rows, [{ gaps: 0 }], 'control: what was loaded has no gap')
  })
  const opened = await runToEnd([LAUNCHER, 'token', 'list'], { ...own, INTRAY_DATABASE_URL: unmarked })
  assert.equal(opened.code, 0, 'control: without its mark it would be opened')

  const client = await connect(target)
  t.after(() => client.end())
  await client.query('DROP SCHEMA intray CASCADE')
  await client.query('BEGIN; CREATE SCHEMA intray')
  const midway = startRestore(t, args, { ...env, STRIKE: 'midway' })
  const [orphan] = await until('pg_restore waits', () =>
    withClient(target, async (other) => {
      const sessions = await loading(other)
      return sessions.length === 1 && sessions[0]!.waits && sessions
    }),
  )
  midway.kill('SIGKILL')
  await once(midway, 'close')
  await assertRefused()
  assert.deepEqual(
    (await withClient(target, loading)).map(({ pid }) => pid),
    [orphan!.pid],
    'pg_restore has outlived the restore',
  )

  /** What a lock of the table holds up: opening what was loaded, erasing again, the last transaction. */
  const POINTS = { schema_migrations: 'ACCESS EXCLUSIVE', erasures: 'SHARE', id_gaps: 'SHARE' }
  for (const [table, mode] of Object.entries(POINTS)) {
    const hold = join(tempFolder('hold'), table)
    const child = startRestore(t, args, { ...env, HOLD: hold })
    if (table === 'schema_migrations') {
      await until('the one that outlived it is ended', () =>
        withClient(target, async (other) => (await loading(other)).every(({ pid }) => pid !== orphan!.pid)),
      )
      await client.query('ROLLBACK')
    }
    await until('pg_restore is over', () => existsSync(`${hold}.held`))
    await client.query(`BEGIN; LOCK TABLE intray.${table} IN ${mode} MODE`)
    writeFileSync(`${hold}.go`, '')
    await until(`the restore waits for ${table}`, () => withClient(target, hasWaiting))
    if (table === 'id_gaps') {
      const { code, stderr } = await intray(['restore', ...args], withPrograms)
      assert.equal(code, 1)
      assert.match(stderr, /Another restore into this database is running/)
    }
    child.kill('SIGKILL')
    await once(child, 'close')
    await client.query('ROLLBACK')
    await assertRefused()
  }

  assert.equal(killed, 6)
  const { rows, erased, gap } = await intrayJson(['restore', ...args], withPrograms)
  assert.deepEqual([rows, erased], [ROWS, 1])
  const { after, before } = gap as IdGap
  assert.ok(after === ROWS && before >= ROWS + EPOCH_IDS)
  const [added] = await withStore(target, ({ journal }) => journal.append([item({ body: { text: 'new' } })]))
  assert.ok(added && 'id' in added && added.id === before + 1)
  const { rows: left } = await client.query("SELECT FROM pg_namespace WHERE nspname = 'intray_restore'")
  assert.equal(left.length, 0)
})

test('a restore that is refused leaves the database as empty as it was, and data of others alone', async (t) => {
  if (programs === null) return t.skip(WITHOUT_PROGRAMS)
  const env = withPrograms
  const { file } = await backedUp(await newMigratedDatabase(), '.dump', env)
  const target = await newPostgresDatabase()
  const wrong = await intray(['restore', file, '--to', target, '--erasures', await newMigratedDatabase()], env)
  assert.equal(wrong.code, 1)
  assert.match(wrong.stderr, /is not the one that the backup was made of\. Nothing was restored\./)
  const schemas = () =>
    withClient(target, async (client) => {
      const { rows } = await client.query("SELECT nspname FROM pg_namespace WHERE nspname LIKE 'intray%' ORDER BY 1")
      return rows.map(({ nspname }) => nspname as string)
    })
  assert.deepEqual(await schemas(), [])

  await withClient(target, (client) => client.query('CREATE SCHEMA intray; CREATE TABLE intray.mine (id int)'))
  const refused = await intray(['restore', file, '--to', target, '--no-erasures'], env)
  assert.equal(refused.code, 1)
  assert.match(refused.stderr, /belongs to another program/)
  assert.deepEqual(await schemas(), ['intray'])
})

test('a backup of a frozen database is restored as one that takes messages', async (t) => {
  const postgres = programs === null ? [] : [await newMigratedDatabase()]
  const env = withPrograms
  for (const url of [`sqlite:${join(tempFolder('source'), 'intray.db')}`, ...postgres]) {
    const isSqlite = url.startsWith('sqlite:')
    await withStore(url, ({ journal }) => journal.append([item(), item()]))
    await intrayJson(['erase', '--event', '1', '--yes'], { INTRAY_DATABASE_URL: url })
    const side = await openCopySide(url, { mustExist: true })
    await side.freeze(async () => {})
    await side.close()
    const file = join(tempFolder('frozen'), 'b')
    await intrayJson(['backup', file], { ...env, INTRAY_DATABASE_URL: url }).catch((error: unknown) => error)
    const target = isSqlite ? `sqlite:${join(tempFolder('target'), 'intray.db')}` : await newPostgresDatabase()
    await intrayJson(['restore', file, '--to', target, '--erasures', url], env)
    const added = await withStore(target, ({ journal }) => journal.append([item()]))
    assert.ok(added[0] && 'id' in added[0] && added[0].id > EPOCH_IDS)
  }
  if (programs === null) t.skip(WITHOUT_PROGRAMS)
})
