// The storage fails for real: a sync that reports an I/O error, and a disk that is full.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { send } from '../support/client.ts'
import { mountSmallDisk } from '../support/disk.ts'
import { createToken, withStore } from '../support/journal.ts'
import { audit, faultsOf, Ledger, Load, NOTHING_WRONG, post } from '../support/load.ts'
import { intray, LAUNCHER, startServer } from '../support/process.ts'
import { tempFolder } from '../support/temp.ts'
import { until, within } from '../support/until.ts'

const hasStrace = spawnSync('strace', ['-V'], { stdio: 'ignore' }).status === 0

/** Runs the launcher under strace, which runs beside it (-D), and lets every sync from the n-th of a thread on fail. */
function withFailingSyncs(log: string, from: number): string[] {
  const syncs = 'fsync,fdatasync'
  const inject = `inject=${syncs}:error=EIO:when=${from}+`
  return ['strace', '-D', '-f', '-qq', '-o', log, '-e', `trace=${syncs}`, '-e', inject, LAUNCHER, 'serve']
}

test('a sync that fails ends the process by itself; its batch is answered 503 with stored unknown, and nothing acknowledged is lost', {
  skip: hasStrace ? false : 'not run: strace is not installed',
}, async (t) => {
  const folder = tempFolder('fail-stop')
  const databaseUrl = `sqlite:${join(folder, 'intray.db')}`
  const token = await withStore(databaseUrl, (store) => createToken(store))
  const ledger = new Ledger(6)
  for (const failFrom of [20, 33, 50]) {
    const log = join(folder, `strace-${failFrom}`)
    const server = await startServer(t, { INTRAY_DATABASE_URL: databaseUrl }, withFailingSyncs(log, failFrom))
    const [acknowledged, refused] = [ledger.acknowledged.size, ledger.refused.length]
    const load = new Load({ port: server.port, token, ledger, connections: 8 })
    const code = await within('the server to end by itself', server.exited)
    await within('all senders to end', load.finished)
    const injected = readFileSync(log, 'utf8').split('(INJECTED)').length - 1
    t.diagnostic(
      `${injected} syncs failed from the ${failFrom}th on: ${ledger.acknowledged.size - acknowledged} acknowledged before, ` +
        `${ledger.refused.length - refused} answered 503, exit code ${code}`,
    )
    assert.ok(injected > 0, 'no sync failed')
    assert.ok(code !== null && code !== 0, `it ended with ${code} (${server.child.signalCode})`)
    assert.match(server.stderr(), /"level":"fatal"/)
    assert.ok(ledger.acknowledged.size > acknowledged, 'it worked before')
    assert.ok(ledger.refused.length > refused, 'nobody was told')
  }
  for (const { answer } of ledger.refused) {
    assert.deepEqual([answer.status, answer.json?.error, answer.json?.stored], [503, 'storage_unavailable', 'unknown'])
    assert.ok(answer.headers['retry-after'])
  }
  const server = await startServer(t, { INTRAY_DATABASE_URL: databaseUrl })
  const found = await audit(databaseUrl, ledger)
  t.diagnostic(
    `${found.acknowledged} acknowledged, ${found.storedUnknown.length} of ${ledger.unknown.length} unknown stored`,
  )
  assert.deepEqual(faultsOf(found), NOTHING_WRONG)
  for (const ref of ledger.unknown) {
    const answer = await post(server.port, token, ledger.sent.get(ref)!)
    assert.equal(answer.status, 200, answer.text)
    ledger.acknowledged.set(ref, Number(answer.json?.id))
  }
  assert.deepEqual(faultsOf(await audit(databaseUrl, ledger)), NOTHING_WRONG)
})

const MEGABYTE = 1024 * 1024

