// Two tenants, one with a hundred times the load in messages that are all words: the message of the other can be claimed before
// the words of the first are made. Counted in work, not in time. The control, where entries and words are one step, fails.

import assert from 'node:assert/strict'
import { Indexer } from '../../src/indexing/indexer.ts'
import type { IndexStepResult, IndexStore, WordLimits } from '../../src/store/contract/indexing.ts'
import type { Store } from '../../src/store/contract/store.ts'
import { idOf, item } from './rows.ts'
import { everyDriver } from './suite.ts'

const ROUNDS = 4
const LOAD = 100
const LIMITS = { maxRows: 4000, maxBytes: 8 << 20 }
/** As in src/app.ts: 4 messages of 16 kB a step. */
const WORD_LIMITS: WordLimits = { maxRows: 200, maxBytes: 64 * 1024, maxWords: 256 }
/** Events whose words may be made while the other tenant's message waits: those of a few steps, whatever the load. */
const MOST = 50

const TEXT = Array.from({ length: 2040 }, (_, n) => `w${n.toString(36).padStart(6, 'q')}`).join(' ')
const heavy = () => item({ accountId: 1, body: { message: { text: TEXT } } })
const light = () => item({ accountId: 2, body: { message: { text: 'a short one' } } })

/** The index as it would be with one cursor: an event is claimable when its words and all before them are made. */
function withOneCursor(index: IndexStore): IndexStore {
  return {
    ...index,
    async step(limits) {
      let result = await index.step(limits)
      while (result.searchable < result.cursor) result = await index.stepWords(WORD_LIMITS)
      return { ...result, more: result.more || result.lag > 0 }
    },
  }
}

/** The most events whose words were made while a message of the light tenant waited to become claimable. */
async function mostWordsBefore(store: Store, index: IndexStore, made: () => number): Promise<number> {
  let cursor = 0
  let moved = Promise.withResolvers<void>()
  const onStep = (result: IndexStepResult) => {
    ;({ cursor } = result)
    moved.resolve()
    moved = Promise.withResolvers()
  }
  const troubles: unknown[] = []
  const onTrouble = (_doing: string, error: unknown) => troubles.push(error)
  const indexer = new Indexer({ index, limits: LIMITS, wordLimits: WORD_LIMITS, onStep, onTrouble, waiting: () => 0 })
  indexer.start()
  let most = 0
  try {
    for (let round = 0; round < ROUNDS; round++) {
      const outcomes = await store.journal.append([...Array.from({ length: LOAD }, heavy), light()])
      const before = made()
      indexer.wake()
      while (cursor < idOf(outcomes.at(-1))) await moved.promise
      most = Math.max(most, made() - before)
    }
  } finally {
    await indexer.stop()
  }
  assert.deepEqual(troubles, [])
  return most
}

everyDriver(
  'a tenant with a hundred times the load delays another by a few steps of words at most',
  async (database, t) => {
    const store = await database.open('server')
    let made = 0
    // Words wait for an append that is under way: a slow disk would let the indexer catch up meanwhile.
    let appending: Promise<unknown> = Promise.resolve()
    const sending: Store = { ...store, journal: { append: (items) => (appending = store.journal.append(items)) } }
    const counted: IndexStore = {
      ...store.index,
      async stepWords(limits) {
        await appending
        const result = await store.index.stepWords(limits)
        made += result.indexed
        return result
      },
    }
    const apart = await mostWordsBefore(sending, counted, () => made)
    const { searchLag } = await store.index.progress()
    const together = await mostWordsBefore(sending, withOneCursor(counted), () => made)
    t.diagnostic(`words made before a message is claimable: of ${apart} events; with one cursor of ${together}`)
    assert.ok(apart <= MOST, `the words of ${apart} events were made first`)
    assert.ok(searchLag > LOAD, 'words were far behind when the last message became claimable')
    assert.ok(together >= LOAD, 'the control: with one cursor the words of the other tenant come first')
  },
)
