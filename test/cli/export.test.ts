// `./intray export` and `./intray verify`, on files and beside a server.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import type { Store } from '../../src/store/contract/store.ts'
import { idOf, item, NOON, TENANT } from '../store/rows.ts'
import { intrayJson } from '../support/command.ts'
import { mountSmallDisk } from '../support/disk.ts'
import { drivers } from '../support/drivers.ts'
import { createToken, withStore } from '../support/journal.ts'
import { post } from '../support/load.ts'
import { cleanEnvironment, intray, LAUNCHER, startServer } from '../support/process.ts'
import { tempFolder } from '../support/temp.ts'

const TENANT_ARGS = ['--account', '7', '--company', '42']
const CANARY = 'canary-4c1f'

type Line = Readonly<Record<string, unknown>>

/** Two of channel `c` with a revision of the first, one of another time, one erased, one of another tenant. */
async function fill(store: Store): Promise<number[]> {
  const outcomes = await store.journal.append([
    item({ sourceRef: 'a', channelRef: 'c', body: 'one', receivedAt: NOON + 123 }),
    item({ channelRef: 'c', body: 'two' }),
    item({ sourceRef: 'late', body: 'three', receivedAt: NOON + 86_400_000 }),
    item({ sourceRef: CANARY, channelRef: CANARY, body: { text: CANARY }, userAgent: CANARY, contentType: CANARY }),
    item({ accountId: 8, companyId: 43, sourceRef: 'a', channelRef: 'c', body: 'other tenant' }),
  ])
  await store.journal.append([item({ sourceRef: 'a', channelRef: 'c', body: 'one again' })])
  const ids = outcomes.map(idOf)
  await store.erasures.erase(TENANT, [ids[3]!], NOON + 9)
  return ids
}

const readLines = (path: string): Line[] =>
  readFileSync(path, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Line)

for (const driver of drivers) {
  test(`${driver.name}: the file holds every row by id, exact; filters leave out the others; it is whole until a byte changes`, async () => {
    const url = await driver.newDatabase()
    const env = { INTRAY_DATABASE_URL: url }
    const ids = await withStore(url, fill, 'server')
    const out = join(tempFolder('export'), 'all.ndjson')
    const written = await intray(['export', '--out', out], env)
    assert.equal(written.code, 0, written.stderr)
    assert.match(written.stderr, /^6 rows: 5 events, 1 revisions; 1 of them erased\. Written: .*all\.ndjson$/m)
    assert.equal(statSync(out).mode & 0o777, 0o600)
    assert.equal(existsSync(`${out}.part`), false)
    const [header, ...rows] = readLines(out)
    const manifest = rows.pop()!.manifest as Line
    assert.equal(header!.database, await withStore(url, async ({ facts }) => facts.database_uuid))
    assert.deepEqual(
      rows.map(({ payload }) => payload),
      ['one', 'two', 'three', null, 'other tenant', 'one again'],
    )
    assert.equal(rows[0]!.received_at, '2026-11-15T12:00:00.123Z')
    assert.deepEqual([rows[5]!.kind, rows[5]!.revises, rows[5]!.source_ref], ['revision', ids[0], 'a'])
    assert.deepEqual([manifest.first_id, manifest.last_id], [ids[0], rows[5]!.id])
    assert.doesNotMatch(readFileSync(out, 'utf8'), new RegExp(CANARY))

    const filters: [args: string[], payloads: (string | null)[]][] = [
      [TENANT_ARGS, ['one', 'two', 'three', null, 'one again']],
      [['--account', '8', '--company', '43'], ['other tenant']],
      [['--account', '9', '--company', '43'], []],
      [
        ['--to', '2026-11-16T12:00:00Z', ...TENANT_ARGS],
        ['one', 'two', null, 'one again'],
      ],
      [['--from', '2026-11-16T12:00:00Z'], ['three']],
      [
        ['--channel', 'c', ...TENANT_ARGS],
        ['one', 'two', 'one again'],
      ],
      [
        ['--state', 'pending', '--channel', 'c', ...TENANT_ARGS],
        ['one', 'two'],
      ],
      [['--state', 'dead', ...TENANT_ARGS], []],
    ]
    for (const [args, payloads] of filters) {
      const { code, stdout, stderr } = await intray(['export', '--out', '-', ...args], env)
      assert.equal(code, 0, stderr)
      const lines = stdout.toString().trimEnd().split('\n').slice(1, -1)
      assert.deepEqual(
        lines.map((line) => (JSON.parse(line) as Line).payload),
        payloads,
        args.join(' '),
      )
    }

    const verified = await intrayJson(['verify', out], {})
    assert.deepEqual([verified.ok, verified.manifest], [true, manifest])
    const bytes = readFileSync(out)
    const at = bytes.indexOf('three')
    bytes[at]! ^= 1
    writeFileSync(out, bytes)
    const damaged = await intray(['verify', out], {})
    assert.equal(damaged.code, 1)
    assert.match(damaged.stdout.toString(), new RegExp(`Line 4 \\(id ${ids[2]}\\) is not as it was written\\.`))
  })

  test(`${driver.name}: beside a server it holds what was acknowledged before; the state of each event; compressed`, async (t) => {
    const url = await driver.newDatabase()
    const env = { INTRAY_DATABASE_URL: url }
    const token = await withStore(url, (store) => createToken(store), 'server')
    const server = await startServer(t, env)
    const acknowledged: unknown[] = []
    for (let n = 0; n < 20; n++) {
      const { status, text } = await post(server.port, token, `{"source_ref":"r:${n}"}`)
      assert.equal(status, 200)
      acknowledged.push((JSON.parse(text) as Line).id)
    }
    const out = join(tempFolder('export'), 'all.ndjson.gz')
    const written = await intray(['export', '--out', out, '--subscription', 'default', ...TENANT_ARGS], env)
    assert.equal(written.code, 0, written.stderr)
    const lines = gunzipSync(readFileSync(out)).toString().trimEnd().split('\n').slice(1, -1)
    const rows = lines.map((line) => JSON.parse(line) as Line)
    assert.deepEqual(
      rows.map(({ id }) => id),
      acknowledged,
    )
    assert.deepEqual(new Set(rows.map(({ state }) => state)), new Set(['pending']))
    assert.equal((await intrayJson(['verify', out], {})).ok, true)
    writeFileSync(out, readFileSync(out).subarray(0, -20))
    const cut = await intray(['verify', out], {})
    assert.deepEqual([cut.code, /damaged or cut off/.test(cut.stdout.toString())], [1, true], cut.stderr)
    const [entry] = await withStore(url, (store) => store.operators.listAudit(null, 1))
    assert.deepEqual([entry?.action, entry?.target, entry?.tenant], ['export', out, TENANT])
  })
}

