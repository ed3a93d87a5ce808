// `./intray copy --tenant` of a tenant that retention has taken messages from: what it sent before is known in the target too.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Store } from '../../src/store/contract/store.ts'
import { item } from '../store/rows.ts'
import { append, indexAll } from '../store/suite.ts'
import { intrayJson } from '../support/command.ts'
import { drivers } from '../support/drivers.ts'
import { createToken, withStore } from '../support/journal.ts'
import { intray } from '../support/process.ts'

const TENANT = { accountId: 7, companyId: 42 }
const NEIGHBOUR = { accountId: 8, companyId: 42 }
const DAY = 86_400_000

const message = (tenant: typeof TENANT, ref: string, text = 'first', receivedAt = Date.now() - 9 * DAY) => ({
  ...{ ...tenant, sourceRef: ref, channelRef: 'c', receivedAt },
  body: JSON.stringify({ source_ref: ref, text }),
})

async function purge(store: Store, tenant: typeof TENANT): Promise<number> {
  const now = Date.now()
  const step = { tenant, before: now - DAY, now, purgesUnprocessed: true, after: null, dryRun: false }
  const { rows } = await store.retention.purgeStep(step)
  for (let steps = 0; steps < 100 && (await store.retention.followPurges()); steps++);
  return rows
}

for (const [from, to] of [drivers, drivers.toReversed()]) {
  test(`${from!.name} to ${to!.name}: what a moved tenant sent before it was purged is a duplicate in the target`, async () => {
    const [source, target] = [await from!.newDatabase(), await to!.newDatabase()]
    await withStore(source, async (store) => {
      for (const tenant of [TENANT, NEIGHBOUR]) {
        for (const ref of ['a', 'b']) await append(store, message(tenant, ref))
        await createToken(store, tenant)
      }
      await append(store, message(TENANT, 'young', 'first', Date.now()))
      await indexAll(store)
      for (const tenant of [TENANT, NEIGHBOUR]) assert.equal(await purge(store, tenant), 2)
    })
    const made = await intray(['init', '--key-from', source], { INTRAY_DATABASE_URL: target })
    assert.equal(made.code, 0, made.stderr)
    for (const tenant of ['7/42', '8/42']) {
      await intrayJson(['copy', '--tenant', tenant, '--from', source, '--to', target], {})
    }
    await withStore(target, async (store) => {
      await indexAll(store)
      for (const tenant of [TENANT, NEIGHBOUR]) {
        const send = async (ref: string, text?: string) =>
          (await store.journal.append([item(message(tenant, ref, text, Date.now()))]))[0]!
        for (const ref of ['a', 'b']) {
          const first = await send(ref)
          assert.equal(first.outcome, 'duplicate', ref)
          assert.ok('id' in first && (await store.events.find(first.id)) === null, 'of an event that is gone')
          const other = await send(ref, 'second')
          assert.ok(other.outcome === 'conflict' && other.id === first.id, 'other bytes are stored')
        }
      }
      await indexAll(store)
      const { events } = await store.inbox.events(TENANT, {}, null, 10)
      assert.deepEqual(events.map(({ event }) => event.sourceRef).toSorted(), ['a', 'b', 'young'])
      assert.ok(await store.events.conversation(TENANT, 'c'))
    })
  })
}
