// `./intray backup` and `./intray restore` on PostgreSQL: they run the server's own programs, or say what to run.

import assert from 'node:assert/strict'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { EPOCH_IDS, type IdGap } from '../../src/model/id-gaps.ts'
import { item } from '../store/rows.ts'
import { intrayJson, runToEnd } from '../support/command.ts'
import { withStore } from '../support/journal.ts'
import { newMigratedDatabase, newPostgresDatabase } from '../support/postgres/databases.ts'
import { programs, WITHOUT_PROGRAMS, withPrograms } from '../support/postgres/debian.ts'
import { ROOT } from '../support/process.ts'
import { tempFolder } from '../support/temp.ts'

test('without pg_dump the command prints the line to run, without the password, and leaves nothing', async () => {
  const url = await newMigratedDatabase()
  const file = join(tempFolder('no-pg'), 'b.dump')
  const withPassword = url.replace(/\/\/([^:@]*)(:[^@]*)?@/, '//$1:s3cret@')
  const env = { INTRAY_DATABASE_URL: withPassword, PATH: '/nonexistent' }
  const { code, stderr } = await runToEnd([process.execPath, join(ROOT, 'src/main.ts'), 'backup', file], env)
  assert.equal(code, 1, stderr)
  assert.match(
    stderr,
    /pg_dump is not on the PATH\. Install the client programs of PostgreSQL \d+ or newer, or run this/,
  )
  assert.match(stderr, /PGPASSWORD=\.\.\. pg_dump --format=custom .*--schema=intray .*b\.dump /)
  assert.doesNotMatch(stderr, /s3cret/)
  assert.ok(!existsSync(file) && !existsSync(`${file}.part`))
})

test('a dump restores into an empty database, whose ids jump; a changed byte and a database in use are refused', async (t) => {
  if (programs === null) return t.skip(WITHOUT_PROGRAMS)
  const url = await newMigratedDatabase()
  const env = { INTRAY_DATABASE_URL: url, ...withPrograms }
  const append = (at: string) =>
    withStore(at, ({ journal }) => journal.append([item({ body: { text: 'one' } }), item({ body: { text: 'two' } })]))
  await append(url)
  const file = join(tempFolder('pg'), 'b.dump')
  const report = await intrayJson(['backup', file], env)
  assert.deepEqual([report.ok, report.rows], [true, null])
  const { ok } = await intrayJson(['backup', '--verify', file], env)
  assert.equal(ok, true)

  const target = await newPostgresDatabase()
  const restored = await intrayJson(['restore', file, '--to', target, '--no-erasures'], env)
  const { after, before } = restored.gap as IdGap
  assert.deepEqual([restored.ok, restored.rows, after], [true, 2, 2])
  assert.ok(before >= 2 + EPOCH_IDS)
  await intrayJson(['erase', '--event', '1', '--yes'], env)
  const erasing = await newPostgresDatabase()
  const { erased } = await intrayJson(['restore', file, '--to', erasing, '--erasures', url], env)
  assert.equal(erased, 1)
  await withStore(erasing, async ({ events }) => {
    assert.deepEqual([await events.payload(1), (await events.payload(2)) !== null], [null, true])
  })

  const added = await append(target)
  assert.deepEqual(
    added.map((outcome) => 'id' in outcome && outcome.id),
    [before + 1, before + 2],
  )

  const again = await runToEnd([join(ROOT, 'intray'), 'restore', file, '--to', target, '--no-erasures'], env)
  assert.equal(again.code, 1)
  assert.match(again.stderr, /holds Intray data, and a restore overwrites nothing/)

  const bytes = readFileSync(file)
  bytes[bytes.length >> 1]! ^= 1
  writeFileSync(file, bytes)
  const empty = await newPostgresDatabase()
  const refused = await runToEnd([join(ROOT, 'intray'), 'restore', file, '--to', empty, '--no-erasures'], env)
  assert.equal(refused.code, 1)
  assert.match(refused.stderr, /do not match the SHA-256/)
})
