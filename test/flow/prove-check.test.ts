// The checker of `npm run prove`, which must not be blind: each thing that can go wrong is planted, and named.

import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { appendFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { check } from '../../prove/check.ts'
import type { StoredPayload, StoredRow } from '../../prove/inbox.ts'
import { type AnswerLine, type Intent, Journal, readJournal } from '../../prove/journal.ts'
import { WRONG } from '../../prove/proof.ts'
import { tempFolder } from '../support/temp.ts'

const bodyOf = (n: number) => `{"source_ref":"r${n}","channel_ref":"c","n":${n}}`
const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')

/** Four messages of one conversation, one after the other: stored, stored, unknown, refused. */
async function newJournal(): Promise<string> {
  const journal = new Journal(join(tempFolder('journal'), 'journal'))
  const outcomes = ['acknowledged', 'acknowledged', 'unknown', 'refused'] as const
  for (const [at, outcome] of outcomes.entries()) {
    const n = at + 1
    const body = Buffer.from(bodyOf(n)).toString('base64')
    const intent = { attempt: n, message: n, ref: `r${n}`, key: null, channel: 'c', conflictsWith: null, body }
    await journal.write({ type: 'intent', ...intent } satisfies Intent)
    const id = outcome === 'acknowledged' ? n * 10 : null
    const status = { acknowledged: 200, unknown: 0, refused: 503 }[outcome]
    await journal.write({ type: 'answer', attempt: n, outcome, status, id, duplicate: false, error: null })
  }
  await journal.close()
  return journal.path
}

interface Stored {
  readonly id: number
  readonly n: number
  readonly bytes?: string
}

/** An inbox that holds these. */
function holding(stored: readonly Stored[]) {
  const rows = stored.map(({ id, n }): StoredRow => {
    const about = { kind: 'event', revises: null, source_ref: `r${n}`, channel_ref: 'c', conversation_id: 10 } as const
    const time = { received_at: '2026-11-15T12:00:00.000Z', snippet: null }
    return { id, ...about, ...time, size: bodyOf(n).length, sha256: sha256(bodyOf(n)) }
  })
  const payloads = new Map<number, StoredPayload>(
    stored.map(({ id, n, bytes = bodyOf(n) }) => [
      id,
      { status: 200, sha256: sha256(bytes), bytes: Buffer.from(bytes) },
    ]),
  )
  return {
    rows: async () => rows,
    payloads: async () => payloads,
    conversations: async () => new Map([['c', rows.map(({ id }) => id).toSorted((a, b) => a - b)]]),
  }
}

const wrongIn = async (stored: readonly Stored[]) => {
  const { counts } = await check(await newJournal(), holding(stored))
  return Object.fromEntries(WRONG.filter((what) => counts[what] > 0).map((what) => [what, counts[what]]))
}

const ONE = { id: 10, n: 1 }
const TWO = { id: 20, n: 2 }

test('what is as it was told is right, whether the unknown one is there or not', async () => {
  const { counts, unsettled, storedUnknown } = await check(await newJournal(), holding([ONE, TWO, { id: 30, n: 3 }]))
  const { sent, acknowledged, unknown, refused } = counts
  assert.deepEqual([sent, acknowledged, unknown, refused, unsettled, storedUnknown], [4, 2, 1, 1, 1, 1])
  assert.deepEqual(await wrongIn([ONE, TWO]), {})
})

const PLANTED: Record<string, [stored: readonly Stored[], found: Record<string, number>]> = {
  'an acknowledged message is gone': [[ONE], { lost: 1 }],
  'a message is there twice': [[ONE, TWO, { id: 21, n: 2 }], { twice: 1 }],
  'an unknown message is there twice': [[ONE, TWO, { id: 30, n: 3 }, { id: 31, n: 3 }], { twice: 1 }],
  'a byte is another': [[ONE, { ...TWO, bytes: bodyOf(2).replace('n', 'm') }], { altered: 1 }],
  'there is something nobody sent': [[ONE, TWO, { id: 40, n: 99 }], { altered: 1 }],
  'a refused message is there': [[ONE, TWO, { id: 40, n: 4 }], { resurrected: 1 }],
  'a later message has a lower id': [[ONE, TWO, { id: 5, n: 3 }], { misordered: 1 }],
  'a message has another id than it was told': [[ONE, { id: 25, n: 2 }], { misnumbered: 1 }],
}
for (const [name, [stored, found]] of Object.entries(PLANTED)) {
  test(`it is seen when ${name}`, async () => {
    assert.deepEqual(await wrongIn(stored), found)
  })
}

test('a journal whose last line was torn is read up to there, and the attempt without an answer is unknown', async () => {
  const path = await newJournal()
  const intent = { type: 'intent', attempt: 9, message: 9, ref: 'r9', key: null, channel: null, conflictsWith: null }
  appendFileSync(path, `${JSON.stringify({ ...intent, body: '' })}\n{"type":"answer","attempt":9,"outc`)
  assert.equal((readJournal(path).at(-1) as AnswerLine | Intent).type, 'intent')
  const { counts } = await check(path, holding([ONE, TWO]))
  assert.deepEqual([counts.sent, counts.unknown], [5, 2])
})
