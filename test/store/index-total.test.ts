// The indexer cannot be poisoned: whatever intake accepts is indexed, or marked, and so is the event behind it.
// Intake's own validator is the judge of what is accepted; the bodies are made to be nasty.

import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import fc from 'fast-check'
import { readEnvelope } from '../../src/intake/envelope.ts'
import { EXTRACT_LIMITS } from '../../src/model/extract.ts'
import type { Store } from '../../src/store/contract/store.ts'
import { openStore } from '../../src/store/open.ts'
import { drivers } from '../support/drivers.ts'
import { DEADLINE_MS } from '../support/until.ts'
import { idOf, item } from './rows.ts'
import { drawSeed } from './seed.ts'
import { everyDriver, indexAll } from './suite.ts'

const NASTY_TEXTS = [
  '',
  ' ',
  '\0',
  'a\0b',
  '\ud800',
  'x\udfff',
  '\udfff\ud800',
  '\uFEFF',
  '\u{1F600}'.repeat(9000),
  `${'x'.repeat(EXTRACT_LIMITS.snippet - 1)}\u{1F600}`,
  `${'x'.repeat(EXTRACT_LIMITS.text - 1)}\u{1F600}`,
  'y'.repeat(20_000),
  ' \n\t'.repeat(8000),
  "'; DROP TABLE events; --",
  '\u202eevil\u0007\u001b[31m',
  '__proto__',
  '12345678901234567890',
]

const text = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(...NASTY_TEXTS) },
  { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 60 }) },
  // Any UTF-16 units at all, lone surrogates among them.
  {
    weight: 1,
    arbitrary: fc.array(fc.nat(0xffff), { maxLength: 30 }).map((units) => String.fromCharCode(...units)),
  },
)
const anything = fc.oneof(
  text,
  fc.constantFrom(null, true, false, 0, -1, 1.5, 1e308, {}, [], [[]], { name: [] }),
  fc.jsonValue({ maxDepth: 3 }),
)
const maybe = <T>(field: fc.Arbitrary<T>) => fc.option(field, { nil: undefined, freq: 4 })
const ref = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom('a', 'b', 'page', ' page', '\u{1F600}'.repeat(256)) },
  { weight: 1, arbitrary: anything },
)

const body = fc
  .record({
    source_ref: maybe(ref),
    channel_ref: maybe(ref),
    contact: maybe(fc.oneof(fc.record({ name: maybe(anything), email: maybe(anything) }), anything)),
    message: maybe(fc.oneof(fc.record({ type: maybe(anything), text: maybe(anything) }), anything)),
    meta: maybe(fc.oneof(fc.record({ form_id: maybe(anything), page_url: maybe(anything) }), anything)),
    extra: maybe(fc.jsonValue({ maxDepth: 4 })),
  })
  .map((fields) => JSON.stringify(fields))

