// `./intray import`: killed and resumed, beside a server, refused.

import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { backDoorOf } from '../store/back-door.ts'
import { item } from '../store/rows.ts'
import { intrayJson } from '../support/command.ts'
import { drivers } from '../support/drivers.ts'
import { conversationCounts, createToken, readJournal, untilIndexed, withStore } from '../support/journal.ts'
import { killedAtLine } from '../support/killed-at-line.ts'
import { post } from '../support/load.ts'
import { intray, startServer } from '../support/process.ts'
import { tempFolder } from '../support/temp.ts'

const ROWS = 1500
const CHANNELS = 40

/** A database with messages, half of them without a reference, and its export. */
async function exported(url: string): Promise<string> {
  await withStore(
    url,
    async (store) => {
      for (let from = 0; from < ROWS; from += 300) {
        const fields = (n: number) => ({
          channelRef: `c:${n % CHANNELS}`,
          body: `{"n":${n % 7}}`,
          receivedAt: 1e12 + n,
        })
        const batch = Array.from({ length: 300 }, (_, i) => from + i)
        await store.journal.append(batch.map((n) => item({ ...fields(n), sourceRef: n % 2 ? `r:${n}` : null })))
      }
      await store.journal.append([item({ sourceRef: 'r:1', channelRef: 'c:1', body: 'other' })])
    },
    'server',
  )
  const out = join(tempFolder('import'), 'all.ndjson.gz')
  const { code, stderr } = await intray(['export', '--out', out], { INTRAY_DATABASE_URL: url })
  assert.equal(code, 0, stderr)
  return out
}

const digests = async (url: string) =>
  (await readJournal(url)).map(({ event }) => Buffer.from(event.sha256).toString('hex')).toSorted()

for (const from of drivers) {
  const to = drivers.find((one) => one !== from)!

  test(`${from.name} to ${to.name}: killed on the way and repeated beside a server, everything is there once`, async (t) => {
    const source = await from.newDatabase()
    const file = await exported(source)
    const url = await to.newDatabase()
    const token = await withStore(url, (store) => createToken(store), 'server')
    const args = ['import', file, '--to', url]
    assert.ok(await killedAtLine('import: id ', args))
    const before = await backDoorOf(to).countJournal(url)
    assert.ok(before.events > 0 && before.events < ROWS, `${before.events} rows when it was killed`)

    const server = await startServer(t, { INTRAY_DATABASE_URL: url })
    assert.equal((await post(server.port, token, '{"source_ref":"meanwhile"}')).status, 200)
    const report = await intrayJson(args, {})
    assert.equal(report.present, before.events)
    assert.equal((report.events as number) + (report.revisions as number), ROWS + 1 - before.events)
    const again = await intrayJson(args, {})
    assert.deepEqual([again.events, again.revisions, again.present], [0, 0, ROWS + 1])
    await untilIndexed(url)
    const own = createHash('sha256').update('{"source_ref":"meanwhile"}').digest('hex')
    assert.deepEqual(await digests(url), [...(await digests(source)), own].toSorted())
    const { indexed, rows } = await conversationCounts(url)
    assert.deepEqual(indexed, rows)
    assert.equal(Object.keys(rows).length, CHANNELS)
    server.child.kill('SIGTERM')
    await server.exited
  })
}

test('a damaged file is refused before anything is stored; so are wrong flags and several tenants for one', async () => {
  const source = await drivers[0]!.newDatabase()
  await withStore(source, (store) => store.journal.append([item(), item({ accountId: 8 })]), 'server')
  const file = join(tempFolder('import'), 'all.ndjson')
  assert.equal((await intray(['export', '--out', file], { INTRAY_DATABASE_URL: source })).code, 0)
  const url = await drivers[0]!.newDatabase()
  await withStore(url, async () => {}, 'server')
  const env = { INTRAY_DATABASE_URL: url }

  const several = await intray(['import', file, '--account', '1', '--company', '2'], env)
  assert.deepEqual([several.code, /several tenants/.test(several.stderr)], [2, true], several.stderr)
  const half = await intray(['import', file, '--account', '1'], env)
  assert.deepEqual([half.code, /tenant is missing/.test(half.stderr)], [2, true], half.stderr)
  const none = await intray(['import', `${file}.none`], env)
  assert.deepEqual([none.code, /cannot be read/.test(none.stderr)], [1, true], none.stderr)

  const whole = readFileSync(file)
  writeFileSync(`${file}.2`, whole.with(whole.length - 200, 0))
  const damaged = await intray(['import', `${file}.2`], env)
  assert.deepEqual([damaged.code, /Nothing was imported/.test(damaged.stderr)], [1, true], damaged.stderr)
  writeFileSync(`${file}.gz`, 'no gzip')
  const packed = await intray(['import', `${file}.gz`], env)
  assert.deepEqual([packed.code, /damaged or cut off/.test(packed.stderr)], [1, true], packed.stderr)
  assert.equal((await readJournal(url)).length, 0)

  const control = await intray(['import', file], env)
  assert.equal(control.code, 0, control.stderr)
  assert.match(control.stdout.toString(), /^Imported 2 events and 0 revisions; passed over: 0 already there\.$/m)
  assert.match(control.stderr, /2 of the tenants have no token here, such as account 7, company 42/)
  const [entry] = await withStore(url, (store) => store.operators.listAudit(null, 1))
  assert.deepEqual([entry?.action, entry?.target], ['import', file])
})
