// The promise of send() of the Python client: what it accepted is stored, once, whoever is killed meanwhile. The control, a queue
// in memory, loses what it accepted.

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { ROOT } from '../../support/process.ts'
import { missingPython, PYTHON } from '../../support/python.ts'
import { tempFolder } from '../../support/temp.ts'
import { KillRun, killManyTimes } from '../typescript/kill-run.ts'

const COMMAND = [PYTHON, '-B', join(ROOT, 'test/kits/python/sender_main.py')]
const skip = missingPython()

test('Python senders killed 11 times and the service 5 times: what send() accepted is stored, once and in order', {
  skip,
}, async (t) => {
  const run = new KillRun(t, join(tempFolder('outbox'), 'outbox.db'), COMMAND)
  await killManyTimes(run, 5)
  assert.equal(await run.drain(), 'left 0 0\n')
  const { accepted, lost, twice, outOfOrder } = await run.compare()
  const database = new DatabaseSync(run.outbox)
  const row = database.prepare('SELECT sum(attempts) - count(*) AS resent, count(*) AS sent FROM outbox').get()!
  database.close()
  t.diagnostic(`${accepted} accepted, ${row.resent} sent again, ${lost.length} lost, ${twice.length} twice`)
  assert.deepEqual({ lost, twice, outOfOrder }, { lost: [], twice: [], outOfOrder: [] })
  assert.ok(accepted > 200)
  assert.ok(Number(row.resent) > 0, 'the kills fell on messages under way')
})

test('the control: a queue in memory loses what it accepted', { skip }, async (t) => {
  const run = new KillRun(t, 'memory', COMMAND)
  await run.startService()
  run.startSender()
  await run.more(20)
  await run.killSender()
  assert.ok((await run.compare()).lost.length > 0)
})
