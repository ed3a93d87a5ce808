// `./intray backup` and `./intray restore` on SQLite: what they write, what they refuse, and what a damaged file is answered.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { constants, getPriority } from 'node:os'
import { basename, join } from 'node:path'
import { test } from 'node:test'
import { digestProblem } from '../../src/cli/copying/backup-check.ts'
import { EPOCH_IDS, type IdGap } from '../../src/model/id-gaps.ts'
import { openCopySide } from '../../src/store/open.ts'
import { item, TENANT } from '../store/rows.ts'
import { send } from '../support/client.ts'
import { intrayJson } from '../support/command.ts'
import { createToken, withStore } from '../support/journal.ts'
import { seededRandom } from '../support/load.ts'
import { cleanEnvironment, intray, LAUNCHER, startServer } from '../support/process.ts'
import { tempFolder } from '../support/temp.ts'
import { until } from '../support/until.ts'

const MARK = 'sentence that only this payload has'

interface Case {
  readonly folder: string
  readonly url: string
  readonly env: Record<string, string>
}

async function filled(rows = 20, bytes = 100): Promise<Case> {
  const folder = tempFolder('backup')
  const url = `sqlite:${join(folder, 'intray.db')}`
  await withStore(url, async (store) => {
    const text = `${MARK} ${'x'.repeat(bytes)}`
    for (let n = 0; n < rows; n++) {
      await store.journal.append([
        item({ sourceRef: `ref:${n}`, channelRef: 'c', body: { source_ref: `ref:${n}`, channel_ref: 'c', text } }),
      ])
    }
  })
  return { folder, url, env: { INTRAY_DATABASE_URL: url } }
}

/** Ids and payloads of a database or of a backup, without going through a store. */
async function rowsOf(path: string): Promise<string[]> {
  const side = await openCopySide(`sqlite:${path}`, { mustExist: true })
  try {
    const table = side.tables.find(({ name }) => name === 'events')!
    const columns = Object.keys(table.columns)
    const rows = await side.read(table, null)
    return rows.map(
      (row) => `${row[columns.indexOf('id')]} ${Buffer.from(row[columns.indexOf('payload')] as Uint8Array)}`,
    )
  } finally {
    await side.close()
  }
}

function flip(file: string, at: number): void {
  const bytes = readFileSync(file)
  bytes[at] = bytes[at]! ^ 1
  writeFileSync(file, bytes)
}

/** New ids begin far above the last one that is kept. Returns above which one. */
function assertJump({ gap }: Record<string, unknown>, lastId: number): number {
  const { after, before } = gap as IdGap
  assert.equal(after, lastId)
  assert.ok(before >= lastId + EPOCH_IDS, String(before))
  return before
}

/** Wherever its text stands in the file: pages also hold remains of rows that moved. */
function changePayloads(file: string): void {
  const bytes = readFileSync(file)
  for (let at = bytes.indexOf(MARK); at !== -1; at = bytes.indexOf(MARK, at)) bytes[at] = bytes[at]! ^ 1
  writeFileSync(file, bytes)
}

test('a backup is one file for this user alone, with its digest beside it, and restores to the same rows', async () => {
  const { folder, url, env } = await filled()
  const file = join(folder, 'b.db')
  const report = await intrayJson(['backup', file], env)
  assert.deepEqual([report.ok, report.rows, report.last_id], [true, 20, 20])
  assert.equal(statSync(file).mode & 0o777, 0o600)
  assert.equal(readFileSync(`${file}.sha256`, 'utf8'), `${report.sha256}  b.db\n`)
  assert.deepEqual(
    readdirSync(folder).filter((name) => name.includes('part')),
    [],
  )

  const target = join(folder, 'new', 'intray.db')
  const restored = await intrayJson(['restore', file, '--to', `sqlite:${target}`, '--no-erasures'], {})
  assert.deepEqual([restored.ok, restored.rows], [true, 20])
  assertJump(restored, 20)
  assert.deepEqual(readdirSync(join(folder, 'new')), ['intray.db'])
  assert.equal(statSync(target).mode & 0o777, 0o600)
  assert.deepEqual(await rowsOf(target), await rowsOf(url.slice('sqlite:'.length)))
})

