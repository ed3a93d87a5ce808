// The pen on PostgreSQL, with everything that can happen to it in any order: every message is kept once. The controls break one of the things
// that this rests on, and are found out.

import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { AppendItem } from '../../src/store/contract/append.ts'
import { KeyBits } from '../../src/store/key-bits.ts'
import { parseAddress } from '../../src/store/postgres/address.ts'
import { type Append, createAppend } from '../../src/store/postgres/append.ts'
import { Hope } from '../../src/store/postgres/hope.ts'
import { Pen } from '../../src/store/postgres/pen.ts'
import { PenHolder } from '../../src/store/postgres/pen-holder.ts'
import { Pool } from '../../src/store/postgres/pool.ts'
import { readIdentity } from '../../src/store/postgres/schema.ts'
import { RecentKeys } from '../../src/store/recent-keys.ts'
import { withStore } from '../support/journal.ts'
import { assertKeys } from '../support/postgres/ask.ts'
import { newPostgresDatabase, withClient } from '../support/postgres/databases.ts'
import { until } from '../support/until.ts'
import { idOf, item } from './rows.ts'
import { drawSeed, random } from './seed.ts'
import { indexAll } from './suite.ts'

const ROUNDS = 100
let made = 0

interface Writer {
  readonly append: Append
  close(): Promise<void>
}

/** One that hopes and asks for the pen again at once, whatever it has met. */
async function openWriter(url: string): Promise<Writer> {
  const pool = new Pool(parseAddress(url))
  const { dedupeKey } = await pool.use(readIdentity)
  const holder = new PenHolder(pool, { askAgainMs: 0, askAgainPerMs: 0, restShare: 0 })
  return {
    append: createAppend(pool, dedupeKey, holder, new Hope(0)),
    close: async () => {
      holder.close()
      await pool.close()
    },
  }
}

/** How often a reference is stored twice, and how many batches had late keys. */
interface Played {
  readonly twice: number
  readonly late: number
}

/** Sends, re-sends, steps of the index, other writers and restarts, in any order. */
async function play(t: TestContext, prepare: (url: string) => Promise<void> = async () => {}): Promise<Played> {
  const { below, pick } = random(drawSeed(t))
  const url = await newPostgresDatabase()
  const firsts = new Map<string, number>()
  let [twice, late] = [0, 0]
  let pen: Pen | null = null
  const { enter, leave } = Pen.prototype
  t.mock.method(Pen.prototype, 'enter', function (this: Pen, keys: Uint8Array) {
    pen = this
    return enter.call(this, keys)
  })
  t.mock.method(Pen.prototype, 'leave', function (this: Pen, ...told: Parameters<Pen['leave']>) {
    if (told[2]?.lateFrom != null) late += 1
    leave.apply(this, told)
  })
  const send = async (append: Append, batch: readonly AppendItem[]): Promise<void> => {
    for (const [n, outcome] of (await append(batch)).entries()) {
      const ref = batch[n]!.sourceRef!
      const first = firsts.get(ref)
      if (first === undefined) firsts.set(ref, idOf(outcome))
      else if (first !== idOf(outcome)) twice += 1
    }
  }
  const some = (): AppendItem[] => {
    const known = [...firsts.keys()].slice(below(2) === 0 ? 0 : -100)
    const resends = below(8) === 0 ? 20 : 5000
    return Array.from({ length: below(3) === 0 ? 1 + below(7) : 8 + below(60) }, () =>
      known.length > 0 && below(resends) === 0
        ? item({ sourceRef: pick(known), body: `body ${below(2)}` })
        : item({ sourceRef: `played ${made++}`, body: 'body 0' }),
    )
  }
  const burst = async (append: Append): Promise<void> => {
    for (let n = 0; n < 4; n++) {
      await Promise.all(Array.from({ length: 1 + below(3) }, () => send(append, some())))
      await until('the pen is lost, or the keys are read', async () => !pen || pen.overSince !== null || pen.isOpen)
    }
  }
  await withStore(url, async (store) => {
    await prepare(url)
    let writer = await openWriter(url)
    try {
      for (let round = 0; round < ROUNDS; round++) {
        const choice = below(12)
        if (choice < 7) await burst(writer.append)
        else if (choice < 10) await store.index.step({ maxRows: 1 + below(200), maxBytes: 1 << 20 })
        else if (choice === 10) await send(store.journal.append, some())
        else {
          await writer.close()
          writer = await openWriter(url)
        }
      }
    } finally {
      await writer.close()
    }
    await indexAll(store)
  })
  if (twice === 0) await assertKeys(url)
  return { twice, late }
}

test('played in any order, every reference is stored once', async (t) => {
  const { twice, late } = await play(t)
  assert.equal(twice, 0)
  assert.ok(late >= ROUNDS / 2, `${late} batches had late keys`)
})

/** What is stored twice is told by its answer, or by the key that the filing finds in its way. */
async function assertFound(t: TestContext, prepare?: (url: string) => Promise<void>): Promise<void> {
  const { twice } = await play(t, prepare).catch((error: unknown) => {
    assert.match(String(error), /stored already|has no key of its own/)
    return { twice: 1 }
  })
  assert.ok(twice > 0)
}

test('the control: a node that does not know its own late keys stores some twice', async (t) => {
  t.mock.method(RecentKeys.prototype, 'find', () => 0)
  await assertFound(t)
})

test('the control: a node that takes every key for new stores some twice', async (t) => {
  t.mock.method(KeyBits.prototype, 'mayHaveHad', () => false)
  await assertFound(t)
})

test('the control: without the trigger other writers store some twice', async (t) => {
  await assertFound(t, (url) =>
    withClient(url, async (client) => {
      await client.query('DROP TRIGGER heeds_pen ON intray.dedupe')
    }),
  )
})