test('on a full disk the server answers 503, stays up, reads go on, and it resumes unaided when there is room', async (t) => {
  const disk = mountSmallDisk(t, 16 * MEGABYTE)
  if (disk === null) return t.skip('not run: no file system can be mounted here (needs root)')
  const ballast = join(disk, 'ballast')
  writeFileSync(ballast, Buffer.alloc(11 * MEGABYTE))
  const databaseUrl = `sqlite:${join(disk, 'intray.db')}`
  const env = { INTRAY_DATABASE_URL: databaseUrl }
  const token = await withStore(databaseUrl, (store) => createToken(store))
  const server = await startServer(t, env)
  const ledger = new Ledger(7, 60_000)
  const authorized = { path: '/api/ping', headers: { Authorization: `Bearer ${token}` } }

  const filling = new Load({ port: server.port, token, ledger, connections: 8 })
  await within('the disk to be full', filling.finished)
  const full = await until('the smallest message finds no room', async () => {
    const answer = await post(server.port, token, '{"source_ref":"small"}')
    return answer.status !== 200 && answer
  })
  assert.deepEqual(ledger.failed, [], 'no connection was cut')
  for (const answer of [full, ...ledger.refused.map((refusal) => refusal.answer)]) {
    assert.deepEqual([answer.status, answer.json?.error, answer.json?.stored], [503, 'storage_unavailable', 'unknown'])
  }
  const ready = await send(server.port, { path: '/readyz' })
  assert.deepEqual([ready.status, ready.json?.error], [503, 'storage_unavailable'])
  assert.equal((await send(server.port, { path: '/livez' })).status, 200)
  assert.equal((await send(server.port, authorized)).status, 200, 'ping goes on')
  const firstId = ledger.acknowledged.values().next().value!
  const shown = await intray(['event', 'show', String(firstId), '--raw'], env)
  assert.equal(shown.code, 0, shown.stderr)
  const acknowledgedBefore = ledger.acknowledged.size

  rmSync(ballast)
  await until('the server is ready again', async () => (await send(server.port, { path: '/readyz' })).status === 200)
  for (const ref of ledger.unknown) {
    const answer = await post(server.port, token, ledger.sent.get(ref)!)
    assert.equal(answer.status, 200, answer.text)
    ledger.acknowledged.set(ref, Number(answer.json?.id))
  }
  server.child.kill('SIGTERM')
  assert.equal(await within('the server to end', server.exited), 0)
  const found = await audit(databaseUrl, ledger)
  t.diagnostic(`${acknowledgedBefore} acknowledged until the disk was full, ${found.acknowledged} in all`)
  assert.ok(acknowledgedBefore > 10)
  const { unsent, ...faults } = faultsOf(found)
  assert.deepEqual({ ...faults, unsent: unsent <= 1 ? 0 : unsent }, NOTHING_WRONG, 'the small probes may be there')
})

/** A running server whose disk has not room for a single row more. `free` makes room. Null where none can be mounted. */
async function startOnFullDisk(t: TestContext) {
  const disk = mountSmallDisk(t, 4 * MEGABYTE)
  if (disk === null) return null
  const databaseUrl = `sqlite:${join(disk, 'intray.db')}`
  const env = { INTRAY_DATABASE_URL: databaseUrl }
  const token = await withStore(databaseUrl, (store) => createToken(store))
  const server = await startServer(t, env)
  const ledger = new Ledger(8, 60_000)
  const filling = new Load({ port: server.port, token, ledger, connections: 4 })
  await within('the disk to be full', filling.finished)
  assert.ok(ledger.acknowledged.size > 0)
  const ballast = join(disk, 'ballast')
  fillUp(ballast)
  // What a large message could not use of the WAL may still take a few small rows.
  await until('not even a token finds room', () =>
    withStore(databaseUrl, (store) => createToken(store)).then(
      () => false,
      () => true,
    ),
  )
  return { server, env, databaseUrl, ledger, free: () => rmSync(ballast) }
}

test('a server told to stop while its disk is full loses nothing and ends with 0', async (t) => {
  const full = await startOnFullDisk(t)
  if (full === null) return t.skip('not run: no file system can be mounted here (needs root)')
  full.server.child.kill('SIGTERM')
  const code = await within('the server to end', full.server.exited)
  full.free()
  assert.deepEqual(faultsOf(await audit(full.databaseUrl, full.ledger)), NOTHING_WRONG)
  assert.equal(code, 0, `a checkpoint that finds no room is no failure to stop: ${full.server.stderr().slice(-600)}`)
})

test('a command that finds the disk full says so in a sentence', async (t) => {
  const full = await startOnFullDisk(t)
  if (full === null) return t.skip('not run: no file system can be mounted here (needs root)')
  const { code, stderr } = await intray(['token', 'create', '--account', '1', '--company', '1'], full.env)
  assert.equal(code, 1)
  assert.match(stderr, /^intray: .*disk is full/)
  assert.doesNotMatch(stderr, /^ {4}at /m, 'a sentence, no stack')
})

/** Writes until nothing fits any more. */
function fillUp(path: string): void {
  for (const piece of [64 * 1024, 4096]) {
    try {
      for (;;) writeFileSync(path, Buffer.alloc(piece), { flag: 'a' })
    } catch (error) {
      assert.equal((error as NodeJS.ErrnoException).code, 'ENOSPC')
    }
  }
}