test('a backup leaves the processor to the servers of the machine', async (t) => {
  const { folder, env } = await filled(100, 100_000)
  let seen: number | null = null
  // It may be over before it is looked at.
  for (let attempt = 0; attempt < 10 && seen === null; attempt++) {
    const file = join(folder, `${attempt}.db`)
    const child = spawn(LAUNCHER, ['backup', file], { env: cleanEnvironment(env), stdio: 'ignore' })
    t.after(() => child.kill('SIGKILL'))
    const closed = once(child, 'close')
    await until('the part is there', () => existsSync(`${file}.part`) || child.exitCode !== null)
    if (child.exitCode === null) seen = getPriority(child.pid)
    assert.deepEqual(await closed, [0, null])
  }
  assert.equal(seen, constants.priority.PRIORITY_LOW)
})

test('a folder that takes no file is named, without a stack', async () => {
  const { env } = await filled(1)
  const { code, stderr } = await intray(['backup', '/proc/intray.db'], env)
  assert.equal(code, 1)
  assert.equal(stderr, 'intray: /proc/intray.db.part: there is no such file or folder. Create it first.\n')
})

test('a backup overwrites no file, and a restore no database and no index', async () => {
  const { folder, env } = await filled(1)
  const file = join(folder, 'b.db')
  writeFileSync(file, 'mine')
  const refused = await intray(['backup', file], env)
  assert.equal(refused.code, 1)
  assert.match(refused.stderr, /b\.db exists, and a backup overwrites nothing\./)
  assert.equal(readFileSync(file, 'utf8'), 'mine')

  rmSync(file)
  await intrayJson(['backup', file], env)
  writeFileSync(join(folder, 'left.db.part'), readFileSync(file))
  const left = await intray(
    ['restore', join(folder, 'left.db.part'), '--to', `sqlite:${join(folder, 'left.db')}`, '--no-erasures'],
    {},
  )
  assert.deepEqual([left.code, existsSync(join(folder, 'left.db.part'))], [1, true])
  for (const name of ['taken.db', 'lost.index.db']) {
    writeFileSync(join(folder, name), 'mine')
    const to = `sqlite:${join(folder, name.replace('.index', ''))}`
    const { code, stderr } = await intray(['restore', file, '--to', to, '--no-erasures'], {})
    assert.equal(code, 1)
    assert.match(stderr, new RegExp(`${name} exists\\. A restore overwrites nothing`))
    assert.equal(readFileSync(join(folder, name), 'utf8'), 'mine')
  }
})

test('in a folder backups are named by time, and --keep removes the oldest ones and nothing else', async () => {
  const { folder, env } = await filled(1)
  const backups = join(folder, 'backups')
  mkdirSync(backups)
  const old = ['intray-20200101T000000Z.db', 'intray-20210101T000000Z.db', 'intray-20220101T000000Z.db']
  const left = ['intray-20200101T000000Z.db.sha256', 'intray-20210601T000000Z.db.part']
  for (const name of [...old, ...left, 'other.db']) writeFileSync(join(backups, name), '')
  const report = await intrayJson(['backup', backups, '--keep', '2'], env)
  assert.deepEqual(
    report.removed,
    old.slice(0, 2).map((name) => join(backups, name)),
  )
  const made = basename(String(report.file))
  assert.match(made, /^intray-\d{8}T\d{6}Z\.db$/)
  const files = readdirSync(backups).filter((name) => !name.startsWith('erasures-'))
  assert.deepEqual(files.toSorted(), [old[2], made, `${made}.sha256`, 'other.db'].toSorted())

  const { code, stderr } = await intray(['backup', join(folder, 'one.db'), '--keep', '2'], env)
  assert.deepEqual([code, existsSync(join(folder, 'one.db'))], [2, false])
  assert.match(stderr, /--keep needs a folder/)
})

test('--verify finds one changed byte, with the digest beside the file and without, and restore refuses it', async () => {
  const { folder, env } = await filled()
  const file = join(folder, 'b.db')
  await intrayJson(['backup', file], env)
  const whole = await intray(['backup', '--verify', file], {})
  assert.deepEqual([whole.code, whole.stderr], [0, ''], 'control: undamaged')
  assert.match(String(whole.stdout), /b\.db is whole: 20 events and revisions, ids up to 20\./)
  const before = readFileSync(file)

  flip(file, before.length - 1)
  const byDigest = await intrayJsonOf(['backup', '--verify', file])
  assert.match(byDigest.problems[0]!, /do not match the SHA-256/)
  writeFileSync(file, before)

  rmSync(`${file}.sha256`)
  changePayloads(file)
  const byPayload = await intrayJsonOf(['backup', '--verify', file])
  assert.match(byPayload.problems.join(), /Event \d+: its bytes do not match their digest/)

  const target = join(folder, 'new', 'intray.db')
  const { code, stderr } = await intray(['restore', file, '--to', `sqlite:${target}`, '--no-erasures'], {})
  assert.equal(code, 1)
  assert.match(stderr, /is damaged\. Nothing was restored\./)
  assert.deepEqual(readdirSync(join(folder, 'new')), [])
  assert.deepEqual(readFileSync(file).length, before.length)
})

