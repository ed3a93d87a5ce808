// The promise of send() with an outbox in an append-only file: what it accepted is stored, once, whoever is killed meanwhile.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { FileOutbox } from '../../../kits/typescript/src/outbox-file.ts'
import { tempFolder } from '../../support/temp.ts'
import { KillRun, killManyTimes } from './kill-run.ts'

test('senders killed 5 times and the service twice: what send() accepted is stored, once and in order', async (t) => {
  const path = join(tempFolder('outbox'), 'outbox.jsonl')
  // The file that is there decides the kind.
  const outbox = await FileOutbox.open(path)
  await outbox.add(
    { source_ref: 'first', channel_ref: null, traceparent: null, body: Buffer.from('{"source_ref":"first"}') },
    0,
  )
  await outbox.close()
  const run = new KillRun(t, path)
  await killManyTimes(run, 2)
  // Before the last sender: it may rewrite the file.
  const retries = readFileSync(path, 'utf8').split('"status":"waiting"').length - 1
  assert.equal(await run.drain(), 'left 0 0\n')
  const { accepted, lost, twice, outOfOrder } = await run.compare()
  t.diagnostic(`${accepted} accepted, ${retries} retries on record, ${lost.length} lost, ${twice.length} twice`)
  assert.deepEqual({ lost, twice, outOfOrder }, { lost: [], twice: [], outOfOrder: [] })
  assert.ok(accepted > 80)
  assert.ok(retries > 0, 'the kills fell on messages under way')
})
