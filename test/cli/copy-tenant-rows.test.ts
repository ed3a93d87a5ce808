// The move of a tenant in one process: what becomes of ids, of what retention took, and of messages that come in between.

import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { copyTenant } from '../../src/cli/copying/tenant-copy.ts'
import type { Store } from '../../src/store/contract/store.ts'
import { type MoveSide, SURVEY_ROWS } from '../../src/store/contract/tenant-move.ts'
import { openCopySide, openStore } from '../../src/store/open.ts'
import { idOf, item, NOON, newToken, TENANT } from '../store/rows.ts'
import { append, indexAll } from '../store/suite.ts'
import { type Driver, drivers } from '../support/drivers.ts'

const NEIGHBOUR = { accountId: 8, companyId: 42 }

interface Opened {
  readonly url: string
  readonly side: MoveSide
  readonly store: Store
}

async function open(t: TestContext, driver: Driver, key?: Uint8Array): Promise<Opened> {
  const url = await driver.readyDatabase()
  const side = await openCopySide(url, { mustExist: false })
  t.after(() => side.close())
  if (key) await side.adoptKey(key)
  const store = await openStore(url, { role: 'tool' })
  t.after(() => store.close())
  return { url, side, store }
}

/** A source with a tenant and its neighbour, which have tokens. */
async function openBoth(t: TestContext, from: Driver, to: Driver): Promise<readonly [Opened, Opened]> {
  const source = await open(t, from)
  for (const tenant of [TENANT, NEIGHBOUR]) await source.store.tokens.create(newToken(tenant))
  return [source, await open(t, to, (await source.side.identity()).dedupeKey)]
}

const move = (source: Opened, target: Opened, tenant = TENANT as typeof NEIGHBOUR) =>
  copyTenant({ tenant, address: null, source: source.side, sourceStore: source.store, target: target.side })

async function idsOf({ store }: Opened, tenant = TENANT as typeof NEIGHBOUR): Promise<number[]> {
  await indexAll(store)
  return (await store.inbox.events(tenant, {}, null, 100)).events.map(({ event }) => event.id).toReversed()
}

/** Purges all that is older. */
async function purge(store: Store, before: number): Promise<void> {
  await indexAll(store)
  const request = { tenant: TENANT, before, now: NOON, purgesUnprocessed: true, after: null, dryRun: false }
  await store.retention.purgeStep(request)
  for (let steps = 0; steps < 100 && (await store.retention.followPurges()); steps++);
}