test('a byte that is changed anywhere in a backup does not fit the digest beside it', async () => {
  const { folder, env } = await filled(100)
  const file = join(folder, 'b.db')
  await intrayJson(['backup', file], env)
  const before = readFileSync(file)
  assert.equal(await digestProblem(file), null, 'control: unchanged')
  const random = seededRandom(15)
  let found = 0
  for (let n = 0; n < 200; n++) {
    flip(file, random(before.length))
    if ((await digestProblem(file)) !== null) found += 1
    writeFileSync(file, before)
  }
  assert.equal(found, 200)
  assert.equal(await digestProblem(file), null, 'control: as it was')
})

async function intrayJsonOf(args: readonly string[]): Promise<{ ok: boolean; problems: string[] }> {
  const { code, stdout } = await intray([...args, '--json'], {})
  assert.equal(code, 1)
  return JSON.parse(String(stdout)) as { ok: boolean; problems: string[] }
}

test('a damaged page of the structure, a text file and a missing file are answered with a sentence', async () => {
  const { folder, env } = await filled()
  const file = join(folder, 'b.db')
  await intrayJson(['backup', file], env)
  rmSync(`${file}.sha256`)
  const bytes = readFileSync(file)
  bytes.fill(0x55, 4096, 12_288)
  writeFileSync(file, bytes)
  const text = join(folder, 'text.db')
  writeFileSync(text, 'hello')
  for (const [path, sentence] of [
    [file, /damaged/],
    [text, /text\.db is not a backup of Intray/],
    [join(folder, 'none.db'), /none\.db cannot be read/],
  ] as const) {
    const { code, stdout, stderr } = await intray(['backup', '--verify', path], {})
    assert.equal(code, 1)
    assert.match(`${stdout}${stderr}`, sentence)
    assert.doesNotMatch(stderr, /unexpected failure/)
  }
})

test('a backup of a database that is damaged is not kept', async () => {
  const { folder, env } = await filled()
  changePayloads(join(folder, 'intray.db'))
  const file = join(folder, 'b.db')
  const { code, stderr } = await intray(['backup', file], env)
  assert.equal(code, 1)
  assert.match(stderr, /The backup is damaged, so it was not kept\. Event \d+: its bytes do not match/)
  assert.deepEqual(
    readdirSync(folder).filter((name) => name.startsWith('b.db')),
    [],
  )
})

test('a backup that is killed leaves no file of its name, and the next one works', async (t) => {
  const { folder, env } = await filled(200, 100_000)
  const file = join(folder, 'b.db')
  let killed = 0
  // The command may finish before the signal arrives.
  for (let attempt = 0; attempt < 20 && killed === 0; attempt++) {
    const child = spawn(LAUNCHER, ['backup', file], { env: cleanEnvironment(env), stdio: 'ignore' })
    t.after(() => child.kill('SIGKILL'))
    const closed = once(child, 'close')
    await until('the part is there', () => existsSync(`${file}.part`) || child.exitCode !== null)
    child.kill('SIGKILL')
    await closed
    if (existsSync(file)) rmSync(file)
    else killed += 1
  }
  assert.equal(killed, 1)
  assert.ok(existsSync(`${file}.part`), 'it was killed in the middle')
  const report = await intrayJson(['backup', file], env)
  assert.equal(report.rows, 200)
  assert.ok(!existsSync(`${file}.part`))
})

test('sessions and sign-in links do not survive a restore, and ids jump again with `epoch`', async () => {
  const { folder, url, env } = await filled(1)
  await withStore(url, async ({ operators }) => {
    await operators.create({ id: 'o1', name: 'ada', role: 'viewer', tenants: [TENANT], password: 'x', createdAt: 1 })
    const session = { operatorId: 'o1', createdAt: 1, expiresAt: 1e15, seenAt: 1 }
    await operators.openSession({ hash: new Uint8Array(32), ...session }, 9)
  })
  await intrayJson(['backup', join(folder, 'b.db')], env)
  const restored = `sqlite:${join(folder, 'new.db')}`
  const first = await intrayJson(['restore', join(folder, 'b.db'), '--to', restored, '--no-erasures'], {})
  const find = (at: string) => withStore(at, ({ operators }) => operators.findSession(new Uint8Array(32), 5))
  assert.ok(await find(url), 'control: the session is in the source')
  assert.equal(await find(restored), null)
  const again = await intrayJson(['epoch', '--no-erasures'], { INTRAY_DATABASE_URL: restored })
  assertJump(again, assertJump(first, 1))
})

