// Export and import: what one database holds, another one holds afterwards, once, in its conversations, whatever drivers they use.

import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { test } from 'node:test'
import { Erasures } from '../../src/erasure/erasures.ts'
import { parseCustomRecipe } from '../../src/hooks/custom-recipe.ts'
import { createPromote } from '../../src/intake/promote.ts'
import type { Tenant } from '../../src/model/principal.ts'
import { newUuid } from '../../src/runtime/id.ts'
import type { Store } from '../../src/store/contract/store.ts'
import { openStore } from '../../src/store/open.ts'
import { checkExport } from '../../src/transfer/check-export.ts'
import { exportLines, FORMAT_VERSION, Tally } from '../../src/transfer/export-file.ts'
import { exportRows } from '../../src/transfer/export-rows.ts'
import { type ImportCounts, type ImportOptions, importRows } from '../../src/transfer/import-rows.ts'
import { promotedFrom } from '../../src/model/event-view.ts'
import { type Driver, drivers } from '../support/drivers.ts'
import { backDoorOf } from './back-door.ts'
import { idOf, item, NOON, TENANT } from './rows.ts'
import { everyDriver, indexAll, newDatabase } from './suite.ts'

const OTHER = { accountId: 8, companyId: 43 } as const
const NEIGHBOUR = { accountId: 9, companyId: TENANT.companyId } as const
const CANARY = 'canary-77d0'
const clock = { now: () => NOON + 5 }
const WAYS = drivers.flatMap((from) => drivers.map((to) => ({ from, to })))

async function opened(t: Parameters<typeof newDatabase>[0], driver: Driver): Promise<{ store: Store; url: string }> {
  const { url, open } = await newDatabase(t, driver)
  return { store: await open('tool'), url }
}

/** An intake's event without a reference: its minted key is its request. */
function anonymous(body: string, channelRef: string | null = null) {
  const mintedKey = newUuid()
  return item({ mintedKey, requestId: mintedKey, body, channelRef })
}

/** Everything that a journal may hold, the odd bytes too. Returns the erased event and the promoted one. */
async function fill(store: Store): Promise<void> {
  const enquiry = { body: 'two equal enquiries', channelRef: 'c1' }
  const outcomes = await store.journal.append([
    item({ sourceRef: 'a', channelRef: 'c1', body: 'first', receivedAt: NOON + 321 }),
    anonymous(enquiry.body, 'c1'),
    anonymous(enquiry.body, 'c1'),
    item({ idempotencyKey: 'k', body: '{"n":12345678901234567890,"n":1}' }),
    item({ payload: Buffer.from([0xef, 0xbb, 0xbf, 0x7b, 0x7d]), channelRef: 'c2' }),
    item({ payload: Buffer.from([0xff, 0, 10, 13]), sourceRef: 'ä\u0001%\\', channelRef: '' }),
    item({ ...OTHER, sourceRef: 'a', channelRef: 'c1', body: 'of another tenant' }),
    item({ ...NEIGHBOUR, sourceRef: 'a', channelRef: 'c1', body: 'of its neighbour' }),
    item({ sourceRef: CANARY, channelRef: CANARY, userAgent: CANARY, body: { text: CANARY } }),
    anonymous(CANARY, 'c2'),
    item({ body: '{"large":"'.padEnd(300_000, 'x'), channelRef: 'c2' }),
  ])
  await store.journal.append([
    item({ sourceRef: 'a', channelRef: 'c1', body: 'a revision' }),
    item({ sourceRef: 'a', channelRef: 'other', body: 'another revision' }),
    item({ idempotencyKey: 'k', body: 'of the key' }),
  ])
  const [revision] = await store.events.revisions(idOf(outcomes[0]), 0, 1)
  await promote(store, revision!.id)
  await store.erasures.erase(TENANT, [idOf(outcomes[8]), idOf(outcomes[9])], NOON)
}

async function promote(store: Store, revisionId: number): Promise<void> {
  const { events, erasures, journal } = store
  const submit: Parameters<typeof createPromote>[0]['submit'] = async (message) => {
    const [outcome] = await journal.append([message])
    return { outcome: 'stored', id: idOf(outcome) }
  }
  const principal = { ...TENANT, keyId: 'AAAAAAAAAA', scope: 'processor' }
  const promoted = await createPromote({ events, erasures, clock, submit })({
    principal,
    revisionId,
    requestId: newUuid(),
  })
  assert.ok('id' in promoted, JSON.stringify(promoted))
}

async function exported(store: Store): Promise<Buffer> {
  await indexAll(store)
  const throughId = await store.events.watermark()
  const rows = exportRows(store, { tenant: null }, { throughId, now: NOON, onProgress: () => {} })
  const header = {
    intray_export: FORMAT_VERSION,
    database: String(store.facts.database_uuid),
    exported_at: new Date(NOON).toISOString(),
    through_id: throughId,
    filters: {},
  }
  return Buffer.from((await Array.fromAsync(exportLines(header, rows, new Tally()))).join(''))
}