for (const [from, to] of [drivers, drivers.toReversed()] as [Driver, Driver][]) {
  const name = `${from.name} to ${to.name}`

  test(`${name}: no id that the tenant had before is taken for one that it has now`, async (t) => {
    const [source, target] = await openBoth(t, from, to)
    const old = [await append(source.store)]
    // Its followers see ids that the source gives out until the tenant is closed.
    const { close } = source.side.tenants
    Object.assign(source.side.tenants, {
      close: async (...args: Parameters<typeof close>) => {
        for (let n = 0; n < 5; n++) old.push(await append(source.store))
        return close(...args)
      },
    })
    // The target's ids are just ahead of those of the source.
    for (let n = 0; n < 3; n++) await append(target.store, NEIGHBOUR)
    await move(source, target)
    const now = await idsOf(target)
    assert.equal(now.length, old.length)
    const resume = (id: number) => target.store.recovery.resumePointOf(TENANT, id)
    for (const id of old) assert.notEqual(await resume(id), null, `the old id ${id}`)
    for (const id of now) assert.equal(await resume(id), null, `the new id ${id}`)
    const { newest, covered } = await target.store.inbox.coverage()
    assert.deepEqual(covered.events, newest.events)
  })

  test(`${name}: a hook keeps the key id that it had before its address was rotated`, async (t) => {
    const [source, target] = await openBoth(t, from, to)
    const token = newToken({ recipe: 'telegram/1' })
    const hook = { ...TENANT, keyId: token.keyId, firstKeyId: 'FIRST', maxBody: null, sealed: Buffer.from([1]) }
    await source.store.hooks.create({ token, hook, recipe: null })
    await move(source, target)
    assert.equal((await target.store.hooks.find(token.keyId))?.firstKeyId, 'FIRST')
  })

  test(`${name}: what retention took stays a duplicate, and its conversation keeps one id and one queue`, async (t) => {
    const [source, target] = await openBoth(t, from, to)
    const message = (n: number) => ({ sourceRef: `r${n}`, channelRef: 'c', receivedAt: NOON + n, body: { n } })
    for (const n of [0, 1, 2]) await append(source.store, message(n))
    await purge(source.store, NOON + 1)
    assert.equal((await idsOf(source)).length, 2, 'control: the first is gone')
    await source.store.retention.setRule({
      tenant: TENANT,
      events: 90,
      refusals: null,
      history: null,
      unprocessed: null,
    })
    await move(source, target)
    const moved = await idsOf(target)
    assert.equal(moved.length, 2)
    const [again] = await target.store.journal.append([item(message(0))])
    assert.equal(again?.outcome, 'duplicate')
    const first = idOf(again)
    assert.ok(!moved.includes(first), 'an id that no event has')
    const [conversation] = await target.store.inbox.conversations(TENANT, Number.MAX_SAFE_INTEGER, 10)
    assert.equal(conversation!.id, first)
    const rules = await target.store.retention.rules()
    assert.deepEqual(
      rules.map(({ tenant, events }) => [tenant, events]),
      [[TENANT, 90]],
    )
  })

  test(`${name}: a message that was accepted before its tenant was closed is refused alone`, async (t) => {
    const [source] = await openBoth(t, from, to)
    await source.side.tenants.close(TENANT, null)
    const [before] = await source.store.journal.append([item()])
    assert.equal(before?.outcome, 'stored', 'control: it is not sealed')
    await source.side.tenants.seal(TENANT)
    const [late, other] = await source.store.journal.append([item(), item(NEIGHBOUR)])
    assert.deepEqual([late?.outcome, late?.outcome === 'failed' && late.isMoved], ['failed', true])
    assert.equal(other?.outcome, 'stored')
    await source.side.tenants.reopen(TENANT)
    assert.equal((await source.store.journal.append([item()]))[0]?.outcome, 'stored')
  })

  test(`${name}: moves are independent, one that was not begun leaves nothing, and the erasure log goes on`, async (t) => {
    const [source, target] = await openBoth(t, from, to)
    await append(source.store)
    await append(source.store, NEIGHBOUR)
    const log = await target.store.erasures.logId()
    await assert.rejects(move(source, target, { accountId: 9, companyId: 42 }), /no such tenant/)
    // Cut off, and left alone.
    const { insertNumbered } = target.side.tenants
    const failing = () => Promise.reject(new Error('cut off'))
    Object.assign(target.side.tenants, { insertNumbered: failing })
    await assert.rejects(move(source, target), /cut off/)
    assert.equal(await source.side.tenants.state(TENANT), 'open')
    Object.assign(target.side.tenants, { insertNumbered })
    await move(source, target, NEIGHBOUR)
    assert.equal((await idsOf(target, NEIGHBOUR)).length, 1)
    await append(source.store)
    await move(source, target)
    assert.equal((await idsOf(target)).length, 2)
    const store = await openStore(target.url, { role: 'tool' })
    t.after(() => store.close())
    assert.deepEqual(await store.erasures.logId(), log)
  })

  test(`${name}: an erasure that comes while a tenant is moved is carried out in the target too`, async (t) => {
    const [source, target] = await openBoth(t, from, to)
    const ids = [await append(source.store, { sourceRef: 'a' }), await append(source.store, { sourceRef: 'b' })]
    const { put } = target.side.tenants
    // Events are copied by now.
    let isErased = false
    Object.assign(target.side.tenants, {
      put: async (...args: Parameters<typeof put>) => {
        if (args[0].name === 'dedupe' && !isErased) {
          isErased = true
          await source.store.erasures.erase(TENANT, [ids[0]!], NOON)
        }
        return put(...args)
      },
    })
    await move(source, target)
    assert.ok(isErased)
    const [erased, kept] = await Promise.all((await idsOf(target)).map((id) => target.store.events.find(id, TENANT)))
    assert.deepEqual([erased!.sourceRef, erased!.erasedAt, kept!.sourceRef], [null, NOON, 'b'])
    const [record, ...more] = await target.store.erasures.log(0, 10)
    assert.deepEqual(more, [])
    const table = target.side.tables.find(({ name }) => name === 'dedupe')!
    const keyIn = async ({ side }: Opened) => (await side.find(table, [[TENANT.companyId, record!.digest!]]))[0]!
    const sha256 = Object.keys(table.columns).indexOf('sha256')
    const [there, here] = [await keyIn(source), await keyIn(target)]
    assert.deepEqual(Buffer.from(here[sha256] as Uint8Array), Buffer.from(there[sha256] as Uint8Array))
  })
}

for (const driver of drivers) {
  test(`${driver.name}: one look for the rows of a tenant goes through a bounded number of rows of all`, async (t) => {
    const [source] = await openBoth(t, driver, driver)
    const own = await append(source.store)
    const count = SURVEY_ROWS + 50
    for (let n = 0; n < count; n += 1000) {
      await source.store.journal.append(Array.from({ length: Math.min(1000, count - n) }, () => item(NEIGHBOUR)))
    }
    const late = await append(source.store)
    const { tenants } = source.side
    assert.deepEqual(await tenants.survey(TENANT, 'events', 0, late), { ids: [own], last: own + SURVEY_ROWS - 1 })
    assert.deepEqual(await tenants.survey(TENANT, 'events', own + SURVEY_ROWS - 1, late), { ids: [late], last: late })
    assert.deepEqual(await tenants.survey(TENANT, 'events', late, late), { ids: [], last: null })
  })
}
