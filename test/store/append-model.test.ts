// Conformance, by model: random calls against the store and against plain maps must come to the same outcomes, the same
// ids and the same bytes, through restarts and retries.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { newUuid } from '../../src/runtime/id.ts'
import type { AppendItem, AppendOutcome } from '../../src/store/contract/append.ts'
import type { Store } from '../../src/store/contract/store.ts'
import { openStore } from '../../src/store/open.ts'
import { drivers } from '../support/drivers.ts'
import { DEADLINE_MS } from '../support/until.ts'
import { item, NOON } from './rows.ts'
import { drawSeed } from './seed.ts'
import { indexAll, type Role, roles } from './suite.ts'

const TENANTS = [
  { accountId: 1, companyId: 1 },
  { accountId: 2, companyId: 1 },
  { accountId: 1, companyId: 2 },
] as const
const VALUES = ['a', 'b', 'A'] as const
const BODIES = ['{}', '{"message":{"text":"hi"}}', '{ }', '[1]'] as const
const CHANNELS = [null, 'page', 'chat'] as const

interface Draft {
  readonly tenant: number
  readonly sourceRef: string | null
  readonly idempotencyKey: string | null
  readonly channelRef: string | null
  readonly body: string
}

type Step =
  | { readonly do: 'append'; readonly drafts: readonly Draft[]; readonly inFlight: number }
  /** The node's own retry: first arrivals of earlier calls again, with the keys they were minted with. */
  | { readonly do: 'retry'; readonly picks: readonly number[] }
  | { readonly do: 'reopen'; readonly role: Role }
  | { readonly do: 'index' }

const draft: fc.Arbitrary<Draft> = fc.record({
  tenant: fc.nat(TENANTS.length - 1),
  sourceRef: fc.option(fc.constantFrom(...VALUES), { nil: null }),
  idempotencyKey: fc.option(fc.constantFrom(...VALUES), { nil: null, freq: 1 }),
  channelRef: fc.constantFrom(...CHANNELS),
  body: fc.constantFrom(...BODIES),
})
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant('append' as const),
      drafts: fc.array(draft, { maxLength: 6 }),
      inFlight: fc.integer({ min: 1, max: 3 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('retry' as const),
      picks: fc.array(fc.nat(), { minLength: 1, maxLength: 4 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('reopen' as const), role: fc.constantFrom(...roles) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('index' as const) }) },
)

interface KnownEvent {
  readonly id: number
  readonly item: AppendItem
  readonly revisions: string[]
  resends: number
  lastSeenAt: number
}

/** What the contract says, in plain maps. */
class Model {
  readonly events: KnownEvent[] = []
  readonly #byIdentity = new Map<string, KnownEvent>()
  readonly #ordered: boolean
  #highest = 0

  constructor(ordered: boolean) {
    this.#ordered = ordered
  }

  /** Holds the store's outcome against what must come of the item. */
  expect(sent: AppendItem, outcome: AppendOutcome): void {
    const identity = identityOf(sent)
    const known = this.#byIdentity.get(identity)
    if (!known) {
      assert.equal(outcome.outcome, 'stored')
      assert.ok('id' in outcome && !this.events.some(({ id }) => id === outcome.id), 'a first arrival has its own id')
      if (this.#ordered) assert.ok(outcome.id > this.#highest, 'ids are the order of commits')
      const event: KnownEvent = { id: outcome.id, item: sent, revisions: [], resends: 0, lastSeenAt: 0 }
      this.#highest = outcome.id
      this.#byIdentity.set(identity, event)
      this.events.push(event)
      return
    }
    const expected = this.#again(known, sent)
    assert.deepEqual(outcome, { outcome: expected, id: known.id })
  }

  #again(known: KnownEvent, sent: AppendItem): AppendOutcome['outcome'] {
    if (sent.mintedKey === known.item.mintedKey) return 'stored'
    const bytes = textOf(sent)
    known.lastSeenAt = Math.max(known.lastSeenAt, sent.receivedAt)
    const sameAsFirst = bytes === textOf(known.item)
    if (sameAsFirst || known.revisions.includes(bytes)) known.resends += 1
    else known.revisions.push(bytes)
    return sameAsFirst ? 'duplicate' : 'conflict'
  }
}

function identityOf({ accountId, companyId, sourceRef, idempotencyKey, mintedKey }: AppendItem): string {
  const tenant = `${accountId}/${companyId}`
  if (sourceRef !== null) return `${tenant} ref ${sourceRef}`
  return idempotencyKey !== null ? `${tenant} key ${idempotencyKey}` : `minted ${mintedKey}`
}

