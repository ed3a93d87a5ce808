// The index looks for fields in the first bytes of a payload. What begins behind them is not found, on any driver and after a rebuild
// as before it; the event itself is indexed like any other.

import assert from 'node:assert/strict'
import type { Store } from '../../src/store/contract/store.ts'
import { idOf, item, TENANT } from './rows.ts'
import { everyDriver, indexAll, WIDE } from './suite.ts'

const LIMITED = { ...WIDE, extractBytes: 4096 }
const FIELDS = '"contact":{"name":"Ada","email":"ada@a.test"},"message":{"type":"text","text":"Malta"}'
const NUMBERS = `"track":[${'1,'.repeat(5000)}1]`

const PAYLOADS = {
  'fields first': `{${FIELDS},${NUMBERS}}`,
  'behind a long text': `{"file":"${'x"\\'.replaceAll(/["\\]/g, '\\$&').repeat(5000)}",${FIELDS}}`,
  'behind numbers': `{${NUMBERS},${FIELDS}}`,
  'behind brackets': `{"deep":${'['.repeat(5000)}${']'.repeat(5000)},${FIELDS}}`,
  'behind white space': `${' '.repeat(5000)}{${FIELDS}}`,
  'repeated behind numbers': `{${FIELDS},${NUMBERS},"contact":{"name":"Bob"},"message":null}`,
}
const EARLY = ['fields first', 'behind a long text', 'repeated behind numbers']

async function namesOf(store: Store, ids: readonly number[]): Promise<Record<string, string | null>> {
  const entries = await Promise.all(ids.map(async (id) => store.events.indexEntry((await store.events.find(id))!)))
  for (const entry of entries) assert.equal(entry!.unindexed, null)
  return Object.fromEntries(Object.keys(PAYLOADS).map((name, n) => [name, entries[n]!.contactName]))
}

async function foundBy(store: Store, words: readonly string[]): Promise<number[]> {
  const { events } = await store.inbox.events(TENANT, { words }, null, 100)
  return events.map(({ event }) => event.id).toReversed()
}

everyDriver('fields that begin behind the limit are not found, before and after a rebuild', async (database) => {
  const store = await database.open('server')
  const items = Object.values(PAYLOADS).map((body) => item({ channelRef: 'page', body }))
  const ids = (await store.journal.append(items)).map(idOf)
  const idsOf = (names: readonly string[]) => ids.filter((_, n) => names.includes(Object.keys(PAYLOADS)[n]!))
  const withName = (names: readonly string[], name: string) =>
    Object.fromEntries(Object.keys(PAYLOADS).map((key) => [key, names.includes(key) ? name : null]))

  for (const isRebuilt of [false, true]) {
    if (isRebuilt) await store.index.requestRebuild()
    await indexAll(store, LIMITED)
    assert.deepEqual(await namesOf(store, ids), withName(EARLY, 'Ada'))
    assert.deepEqual(await foundBy(store, ['malta']), idsOf(EARLY))
    assert.deepEqual(await foundBy(store, ['ada']), idsOf(EARLY))
    const event = await store.events.find(ids[0]!)
    assert.equal((await store.events.conversation(event!, 'page'))!.eventCount, ids.length)
  }

  // The control: without a limit the same payloads give all of it.
  await store.index.requestRebuild()
  await indexAll(store, WIDE)
  const all = Object.keys(PAYLOADS)
  assert.deepEqual(await namesOf(store, ids), { ...withName(all, 'Ada'), 'repeated behind numbers': 'Bob' })
  assert.deepEqual(await foundBy(store, ['malta']), idsOf(all.filter((name) => name !== 'repeated behind numbers')))
})