interface ImportTest extends Partial<Pick<ImportOptions, 'into' | 'onBatch'>> {
  readonly limit?: number
}

async function imported(
  file: Buffer,
  store: Store,
  { limit = 1e9, into = null, onBatch = () => {} }: ImportTest = {},
): Promise<ImportCounts> {
  const read = async function* () {
    yield file
  }
  const onProblem = (problem: unknown) => assert.fail(JSON.stringify(problem))
  let sourceUuid = ''
  const promoted = new Set<number>()
  const onHeader = ({ database }: { database: string }) => (sourceUuid = database)
  for await (const { meta } of checkExport(read(), { onProblem, onHeader })) promoted.add(promotedFrom(meta) ?? 0)
  const rows = async function* () {
    let left = limit
    for await (const row of checkExport(read(), { onProblem })) if (left-- > 0) yield row
  }
  const { counts, failures } = await importRows(rows(), { store, sourceUuid, into, promoted, onBatch })
  assert.deepEqual(failures, [])
  return counts
}

/** What a database holds, without what differs between databases: ids. */
async function contents(store: Store, tenants: readonly Tenant[] = [TENANT, OTHER, NEIGHBOUR]): Promise<unknown> {
  await indexAll(store)
  const all = []
  for (const tenant of tenants) {
    const query = { tenant, afterId: 0, throughId: await store.events.watermark(), limit: 1000 }
    const rows = (await store.transfer.rows(query)).filter(({ erasedAt }) => erasedAt === null)
    const messages = []
    for (const { id, revises, mintedKey: _, sha256, route, ...event } of rows as ((typeof rows)[number] & {
      mintedKey?: string
    })[]) {
      const payload = (await store.events.payload(id))!
      assert.ok(hash('sha256', payload, 'buffer').equals(sha256))
      const first = revises === null ? null : (await store.events.find(revises))!.sourceRef
      messages.push({ ...event, first, isOwnRoute: route === '/v1/inbox/events', digest: hash('sha256', payload) })
    }
    const conversations = []
    for (const { id, channelRef, ...conversation } of await store.inbox.conversations(tenant, 1e15, 100)) {
      if (channelRef.startsWith('erased:')) continue
      const events = await store.inbox.conversationEvents(tenant, id, 0, 100)
      const payloads = []
      for (const { event } of events) {
        const payload = await store.events.payload(event.id)
        if (payload) payloads.push(hash('sha256', payload))
      }
      conversations.push({ channelRef, firstContact: conversation.firstContact, payloads })
    }
    const byRef = (a: { channelRef: string }, b: { channelRef: string }) => (a.channelRef < b.channelRef ? -1 : 1)
    all.push({ tenant, messages: messages.toSorted(byContent), conversations: conversations.toSorted(byRef) })
  }
  return all
}

const byContent = (a: { digest: string; requestId: string }, b: { digest: string; requestId: string }) =>
  `${a.digest}${a.requestId}` < `${b.digest}${b.requestId}` ? -1 : 1

for (const { from, to } of WAYS) {
  test(`${from.name} to ${to.name}: every payload, revision and conversation arrives; a second import stores nothing`, async (t) => {
    const source = await opened(t, from)
    await fill(source.store)
    const file = await exported(source.store)
    assert.doesNotMatch(file.toString('latin1'), new RegExp(CANARY), 'what was erased is in no export')
    const target = await opened(t, to)
    // So that ids differ.
    await target.store.journal.append([item({ accountId: 1, companyId: 1 }), item({ accountId: 1, companyId: 1 })])
    const counts = await imported(file, target.store)
    const rest = { present: 0, erasedHere: 0, damaged: 0, failed: 0 }
    assert.deepEqual(counts, { events: 10, revisions: 3, erasedThere: 2, ...rest })
    assert.deepEqual(await contents(target.store), await contents(source.store))
    const journal = () => backDoorOf(to).countJournal(target.url)
    const before = await journal()
    const again = await imported(file, target.store)
    assert.deepEqual(again, { ...counts, events: 0, revisions: 0, present: 13 })
    assert.deepEqual(await journal(), before)
  })
}