/** The same body as senders write it: escaped, spaced, with a BOM, with a key twice, with the wrong thing around it. */
const wire = fc.tuple(
  body,
  fc.constantFrom<(json: string) => string | Uint8Array>(
    (json) => json,
    (json) => `\uFEFF${json}`,
    (json) => ` \n${json}\r\n\t`,
    (json) => json.replace(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`),
    (json) => `{"channel_ref":"first","message":{"text":"\\ud83d"},${json.slice(1)}`.replace(',}', '}'),
    (json) => `{"__proto__":{"contact":1},"constructor":null,"hasOwnProperty":1,${json.slice(1)}`.replace(',}', '}'),
    (json) => `[${json}]`,
    (json) => json.slice(0, -1),
    (json) => Uint8Array.from([...Buffer.from(json), 0xff]),
  ),
)

for (const driver of drivers) {
  test(`${driver.name}: whatever intake accepts is indexed or marked, and so is the next event`, async (t) => {
    const seed = drawSeed(t)
    const store = await openStore(await driver.newDatabase(), { role: 'tool' })
    t.after(() => store.close())
    const seen = { accepted: 0, refused: 0, unindexed: 0 }
    await fc.assert(
      fc.asyncProperty(
        fc.array(wire, { minLength: 1, maxLength: 8 }),
        fc.integer({ min: 1, max: 9 }),
        async (bodies, maxRows) => {
          const payloads = bodies.map(([json, write]) => Buffer.from(write(json)))
          await holdsFor(store, payloads, maxRows, seen)
        },
      ),
      { seed, numRuns: 250, interruptAfterTimeLimit: DEADLINE_MS },
    )
    t.diagnostic(JSON.stringify(seen))
    assert.ok(seen.accepted > 100 && seen.refused > 20, 'the bodies were of both sorts')
  })
}

/** Bodies too large or too deep to be made at random. */
const GIANTS: Record<string, () => string> = {
  '100,000 levels of arrays': () => `{"channel_ref":"page","meta":{"deep":${'['.repeat(1e5)}${']'.repeat(1e5)}}}`,
  '100,000 levels of objects': () => `{"channel_ref":"page","contact":${'{"name":'.repeat(1e5)}1${'}'.repeat(1e5)}}`,
  'nesting where a text belongs': () => `{"message":{"text":${'['.repeat(1e5)}${']'.repeat(1e5)}}}`,
  'a text of a mebibyte': () =>
    JSON.stringify({ channel_ref: 'page', message: { text: '\u{1F600} '.repeat(170_000) } }),
  'a text of a mebibyte of U+0000': () => JSON.stringify({ message: { text: '\0'.repeat(170_000) } }),
  'white space without end': () => JSON.stringify({ message: { text: ' '.repeat(1_000_000) }, contact: { name: '' } }),
  '60,000 keys': () => `{${Array.from({ length: 60_000 }, (_, n) => `"k${n}":${n}`).join(',')}}`,
  'one key 60,000 times': () => `{${new Array(60_000).fill('"message":{"text":"again"}').join(',')}}`,
  'a number of 100,000 digits': () => `{"meta":{"form_id":${'9'.repeat(1e5)}}}`,
}
for (const [name, make] of Object.entries(GIANTS)) {
  everyDriver(`an event behind ${name} is indexed like any other`, async (database, t: TestContext) => {
    const seen = { accepted: 0, refused: 0, unindexed: 0 }
    await holdsFor(await database.open('server'), [Buffer.from(make())], 1, seen)
    assert.equal(seen.accepted, 1, 'intake takes it')
    t.diagnostic(JSON.stringify(seen))
  })
}

async function holdsFor(
  store: Store,
  payloads: readonly Buffer[],
  maxRows: number,
  seen: { accepted: number; refused: number; unindexed: number },
): Promise<void> {
  const ids: number[] = []
  for (const payload of payloads) {
    const read = readEnvelope(payload)
    if ('problem' in read) {
      seen.refused += 1
      continue
    }
    seen.accepted += 1
    // Without its source_ref, so that each is an event of its own and not a re-send of one before.
    const { channelRef } = read.envelope
    const [outcome, next] = await store.journal.append([item({ channelRef, payload }), item({ channelRef })])
    ids.push(idOf(outcome), idOf(next))
  }
  const started = (await store.index.progress()).cursor
  let indexed = 0
  await indexAll(store, { maxRows, maxBytes: 1 << 20 }, (result) => {
    indexed += result.indexed
    seen.unindexed += result.unindexed
  })
  assert.equal(indexed, ids.length)
  if (ids.length > 0) assert.ok((await store.index.progress()).cursor > started)
  for (const id of ids) await isIndexed(store, id)
}

async function isIndexed(store: Store, id: number): Promise<void> {
  const event = await store.events.find(id)
  const entry = await store.events.indexEntry(event!)
  assert.ok(entry, `event ${id} has an entry`)
  const limits = [
    [entry.contactName, EXTRACT_LIMITS.name],
    [entry.contactEmail, EXTRACT_LIMITS.email],
    [entry.messageType, EXTRACT_LIMITS.type],
    [entry.snippet, EXTRACT_LIMITS.snippet],
    [entry.unindexed, 1000],
  ] as const
  for (const [value, limit] of limits) {
    if (value === null) continue
    assert.ok(value.length <= limit)
    assert.ok(value.isWellFormed() && !value.includes('\0'), 'what is indexed can be stored anywhere')
  }
  if (event!.channelRef === null) return
  const conversation = await store.events.conversation(event!, event!.channelRef)
  assert.ok(conversation, 'it is counted in its conversation')
  assert.equal(entry.conversationId, conversation.id)
}
