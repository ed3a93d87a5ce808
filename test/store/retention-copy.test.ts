// Retention beside an online copy: what goes from the source while it is copied goes from the copy as well, and from its index.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { copyOnline } from '../../src/cli/copying/online-copy.ts'
import type { PurgePosition } from '../../src/model/retention-plan.ts'
import type { CopySide } from '../../src/store/contract/copy.ts'
import type { Store } from '../../src/store/contract/store.ts'
import { openCopySide, openStore } from '../../src/store/open.ts'
import { type Driver, drivers } from '../support/drivers.ts'
import { withStore } from '../support/journal.ts'
import { backDoorOf } from './back-door.ts'
import { item, NOON, TENANT } from './rows.ts'
import { append, indexAll, MAX_WORDS, WIDE } from './suite.ts'

const OLD = NOON - 10 * 86_400_000
const OLD_MESSAGES = 40
const YOUNG_MESSAGES = 10
const LIMITS = { ...WIDE, maxWords: MAX_WORDS }

const message = (n: number, receivedAt: number) => {
  const [sourceRef, channelRef] = [`r:${receivedAt}:${n}`, `c:${n % 8}`]
  return { sourceRef, channelRef, receivedAt, body: { source_ref: sourceRef, message: { text: `word${n}` } } }
}

/** Old messages with a revision each; in half of the conversations there are young ones as well. */
async function fill(store: Store): Promise<void> {
  const old = Array.from({ length: OLD_MESSAGES }, (_, n) => message(n, OLD + n))
  for (const one of old) await append(store, one)
  await store.journal.append(old.map((one) => item({ ...one, body: 'revised' })))
  for (let n = 0; n < YOUNG_MESSAGES; n++) await append(store, message(n % 4, NOON + n))
  await indexAll(store)
}

/** As a server beside the copy would. Returns how many rows went. */
async function purge(store: Store): Promise<number> {
  let rows = 0
  for (let [steps, after] = [0, null as PurgePosition | null]; steps < 100; steps++) {
    const request = { tenant: TENANT, before: NOON - 1, now: NOON, purgesUnprocessed: false, dryRun: false, after }
    const step = await store.retention.purgeStep(request)
    rows += step.rows
    if (step.next === null) return rows
    after = step.next
  }
  throw new Error('the walk does not end')
}

async function rowsOf(side: CopySide): Promise<Record<string, unknown[]>> {
  const tables = side.tables.map(async (table) => {
    const rows = await side.read(table, null)
    const cells = rows.map((row) => row.map((cell) => (cell instanceof Uint8Array ? Buffer.from(cell) : cell)))
    return [table.name, cells] as const
  })
  return Object.fromEntries(await Promise.all(tables))
}

async function dumpIndex(driver: Driver, url: string) {
  const { traffic: _, cursors: __, ...rest } = await backDoorOf(driver).dumpIndex(url)
  return rest
}

/** Calls `once` when the copy has every row of the first round, and its index. */
function onFirstRound(target: CopySide, once: () => Promise<void>): void {
  const followPurges = target.followPurges.bind(target)
  let isDone = false
  target.followPurges = async () => {
    const more = await followPurges()
    if (!more && !isDone) {
      isDone = true
      await once()
    }
    return more
  }
}

for (const [from, to] of [drivers, drivers.toReversed()]) {
  test(`${from!.name} to ${to!.name}: what is purged while a copy runs is not in the copy, nor in its index`, async (t) => {
    const [source, target] = [await from!.newDatabase(), await to!.newDatabase()]
    const store = await openStore(source, { role: 'tool' })
    t.after(() => store.close())
    await fill(store)
    const sides = {
      source: await openCopySide(source, { mustExist: true }),
      target: await openCopySide(target, { mustExist: false }),
    }
    let entries = 0
    let purged = 0
    onFirstRound(sides.target, async () => {
      entries = (await dumpIndex(to!, target)).event_index!.length
      purged = await purge(store)
    })
    const report = await copyOnline({ ...sides, limits: LIMITS, maxPauseMs: 60_000 })
    assert.deepEqual([entries, purged], [2 * OLD_MESSAGES + YOUNG_MESSAGES, 2 * OLD_MESSAGES])
    assert.equal(report!.tables.find(({ table }) => table === 'events')!.rows, YOUNG_MESSAGES)
    assert.deepEqual(await rowsOf(sides.target), await rowsOf(sides.source))
    for (const side of Object.values(sides)) await side.close()
    const index = await dumpIndex(to!, target)
    assert.equal(index.event_index!.length, YOUNG_MESSAGES)
    assert.equal(index.conversations!.length, 4)
    await withStore(target, async (copy) => {
      await copy.index.requestRebuild()
      await indexAll(copy)
    })
    assert.deepEqual(await dumpIndex(to!, target), index, 'as an index that is built anew')
  })

  test(`${from!.name} to ${to!.name}: the index of a copy that was cut off at its end follows the purges later`, async (t) => {
    const [source, target] = [await from!.newDatabase(), await to!.newDatabase()]
    const store = await openStore(source, { role: 'tool' })
    t.after(() => store.close())
    await fill(store)
    const sides = {
      source: await openCopySide(source, { mustExist: true }),
      target: await openCopySide(target, { mustExist: false }),
    }
    onFirstRound(sides.target, async () => {
      await purge(store)
      sides.target.followPurges = async () => {
        if ((await sides.target.state())?.finished) throw new Error('cut off')
        return false
      }
    })
    await assert.rejects(copyOnline({ ...sides, limits: LIMITS, maxPauseMs: 60_000 }), /cut off/)
    for (const side of Object.values(sides)) await side.close()
    assert.equal((await dumpIndex(to!, target)).event_index!.length, 2 * OLD_MESSAGES + YOUNG_MESSAGES)
    await withStore(target, async (copy) => {
      for (let steps = 0; steps < 100 && (await copy.retention.followPurges()); steps++);
    })
    assert.equal((await dumpIndex(to!, target)).event_index!.length, YOUNG_MESSAGES)
  })
}