test('restore --erasures erases again what the old database has erased, before the database is in place', async () => {
  const { folder, url, env } = await filled(3)
  const file = join(folder, 'b.db')
  await intrayJson(['backup', file], env)
  await intrayJson(['erase', '--event', '2', '--yes'], env)
  const plain = join(folder, 'plain', 'intray.db')
  await intrayJson(['restore', file, '--to', `sqlite:${plain}`, '--no-erasures'], {})
  assert.match((await rowsOf(plain))[1]!, /^2 .*ref:1/, 'control: the backup holds it')

  const target = join(folder, 'new', 'intray.db')
  const other = await filled(1)
  const args = ['restore', file, '--to', `sqlite:${target}`]
  const refused = await intray([...args, '--erasures', other.url], {})
  assert.equal(refused.code, 1)
  assert.match(refused.stderr, /is not the one that the backup was made of\. Nothing was restored\./)
  assert.deepEqual(readdirSync(join(folder, 'new')), [])

  const restored = await intrayJson([...args, '--erasures', url], {})
  assert.deepEqual([restored.ok, restored.rows, restored.erased], [true, 3, 1])
  assertJump(restored, 3)
  assert.deepEqual(readdirSync(join(folder, 'new')), ['intray.db'])
  assert.ok(!readFileSync(target).includes('ref:1'), 'no byte of it is left')
  await withStore(`sqlite:${target}`, async (store) => {
    assert.equal(await store.events.payload(2), null)
    assert.ok(await store.events.payload(1))
    assert.equal((await store.erasures.log(0, 9)).length, 1)
  })
})

test('a restore needs the erasure log, which every backup and every erasure writes beside the backups', async (t) => {
  const { folder, url, env } = await filled(3)
  const beside = join(folder, 'backups')
  mkdirSync(beside)
  const file = join(beside, 'b.db')
  await intrayJson(['backup', file], env)
  const logs = () => readdirSync(beside).filter((name) => name.endsWith('.log'))
  assert.match(logs().join(), /^erasures-[0-9a-f]{16}-[0-9a-f-]{36}-0\.log$/, 'before anything is erased')

  await intrayJson(['erase', '--event', '2', '--yes'], { ...env, INTRAY_ERASURE_LOG_TO: beside })
  const admin = await withStore(url, (store) => createToken(store, { ...TENANT, scope: 'admin' }))
  const server = await startServer(t, { ...env, INTRAY_CONSOLE: 'off', INTRAY_ERASURE_LOG_TO: beside })
  const headers = { Authorization: `Bearer ${admin}` }
  const { status } = await send(server.port, { method: 'DELETE', path: '/v1/inbox/events/3', headers })
  assert.equal(status, 200)
  const lines = () => readFileSync(join(beside, logs()[0]!), 'utf8').trimEnd().split('\n')
  await until('the server has written its erasure', () => lines().length === 3)
  assert.deepEqual(
    lines().map((line) => (JSON.parse(line) as { event_id?: number }).event_id),
    [undefined, 2, 3],
  )

  // As if the disk of the database were lost: only the folder of the backups is left.
  const restore = ['restore', file, '--to', `sqlite:${join(folder, 'new.db')}`]
  const refused = await intray(restore, {})
  assert.equal(refused.code, 2)
  assert.match(refused.stderr, /would come back\. Give --erasures/)
  const wrong = await intray([...restore, '--erasures', folder], {})
  assert.equal(wrong.code, 1)
  assert.match(wrong.stderr, /has no erasure log of the database .* Nothing was restored\./)
  const { erased } = await intrayJson([...restore, '--erasures', beside], {})
  assert.equal(erased, 2)
  await withStore(`sqlite:${join(folder, 'new.db')}`, async ({ events }) => {
    assert.deepEqual(await Promise.all([1, 2, 3].map(async (id) => (await events.payload(id)) !== null)), [
      true,
      false,
      false,
    ])
  })
})