const textOf = ({ payload }: AppendItem): string => Buffer.from(payload).toString()

for (const driver of drivers) {
  test(`${driver.name}: any sequence of appends, retries and restarts comes to what the contract says`, async (t) => {
    const seed = drawSeed(t)
    const property = fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 40 }), (steps) => run(driver, steps))
    await fc.assert(property, {
      seed,
      numRuns: 40,
      interruptAfterTimeLimit: DEADLINE_MS,
      markInterruptAsFailure: false,
    })
  })
}

async function run(driver: (typeof drivers)[number], steps: readonly Step[]): Promise<void> {
  const url = await driver.newDatabase()
  let store = await openStore(url, { role: 'tool' })
  const oneWriter = !store.traits.concurrentWriters
  const model = new Model(oneWriter)
  let clock = NOON
  try {
    for (const one of steps) {
      if (one.do === 'reopen') {
        await store.close()
        store = await openStore(url, { role: one.role })
      } else if (one.do === 'index') await store.index.step({ maxRows: 3, maxBytes: 1 << 20 })
      else if (one.do === 'retry') await retry(store, model, one.picks)
      else {
        const items = one.drafts.map((draft) => toItem(draft, (clock += 1)))
        const calls = Array.from({ length: oneWriter ? one.inFlight : 1 }, (_, call) =>
          call === 0 ? items : items.map((sent) => ({ ...sent, mintedKey: newUuid(), receivedAt: (clock += 1) })),
        )
        const answers = await Promise.all(calls.map((call) => store.journal.append(call)))
        for (const [call, outcomes] of answers.entries()) {
          assert.equal(outcomes.length, calls[call]!.length)
          for (const [n, outcome] of outcomes.entries()) model.expect(calls[call]![n]!, outcome)
        }
      }
    }
    await indexAll(store)
    await compare(store, model)
  } finally {
    await store.close()
  }
}

async function retry(store: Store, model: Model, picks: readonly number[]): Promise<void> {
  if (model.events.length === 0) return
  const items = picks.map((pick) => model.events[pick % model.events.length]!.item)
  for (const [n, outcome] of (await store.journal.append(items)).entries()) model.expect(items[n]!, outcome)
}

function toItem({ tenant, ...fields }: Draft, receivedAt: number): AppendItem {
  return item({ ...TENANTS[tenant]!, ...fields, receivedAt })
}

async function compare(store: Store, model: Model): Promise<void> {
  const conversations = new Map<string, KnownEvent[]>()
  const ids = new Set(model.events.map(({ id }) => id))
  for (const event of model.events) {
    const { id, item: sent } = event
    const stored = await store.events.find(id, sent)
    assert.ok(stored, `event ${id} is there`)
    assert.equal(Buffer.from((await store.events.payload(id))!).toString(), textOf(sent))
    assert.deepEqual(
      [stored.sourceRef, stored.idempotencyKey, stored.channelRef, stored.receivedAt, stored.requestId],
      [sent.sourceRef, sent.idempotencyKey, sent.channelRef, sent.receivedAt, sent.requestId],
    )
    const revisions = await store.events.revisions(id, 0, 1000)
    for (const row of revisions) assert.ok(!ids.has(row.id) && ids.add(row.id), 'a revision has an id of its own')
    const bytes = await Promise.all(revisions.map((row) => store.events.payload(row.id)))
    assert.deepEqual(
      bytes.map((one) => Buffer.from(one!).toString()),
      event.revisions,
    )
    const expected =
      event.resends + event.revisions.length === 0
        ? null
        : { resends: event.resends, revisions: event.revisions.length, lastSeenAt: event.lastSeenAt }
    assert.deepEqual(await store.events.repeats(stored), expected)
    if (sent.channelRef === null) continue
    const key = JSON.stringify([sent.accountId, sent.companyId, sent.channelRef])
    conversations.set(key, [...(conversations.get(key) ?? []), event])
  }
  for (const [key, events] of conversations) {
    const [accountId, companyId, channelRef] = JSON.parse(key) as [number, number, string]
    const found = await store.events.conversation({ accountId, companyId }, channelRef)
    assert.deepEqual(
      [found?.id, found?.eventCount, found?.lastEventId, found?.firstReceivedAt, found?.lastReceivedAt],
      [events[0]!.id, events.length, events.at(-1)!.id, events[0]!.item.receivedAt, events.at(-1)!.item.receivedAt],
    )
  }
}
