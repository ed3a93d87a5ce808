// Conformance: gaps in the ids. Every promise of src/store/contract/recovery.ts.

import assert from 'node:assert/strict'
import { epochStart } from '../../src/model/id-gaps.ts'
import { idOf, item, NOON, TENANT } from './rows.ts'
import { everyDriver, everyStore, indexAll } from './suite.ts'

everyStore('without a gap, only ids above the last one have a resume point', async (store) => {
  assert.equal(await store.recovery.resumePointOf(TENANT, 0), null)
  assert.equal(await store.recovery.resumePointOf(TENANT, 1), 0)
  const id = idOf((await store.journal.append([item()]))[0])
  assert.equal(await store.recovery.resumePointOf(TENANT, id), null)
  assert.equal(await store.recovery.resumePointOf(TENANT, id + 1), id)
})

everyDriver('after an epoch began, ids go on above the gap, and cursors in it are refused', async (database) => {
  const before = await database.open('server')
  const old = idOf((await before.journal.append([item(), item()]))[1])
  await indexAll(before)
  await before.close()

  const tool = await database.open('tool')
  const gap = await tool.recovery.beginEpoch(NOON)
  await tool.close()
  assert.deepEqual(gap, { after: old, before: epochStart(old, NOON) })

  const store = await database.open('server')
  const id = idOf((await store.journal.append([item()]))[0])
  assert.equal(id, gap.before + 1)
  const cursors = [old, old + 1, gap.before - 1, gap.before, id, id + 1]
  const points = await Promise.all(cursors.map((cursor) => store.recovery.resumePointOf(TENANT, cursor)))
  assert.deepEqual(points, [null, old, old, null, null, id])
  await store.close()
})

everyDriver('the lag counts rows, not the ids of a gap', async (database) => {
  const before = await database.open('server')
  await before.journal.append([item(), item()])
  await before.close()
  const tool = await database.open('tool')
  await tool.recovery.beginEpoch(NOON)
  await tool.close()

  const store = await database.open('server')
  await store.journal.append([item()])
  const { lag, searchLag } = await store.index.progress()
  assert.deepEqual([lag, searchLag], [3, 3])
  await indexAll(store)
  const done = await store.index.progress()
  assert.deepEqual([done.lag, done.searchLag], [0, 0])
  const { newest, covered } = await store.inbox.coverage()
  assert.equal(covered.events, newest.events)
  await store.close()
})