for (const driver of drivers) {
  test(`${driver.name}: into the database that it comes from, an export brings nothing, and what is erased since stays erased`, async (t) => {
    const { store, url } = await opened(t, driver)
    await fill(store)
    const file = await exported(store)
    const journal = () => backDoorOf(driver).countJournal(url)
    const before = await journal()
    const erasures = new Erasures({ store, clock })
    // An event without a reference, and a message with its revisions and what was promoted from one of them.
    for (const event of [2, 1]) await erasures.page(TENANT, { selector: { event }, dryRun: false, after: null })
    const counts = await imported(file, store)
    assert.deepEqual([counts.events, counts.revisions, counts.erasedHere, counts.present], [0, 0, 5, 8])
    assert.deepEqual(await journal(), before)
  })

  test(`${driver.name}: a promotion belongs to its revision here too: an erasure of the message takes both`, async (t) => {
    const source = await opened(t, driver)
    await fill(source.store)
    const file = await exported(source.store)
    const { store } = await opened(t, driver)
    await imported(file, store)
    await indexAll(store)
    const page = await new Erasures({ store, clock }).page(TENANT, {
      selector: { sourceRef: 'a' },
      dryRun: false,
      after: null,
    })
    assert.deepEqual([page.messages, page.events], [1, 4], 'first, two revisions, a promotion')
    const counts = await imported(file, store)
    assert.deepEqual([counts.events, counts.revisions, counts.erasedHere], [0, 0, 4])
    const texts = JSON.stringify(await contents(store))
    assert.ok(!texts.includes(hash('sha256', 'a revision')), 'its bytes are nowhere')
    assert.ok(JSON.stringify(await contents(source.store)).includes(hash('sha256', 'a revision')), 'control')
  })

  test(`${driver.name}: what an erased message had promoted is not brought in by a file that is imported later`, async (t) => {
    const source = await opened(t, driver)
    await fill(source.store)
    const file = await exported(source.store)
    const { store } = await opened(t, driver)
    await imported(file, store, { limit: 14 })
    await store.erasures.erase(TENANT, await idsOf(store, 'a'), NOON)
    const counts = await imported(file, store)
    assert.deepEqual([counts.events, counts.erasedHere], [0, 4])
  })

  test(`${driver.name}: an import that ended in the middle is repeated; two at once store nothing twice`, async (t) => {
    const source = await opened(t, driver)
    for (let from = 0; from < 900; from += 300) {
      const messages = Array.from({ length: 300 }, (_, n) => {
        const count = from + n
        return count % 3 === 0 ? anonymous(`n ${count % 30}`, 'c') : item({ sourceRef: `r:${count}`, body: `${count}` })
      })
      await source.store.journal.append(messages)
    }
    await source.store.journal.append([item({ sourceRef: 'r:1', body: 'other' })])
    const file = await exported(source.store)
    const target = await opened(t, driver)
    const begun = await imported(file, target.store, { limit: 450 })
    assert.equal(begun.events, 450)
    const second = await openStore(target.url, { role: 'tool' })
    t.after(() => second.close())
    const both = await Promise.all([imported(file, target.store), imported(file, second)])
    for (const counts of both) assert.ok(counts.present >= 450)
    assert.deepEqual(await contents(target.store), await contents(source.store))
    const { events, dedupe } = await backDoorOf(driver).countJournal(target.url)
    assert.deepEqual([events, dedupe], [901, 900])
  })

  test(`${driver.name}: into another tenant, also of the same company, each message once; rows of one request stay two`, async (t) => {
    const { store } = await opened(t, driver)
    const first = anonymous('one')
    await store.journal.append([first, anonymous('two'), item({ sourceRef: 'x', channelRef: 'c' })])
    await store.journal.append([{ ...first, mintedKey: newUuid(), payload: Buffer.from('same request') }])
    const file = await exported(store)
    const into = NEIGHBOUR
    assert.equal((await imported(file, store, { into })).events, 4)
    assert.deepEqual(await imported(file, store, { into }).then(({ events, present }) => [events, present]), [0, 4])
    assert.equal((await store.inbox.conversations(NEIGHBOUR, 1e15, 9)).length, 0, 'not indexed yet')
    await indexAll(store)
    assert.equal((await store.inbox.conversations(NEIGHBOUR, 1e15, 9)).length, 1)
    const other = await opened(t, driver)
    assert.equal((await imported(file, other.store)).events, 4)
    assert.equal((await imported(file, other.store)).present, 4)
  })

  test(`${driver.name}: into the tenant that it comes from, an import brings nothing; a message of two accounts stays two`, async (t) => {
    const { store } = await opened(t, driver)
    await store.journal.append([anonymous('one'), anonymous('two'), item({ sourceRef: 'x' })])
    const own = await exported(store)
    const here = await imported(own, store, { into: TENANT })
    assert.deepEqual([here.events, here.present], [0, 3])

    assert.equal((await imported(own, store, { into: NEIGHBOUR })).events, 3)
    const both = await exported(store)
    const { store: third } = await opened(t, driver)
    // The rows of the two accounts arrive in batches of their own.
    assert.equal((await imported(both, third, { limit: 3 })).events, 3)
    const rest = await imported(both, third)
    assert.deepEqual([rest.events, rest.present], [3, 3])
    assert.deepEqual(await contents(third), await contents(store))
    assert.deepEqual((await imported(own, third, { into: NEIGHBOUR })).present, 3, 'it came by another way')
  })

  test(`${driver.name}: under a reference that is here with other bytes, a message becomes a revision`, async (t) => {
    const source = await opened(t, driver)
    await source.store.journal.append([
      item({ sourceRef: 'a', body: 'there' }),
      item({ sourceRef: 'b', body: 'equal' }),
    ])
    const { store } = await opened(t, driver)
    const [own] = await store.journal.append([
      item({ sourceRef: 'a', body: 'here' }),
      item({ sourceRef: 'b', body: 'equal' }),
    ])
    const { events, revisions, present } = await imported(await exported(source.store), store)
    assert.deepEqual([events, revisions, present], [0, 1, 1])
    const [revision] = await store.events.revisions(idOf(own), 0, 9)
    assert.equal(Buffer.from((await store.events.payload(revision!.id))!).toString(), 'there')
  })

  test(`${driver.name}: what was purged is not brought back by an older export, and a database with gaps is exported as it is`, async (t) => {
    const source = await opened(t, driver)
    const { store } = source
    const old = { receivedAt: NOON - 86_400_000, channelRef: 'c' }
    const requestId = newUuid()
    await store.journal.append([
      item({ ...old, sourceRef: 'a', body: 'first' }),
      item({ ...old, requestId, mintedKey: requestId, body: 'without a reference' }),
      item({ sourceRef: 'b', body: 'young', channelRef: 'c' }),
    ])
    await store.journal.append([item({ ...old, sourceRef: 'a', body: 'revised' })])
    const before = await exported(store)
    const request = { tenant: TENANT, before: NOON - 1, now: NOON, purgesUnprocessed: true, after: null, dryRun: false }
    assert.equal((await store.retention.purgeStep(request)).rows, 3)
    for (let steps = 0; steps < 100 && (await store.retention.followPurges()); steps++);
    const journal = () => backDoorOf(driver).countJournal(source.url)
    const gaps = await journal()
    const again = await imported(before, store)
    assert.deepEqual([again.events, again.revisions, again.present, again.erasedHere], [0, 1, 3, 0])
    assert.deepEqual(await journal(), { ...gaps, events: gaps.events + 1 }, 'the revision, as a message of its own')
    // Under the purged reference: an event that names the one that is gone.
    await store.journal.append([item({ sourceRef: 'a', body: 'second', channelRef: 'c' })])
    await indexAll(store)
    const after = await exported(store)
    const target = await opened(t, driver)
    const counts = await imported(after, target.store)
    assert.deepEqual([counts.events, counts.revisions, counts.failed], [2, 1, 0])
    assert.equal((await imported(after, target.store)).present, 3)
    assert.equal((await imported(after, store)).present, 3)
    await target.store.journal.append(['revised', 'second'].map((body) => item({ sourceRef: 'a', body })))
    assert.equal((await backDoorOf(driver).countJournal(target.url)).events, 3, 'both are known')
  })
}

