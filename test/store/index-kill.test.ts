// The indexer is killed at random points and resumed, killed in the middle of a rebuild and resumed, and comes to the
// same rows as one that was left in peace.

import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import type { AppendItem } from '../../src/store/contract/append.ts'
import type { Store } from '../../src/store/contract/store.ts'
import { backDoorOf } from './back-door.ts'
import { startChild } from './child.ts'
import { item, NOON } from './rows.ts'
import { drawSeed, type Random, random } from './seed.ts'
import { everyDriver, indexAll, roles, type TestDatabase } from './suite.ts'

const ROWS = 2000
const KILLS_FIRST = 10
const KILLS_REBUILD = 10

everyDriver(
  'killed at random points, resumed, killed in a rebuild: the same index, row for row',
  async (database, t) => {
    const seed = drawSeed(t)
    const dice = random(seed)
    const dump = () => backDoorOf(database.driver).dumpIndex(database.url)
    const writer = await database.open('tool')
    const expected = await fill(writer, dice)
    await writer.close()

    const first = await killAndResume(t, database, dice, KILLS_FIRST)
    const resumed = await dump()
    const tool = await database.open('tool')
    await tool.index.requestRebuild()
    await tool.close()
    const rebuild = await killAndResume(t, database, dice, KILLS_REBUILD)
    const rebuilt = await dump()

    // The control: one process, left in peace, from nothing.
    const store = await database.open('server')
    await store.index.requestRebuild()
    await indexAll(store)
    const clean = await dump()
    t.diagnostic(
      `killed while working: ${JSON.stringify(first)} in the first pass, ${JSON.stringify(rebuild)} in the rebuild`,
    )
    const entries = first.entries + rebuild.entries
    const words = first.words + rebuild.words
    assert.equal(entries + words, KILLS_FIRST + KILLS_REBUILD, 'every kill hit an indexer at work')
    assert.ok(entries > 0 && words > 0, 'both cursors were hit')
    assert.ok(first.entries + first.words > 0 && rebuild.entries + rebuild.words > 0)
    assert.deepEqual(resumed, clean)
    assert.deepEqual(rebuilt, clean)
    await agrees(store, expected)
  },
)

/** Kills by the kind of step that was announced last. */
interface Hits {
  readonly entries: number
  readonly words: number
}

/** Runs indexers until one gets to the end; each is killed after a number of steps drawn for it, up to that many. */
async function killAndResume(t: TestContext, { url }: TestDatabase, dice: Random, kills: number): Promise<Hits> {
  const hit = { entries: 0, words: 0 }
  for (let n = 0; ; n++) {
    // Taken in turn, so that both cursors are hit: the lines of their steps alternate.
    const mercy = n < kills ? 2 * dice.below(5) + (n % 2) : Number.POSITIVE_INFINITY
    const child = startChild(t, 'index', url, dice.pick(roles), '10', String(mercy))
    let steps = 0
    child.onLine((line) => {
      if ((line === 'step' || line === 'words') && steps++ === mercy) child.process.kill('SIGKILL')
    })
    const { code, signal } = await child.exited
    if (child.lines.includes('done')) {
      assert.equal(code, 0)
      return hit
    }
    assert.equal(signal, 'SIGKILL', `the indexer ended by itself with ${code}`)
    if (child.lines.at(-1) === 'step') hit.entries += 1
    else hit.words += 1
  }
}

interface Expected {
  readonly conversations: Map<string, number>
  readonly firsts: number
}

/** Rows of every sort, and what must come of them, counted independently of any store. */
async function fill(store: Store, dice: Random): Promise<Expected> {
  const conversations = new Map<string, number>()
  const known = new Set<string>()
  let firsts = 0
  let batch: AppendItem[] = []
  for (let n = 0; n < ROWS; n++) {
    const accountId = 1 + dice.below(2)
    const sourceRef = dice.below(4) === 0 ? null : `ref-${dice.below(ROWS / 2)}`
    const channelRef = dice.below(5) === 0 ? null : `page ${dice.below(40)}`
    const body =
      dice.below(50) === 0
        ? 'not JSON'
        : { contact: { name: `n${dice.below(9)}` }, message: { text: `t${dice.below(3)}` } }
    batch.push(item({ accountId, sourceRef, channelRef, receivedAt: NOON + dice.below(1e6), body }))
    const identity = `${accountId} ${sourceRef}`
    if (sourceRef === null || !known.has(identity)) {
      known.add(identity)
      firsts += 1
      const key = JSON.stringify([accountId, channelRef])
      if (channelRef !== null) conversations.set(key, (conversations.get(key) ?? 0) + 1)
    }
    if (batch.length === 250) {
      await store.journal.append(batch)
      batch = []
    }
  }
  await store.journal.append(batch)
  return { conversations, firsts }
}

async function agrees(store: Store, { conversations, firsts }: Expected): Promise<void> {
  let inConversations = 0
  for (const [key, count] of conversations) {
    const [accountId, channelRef] = JSON.parse(key) as [number, string]
    const found = await store.events.conversation({ accountId, companyId: 42 }, channelRef)
    assert.equal(found?.eventCount, count, `${key} has ${count} events`)
    inConversations += count
  }
  assert.ok(inConversations > 0 && inConversations < firsts)
}
