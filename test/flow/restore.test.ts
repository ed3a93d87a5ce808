// A backup under load, the loss of the server, and the restored service: what was acknowledged before the backup is there, and
// followers notice what was lost.

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { EPOCH_IDS } from '../../src/model/id-gaps.ts'
import { writeCursor } from '../../src/model/list-cursor.ts'
import { send } from '../support/client.ts'
import { intrayJson } from '../support/command.ts'
import { EventStream } from '../support/event-stream.ts'
import { createToken, withStore } from '../support/journal.ts'
import { Ledger, Load, post } from '../support/load.ts'
import { intray, startServer } from '../support/process.ts'
import { tempFolder } from '../support/temp.ts'
import { until } from '../support/until.ts'

/** Takes a backup in mid-load, kills the server, and restores the backup. */
async function lose(t: TestContext) {
  const folder = tempFolder('restore')
  const env = { INTRAY_DATABASE_URL: `sqlite:${join(folder, 'intray.db')}`, INTRAY_CONSOLE: 'off' }
  const tokens = await withStore(env.INTRAY_DATABASE_URL, async (store) => ({
    sender: await createToken(store),
    processor: await createToken(store, { scope: 'processor' }),
  }))
  const server = await startServer(t, env)
  const ledger = new Ledger(31, 1000)
  const load = new Load({ port: server.port, token: tokens.sender, ledger, connections: 4 })
  await until('50 messages are acknowledged', () => ledger.acknowledged.size >= 50)

  const before = new Map(ledger.acknowledged)
  const backup = await intrayJson(['backup', join(folder, 'b.db')], env)
  const after = ledger.acknowledged.size
  await until('messages come in after the backup', () => ledger.acknowledged.size > after)
  const isWarned = await intray(['epoch', '--no-erasures'], env)
  server.child.kill('SIGKILL')
  await load.finished

  const restored = { ...env, INTRAY_DATABASE_URL: `sqlite:${join(folder, 'new', 'intray.db')}` }
  const { gap } = await intrayJson(
    ['restore', join(folder, 'b.db'), '--to', restored.INTRAY_DATABASE_URL, '--no-erasures'],
    {},
  )
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

test('a service restored from a backup under load has what was acknowledged before, and refuses lost cursors', async (t) => {
  const { restored, tokens, ledger, before, after, backup, isWarned, lost, gap } = await lose(t)
  assert.ok(after > before.size, 'control: messages came in during the backup')
  assert.equal(isWarned.code, 1)
  assert.match(isWarned.stderr, /Servers are running on the database/)
  assert.equal(gap.after, backup.last_id)
  assert.ok(gap.before >= gap.after + EPOCH_IDS)
  assert.ok(lost > gap.after, 'control: an acknowledged message is not in the backup')

  const server = await startServer(t, restored)
  const doctor = await intray(['doctor'], restored)
  assert.equal(doctor.code, 0, String(doctor.stdout))

  // Everything from before the backup is known under its id: sent again, it is a duplicate.
  for (const [ref, id] of before) {
    const again = await post(server.port, tokens.sender, ledger.sent.get(ref)!)
    assert.deepEqual([again.status, again.json?.id], [200, id])
  }

  const known = [...before.values()][10]!
  const follower = await EventStream.open(server.port, tokens.processor, { lastEventId: known })
  const fresh = await post(server.port, tokens.sender, '{"source_ref":"after the restore"}')
  assert.equal(fresh.json?.id, gap.before + 1)
  await follower.until(({ ids }) => ids.includes(gap.before + 1))
  const expected = Array.from({ length: gap.after - known }, (_, at) => known + 1 + at)
  assert.deepEqual(follower.ids, [...expected, gap.before + 1])
  follower.close()

  const get = (path: string, headers: Record<string, string> = {}) =>
    send(server.port, { path, headers: { Authorization: `Bearer ${tokens.processor}`, ...headers } })
  const listed = (id: number) => get(`/v1/inbox/events?cursor=${writeCursor({ id, receivedAt: null })}`)
  const refused = [
    await get('/v1/inbox/stream', { 'Last-Event-ID': String(lost) }),
    await get(`/v1/inbox/stream?after=${gap.before + 2}`),
    await listed(lost),
  ]
  assert.deepEqual(
    refused.map(({ status, json }) => [status, json?.error]),
    Array.from({ length: 3 }, () => [409, 'cursor_ahead']),
  )
  assert.match(String(refused[0]!.json?.message), new RegExp(`Go on after ${gap.after},`))
  assert.equal((await listed(known)).status, 200)
})