async function idsOf(store: Store, sourceRef: string): Promise<number[]> {
  const query = { tenant: null, afterId: 0, throughId: 1e9, limit: 1000 }
  const rows = (await store.transfer.rows(query)).filter((row) => row.sourceRef === sourceRef)
  return rows.filter(({ accountId }) => accountId === TENANT.accountId).map(({ id }) => id)
}

everyDriver(
  'a custom recipe goes along with its events, which are read alike in the other database',
  async (database, t) => {
    const source = await database.open()
    const read = parseCustomRecipe('{"title":"x","signature":{"kind":"none"},"index":{"text":["{/note}"]}}')
    assert.ok('recipe' in read)
    const digest = read.recipe.version
    await source.hooks.keepRecipe({ ...TENANT, digest, recipe: read.definition, createdAt: NOON })
    const fields = { recipe: `custom/${digest}`, body: { note: 'blue', message: { text: 'not this' } } }
    const [stored] = await source.journal.append([item(fields)])
    const file = await exported(source)
    const snippetIn = async (store: Store, id: number) => {
      await indexAll(store)
      return (await store.events.indexEntry((await store.events.find(id))!))?.snippet
    }
    assert.equal(await snippetIn(source, idOf(stored)), 'blue')
    const target = await (await newDatabase(t, database.driver)).open()
    await imported(file, target)
    assert.equal(await target.hooks.recipe(TENANT, digest), read.definition)
    assert.equal(await snippetIn(target, (await target.events.watermark()) || 1), 'blue')
    const without = Buffer.from(file.toString().replace('"recipe_definition"', '"recipe_definition_"'))
    const problems: unknown[] = []
    const chunks = async function* () {
      yield without
    }
    for await (const _ of checkExport(chunks(), { onProblem: (problem) => problems.push(problem) }));
    assert.ok(problems.length > 0, 'a changed line is named')
  },
)
