// Reads of a tenant do not hold up those of another, and end when nobody waits for them.

import assert from 'node:assert/strict'
import { SCAN_ROWS } from '../../src/model/event-list.ts'
import type { EventFilter } from '../../src/store/contract/inbox.ts'
import type { Store } from '../../src/store/contract/store.ts'
import { append, everyDriver, indexAll } from './suite.ts'
import { item, NOON, TENANT } from './rows.ts'

const OTHER = { accountId: 7, companyId: 43 }

async function fill(store: Store, count: number): Promise<void> {
  for (let from = 0; from < count; from += 1000) {
    const rows = Array.from({ length: Math.min(1000, count - from) }, (_, n) => item({ receivedAt: NOON + from + n }))
    await store.journal.append(rows)
  }
  await append(store, { companyId: OTHER.companyId })
  await indexAll(store)
}

/** Match nothing, and have no index of their own. */
const NOTHING: readonly EventFilter[] = [
  { messageType: 'none' },
  { receivedAfter: NOON, messageType: 'none' },
  { state: { is: 'pending', subscription: 'default', now: NOON }, messageType: 'none' },
  { state: { is: 'pending', subscription: 'default', now: NOON }, keyId: 'nobody' },
]

everyDriver(
  'a filter that matches nothing looks at a bounded number of rows, and the cursor goes on',
  async (database) => {
    const store = await database.open()
    const total = SCAN_ROWS + 500
    await fill(store, total)
    const newest = (await store.inbox.events(TENANT, {}, null, 1)).events[0]!.event.id
    for (const filter of NOTHING) {
      let page = await store.inbox.events(TENANT, filter, null, 50)
      assert.equal(page.partial, true, JSON.stringify(filter))
      // On a slow machine SEARCH_MS ends a page before its bound does: then there are more of them.
      for (let above = newest + 1; page.partial; ) {
        assert.deepEqual(page.events, [])
        const lookedAt = above - page.next!.id
        assert.ok(lookedAt > 0 && lookedAt <= SCAN_ROWS, `${lookedAt} rows for ${JSON.stringify(filter)}`)
        above = page.next!.id
        page = await store.inbox.events(TENANT, filter, page.next, 50)
      }
      assert.deepEqual({ ...page, events: page.events.length }, { events: 0, next: null, partial: false })
    }
  },
)

everyDriver('long reads of one tenant do not keep another from being served', async (database) => {
  const store = await database.open()
  await fill(store, 4000)
  const readTogether = async (longReads: number) => {
    const order: string[] = []
    const greedy = Array.from({ length: longReads }, () =>
      store.inbox.events(TENANT, { messageType: 'none' }, null, 50).then(() => order.push('greedy')),
    )
    const modest = store.inbox.events(OTHER, {}, null, 1).then(() => order.push('modest'))
    await Promise.all([...greedy, modest])
    return order
  }
  // A connection is opened when it is first needed, which on a busy machine takes longer than many reads.
  await readTogether(5)
  const before = (await readTogether(40)).indexOf('modest')
  assert.ok(before < 20, `${before} of 40 long reads ended first`)
})

everyDriver('large payloads of one tenant do not keep the payload of another from being read', async (database) => {
  const store = await database.open()
  const large = await append(store, { body: 'x'.repeat(200_000) })
  const small = await append(store, { companyId: OTHER.companyId })
  const order: string[] = []
  const greedy = Array.from({ length: 40 }, () => store.events.payload(large, TENANT).then(() => order.push('greedy')))
  const modest = store.events.payload(small, OTHER).then(() => order.push('modest'))
  await Promise.all([...greedy, modest])
  const before = order.indexOf('modest')
  assert.ok(before < 10, `${before} of 40 large payloads were read first`)
})