test('the name of the file says its form, unless a flag does; neither CSV nor Parquet can be imported', async () => {
  const url = await drivers[0]!.newDatabase()
  const env = { INTRAY_DATABASE_URL: url }
  await withStore(url, fill, 'server')
  const folder = tempFolder('export')
  const forms: [name: string, begins: string, args: string[]][] = [
    ['a.csv', '\uFEFFid,kind,', []],
    ['a.parquet', 'PAR1', []],
    ['a.json', '{"intray_export":1,', []],
    ['a.txt', '\uFEFFid,kind,', ['--format', 'csv']],
  ]
  for (const [name, begins, args] of forms) {
    const out = join(folder, name)
    const { code, stderr } = await intray(['export', '--out', out, ...args], env)
    assert.equal(code, 0, stderr)
    const text = readFileSync(out, 'utf8')
    assert.ok(text.startsWith(begins), name)
    assert.ok(!text.includes(CANARY), name)
    const { code: imported, stderr: said } = await intray(['import', out], env)
    assert.equal(imported, name === 'a.json' ? 0 : 1, said)
    if (imported === 1) assert.match(said, /Line 1 is no header of an export in format 1 \(ndjson, /)
  }
})

test('where it cannot be written whole, an export says so in a sentence, and leaves nothing', async (t) => {
  const url = await drivers[0]!.newDatabase()
  const env = { INTRAY_DATABASE_URL: url }
  const body = 'x'.repeat(400_000)
  await withStore(url, (store) => store.journal.append([1, 2, 3, 4].map(() => item({ body }))), 'server')
  const child = spawn(LAUNCHER, ['export', '--out', '-'], {
    env: cleanEnvironment(env),
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const closed = once(child, 'close')
  child.stdout.destroy()
  let said = ''
  for await (const chunk of child.stderr) said += chunk
  assert.deepEqual(await closed, [1, null], said)
  assert.match(said, /^intray: The export on stdout is not whole: write EPIPE\.$/m)
  assert.doesNotMatch(said, / {4}at /, 'no stack')

  const disk = mountSmallDisk(t, 1024 * 1024)
  if (disk === null) return t.skip('not run: no file system can be mounted here (needs root)')
  const full = await intray(['export', '--out', join(disk, 'all.ndjson')], env)
  assert.equal(full.code, 1, full.stderr)
  assert.match(full.stderr, /all\.ndjson was not written, and nothing is left of it: ENOSPC: .*\.$/m)
  assert.deepEqual(readdirSync(disk), [])
  const control = await intray(['export', '--out', join(disk, 'all.ndjson.gz')], env)
  assert.equal(control.code, 0, control.stderr)
})

test('a file that exists is not overwritten; damaged bytes are told; wrong usage is refused', async () => {
  const url = await drivers[0]!.newDatabase()
  const env = { INTRAY_DATABASE_URL: url }
  await withStore(url, fill, 'server')
  const folder = tempFolder('export')
  const out = join(folder, 'all.ndjson')
  writeFileSync(out, 'mine')
  const existing = await intray(['export', '--out', out], env)
  assert.deepEqual([existing.code, /overwrites nothing/.test(existing.stderr)], [1, true], existing.stderr)
  assert.equal(readFileSync(out, 'utf8'), 'mine')
  writeFileSync(`${out}.2.part`, 'theirs')
  const busy = await intray(['export', '--out', `${out}.2`], env)
  assert.deepEqual([busy.code, /another export writes it/.test(busy.stderr)], [1, true], busy.stderr)
  const usage: [args: string[], says: RegExp][] = [
    [[], /--out FILE/],
    [['--out', 'x', '--channel', 'c'], /needs the tenant/],
    [['--out', 'x', '--state', 'dead'], /needs the tenant/],
    [['--out', 'x', '--state', 'gone', ...TENANT_ARGS], /must be one of/],
    [['--out', 'x', '--from', 'today'], /--from must be a time/],
    [['--out', 'x', '--account', '7'], /tenant is missing/],
  ]
  for (const [args, says] of usage) {
    const { code, stderr } = await intray(['export', ...args], env)
    assert.deepEqual([code, says.test(stderr)], [2, true], `${args.join(' ')}: ${stderr}`)
  }
  const unknown = await intray(['export', '--out', 'x', '--subscription', 'crm', ...TENANT_ARGS], env)
  assert.deepEqual([unknown.code, /no subscription crm, but: default/.test(unknown.stderr)], [1, true], unknown.stderr)
  assert.match((await intray(['verify', join(folder, 'none')], {})).stderr, /cannot be read/)
})
