// A backup under load, the loss of the server, and the restored service: what was acknowledged before the backup is there, and
// followers notice what was lost.

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { EPOCH_IDS } from '../../src/model/id-gaps.ts'
import { writeCursor } from '../../src/model/list-cursor.ts'
import { item } from '../store/rows.ts'
import { send } from '../support/client.ts'
import { intrayJson } from '../support/command.ts'
import type { Driver } from '../support/drivers.ts'
import { EventStream } from '../support/event-stream.ts'
import { createToken, untilIndexed, withStore } from '../support/journal.ts'
import { Ledger, Load, post } from '../support/load.ts'
import { newMigratedDatabase, newPostgresDatabase } from '../support/postgres/databases.ts'
import { programs, WITHOUT_PROGRAMS, withPrograms } from '../support/postgres/debian.ts'
import { intray, startServer } from '../support/process.ts'
import { tempFolder } from '../support/temp.ts'
import { until } from '../support/until.ts'

/** What is stored before the load begins: a backup takes a while. */
const OLD_EVENTS = 1000
const PER_SECOND = 200
/** More than a test can last. */
const MOST_MESSAGES = 60_000

async function newDatabases(driver: Driver['name']) {
  if (driver === 'postgres') return { source: await newMigratedDatabase(), target: await newPostgresDatabase() }
  const folder = tempFolder('restore')
  return { source: `sqlite:${join(folder, 'intray.db')}`, target: `sqlite:${join(folder, 'new', 'intray.db')}` }
}

/** Takes a backup in mid-load, kills the server, and restores the backup. */
async function lose(t: TestContext, driver: Driver['name']) {
  const { source, target } = await newDatabases(driver)
  const env = { INTRAY_DATABASE_URL: source, INTRAY_CONSOLE: 'off', ...withPrograms }
  const tokens = await withStore(source, async (store) => {
    for (let n = 0; n < OLD_EVENTS; n += 500) {
      await store.journal.append(Array.from({ length: 500 }, () => item({ body: { text: 'x'.repeat(1000) } })))
    }
    return { sender: await createToken(store), processor: await createToken(store, { scope: 'processor' }) }
  })
  const server = await startServer(t, env)
  const ledger = new Ledger(31, 1000)
  const pace = { perSecond: PER_SECOND, limit: MOST_MESSAGES }
  const load = new Load({ port: server.port, token: tokens.sender, ledger, connections: 4, ...pace })
  await until('100 messages are acknowledged', () => ledger.acknowledged.size >= 100)

  // The server may stand still for as long as a backup takes.
  const { before, file, backup, after } = await until('messages come in during a backup', async () => {
    const known = new Map(ledger.acknowledged)
    const path = join(tempFolder('backup'), 'b')
    const taken = { before: known, file: path, backup: await intrayJson(['backup', path], env) }
    const { size } = ledger.acknowledged
    return size > known.size && { ...taken, after: size }
  })
  await until('messages come in after the backup', () => ledger.acknowledged.size > after)
  const isWarned = await intray(['epoch', '--no-erasures'], env)
  server.child.kill('SIGKILL')
  await load.finished

  const restored = { ...env, INTRAY_DATABASE_URL: target }
  const { gap } = await intrayJson(['restore', file, '--to', target, '--no-erasures'], env)
  const lost = Math.max(...ledger.acknowledged.values())
  return {
    restored,
    tokens,
    ledger,
    before,
    after,
    backup,
    isWarned,
    lost,
    gap: gap as { after: number; before: number },
  }
}

for (const driver of ['sqlite', 'postgres'])
  test(`${driver}: a service restored from a backup at 200 messages/s has all from before it, and refuses lost cursors`, async (t) => {
    if (driver === 'postgres' && programs === null) return t.skip(WITHOUT_PROGRAMS)
    await assertRestored(t, driver)
  })

async function assertRestored(t: TestContext, driver: Driver['name']): Promise<void> {
  const { restored, tokens, ledger, before, after, backup, isWarned, lost, gap } = await lose(t, driver)
  assert.ok(after > before.size, 'control: messages came in during the backup')
  assert.equal(isWarned.code, 1)
  assert.match(isWarned.stderr, /Servers are running on the database/)
  t.diagnostic(`${after - before.size} messages came in during the backup`)
  // What a dump holds is known after the restore only.
  assert.ok(gap.after === backup.last_id || backup.last_id === null)
  assert.ok(gap.after >= Math.max(...before.values()))
  assert.ok(gap.before >= gap.after + EPOCH_IDS)
  assert.ok(lost > gap.after, 'control: an acknowledged message is not in the backup')

  const server = await startServer(t, restored)
  await untilIndexed(restored.INTRAY_DATABASE_URL)
  const doctor = await intray(['doctor', '--json'], restored)
  const { checks } = JSON.parse(String(doctor.stdout)) as { checks: { name: string; verdict: string }[] }
  const wrong = checks.filter(({ verdict }) => verdict !== 'ok').map(({ name }) => name)
  // The PostgreSQL of tests runs without syncs.
  assert.deepEqual(wrong, driver === 'postgres' ? ['syncs'] : [])

  // Everything from before the backup is known under its id: sent again, it is a duplicate.
  for (const [ref, id] of before) {
    const again = await post(server.port, tokens.sender, ledger.sent.get(ref)!)
    assert.deepEqual([again.status, again.json?.id], [200, id])
  }

  const known = [...before.values()].at(-10)!
  const follower = await EventStream.open(server.port, tokens.processor, { lastEventId: known })
  const fresh = await post(server.port, tokens.sender, '{"source_ref":"after the restore"}')
  const newId = fresh.json?.id as number
  assert.ok(newId > gap.before)
  await follower.until(({ ids }) => ids.includes(newId))
  const expected = Array.from({ length: gap.after - known }, (_, at) => known + 1 + at)
  assert.deepEqual(follower.ids, [...expected, newId])
  follower.close()

  const get = (path: string, headers: Record<string, string> = {}) =>
    send(server.port, { path, headers: { Authorization: `Bearer ${tokens.processor}`, ...headers } })
  const listed = (id: number) => get(`/v1/inbox/events?cursor=${writeCursor({ id, receivedAt: null })}`)
  const refused = [
    await get('/v1/inbox/stream', { 'Last-Event-ID': String(lost) }),
    await get(`/v1/inbox/stream?after=${newId + 1}`),
    await listed(lost),
  ]
  assert.deepEqual(
    refused.map(({ status, json }) => [status, json?.error]),
    Array.from({ length: 3 }, () => [409, 'cursor_ahead']),
  )
  assert.match(String(refused[0]!.json?.message), new RegExp(`Go on after ${gap.after},`))
  assert.equal((await listed(known)).status, 200)
}
