// Erasures: nothing that a sender wrote is left, what stays still deduplicates and counts, and no reader fails.

import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { Erasures } from '../../src/erasure/erasures.ts'
import { createPromote } from '../../src/intake/promote.ts'
import { createErasedDigest } from '../../src/model/erasure.ts'
import { newUuid } from '../../src/runtime/id.ts'
import type { AppendItem } from '../../src/store/contract/append.ts'
import type { ErasureStore } from '../../src/store/contract/erasures.ts'
import type { Store } from '../../src/store/contract/store.ts'
import { openCopySide } from '../../src/store/open.ts'
import { backDoorOf } from './back-door.ts'
import { append, everyDriver, everyStore, indexAll, payloadText } from './suite.ts'
import { idOf, item, NOON, refusal, TENANT } from './rows.ts'

const OTHERS = { accountId: 7, companyId: 43 }

async function purgeAll(store: Store): Promise<void> {
  for (let steps = 0; steps < 1000; steps++) if (!(await store.erasures.purge()).more) return
  throw new Error('the purge does not end')
}

const message = (fields: { ref?: string; channel?: string; email?: string; text?: string }) => {
  const { ref = null, channel = null, email = 'ada@example.org', text = 'hello' } = fields
  const body = { source_ref: ref, channel_ref: channel, contact: { name: 'Ada', email }, message: { text } }
  return { sourceRef: ref, channelRef: channel, body }
}

everyStore('an erased event keeps its id, times and size, and nothing that the sender wrote', async (store) => {
  const fields = {
    ...message({ ref: 'r:1', channel: 'c:1' }),
    userAgent: 'UA',
    traceparent: 'TP',
    remoteAddr: '1.2.3.4',
  }
  const id = await append(store, { ...fields, contentType: 'application/json; charset=utf-8' })
  const before = (await store.events.find(id))!
  assert.equal(await store.erasures.erase(TENANT, [id], NOON + 1), 1)
  const after = (await store.events.find(id))!
  assert.equal(await store.events.payload(id, TENANT), null)
  const { id: _, receivedAt, size, keyId, scope, route, requestId, kind } = before
  assert.deepEqual(
    { ...after, sha256: null },
    {
      ...{ ...TENANT, id, receivedAt, size, keyId, scope, route, requestId, kind, revises: null, origin: 'intake' },
      ...{ sourceRef: null, idempotencyKey: null, traceparent: null, userAgent: null, remoteAddr: null, recipe: null },
      ...{ contentType: 'application/json', channelRef: after.channelRef, sha256: null, erasedAt: NOON + 1 },
    },
  )
  assert.match(after.channelRef!, /^erased:[0-9a-f]{32}$/)
  assert.notDeepEqual(Buffer.from(after.sha256), Buffer.from(before.sha256))
  assert.equal(await store.erasures.erase(TENANT, [id], NOON + 2), 0, 'once')
  assert.equal((await store.events.find(id))!.erasedAt, NOON + 1)
  assert.equal((await store.erasures.log(0, 10)).length, 1)
})

everyStore('an erasure stays inside of its tenant', async (store) => {
  const id = await append(store, message({ ref: 'r:1' }))
  assert.equal(await store.erasures.erase(OTHERS, [id], NOON), 0)
  assert.equal((await store.events.find(id))!.erasedAt, null)
})

everyStore('a re-send of erased bytes is a duplicate; other bytes are a revision', async (store) => {
  const first = message({ ref: 'r:1', text: 'first' })
  const second = message({ ref: 'r:1', text: 'second' })
  const send = async (fields: object) => (await store.journal.append([item(fields)]))[0]!
  const id = await append(store, first)
  assert.equal((await send(second)).outcome, 'conflict')
  const [revision] = await store.events.revisions(id, 0, 10)
  assert.equal(await store.erasures.erase(TENANT, [id, revision!.id], NOON), 2)
  const head = await store.follow.head()
  assert.deepEqual(await send(first), { outcome: 'duplicate', id })
  assert.deepEqual(await send(second), { outcome: 'conflict', id })
  assert.equal((await store.events.revisions(id, 0, 10)).length, 1, 'neither was stored again')
  assert.ok(head.newest >= 0)
  assert.deepEqual(await send(message({ ref: 'r:1', text: 'third' })), { outcome: 'conflict', id })
  const [, third] = await store.events.revisions(id, 0, 10)
  assert.match((await payloadText(store, third!.id))!, /third/)
  assert.equal(third!.sourceRef, 'r:1')
  assert.deepEqual(await send(message({ ref: 'r:1', text: 'third' })), { outcome: 'conflict', id })
  assert.equal((await store.events.revisions(id, 0, 10)).length, 2)
})

everyStore(
  'a message without a reference leaves no digest of its bytes, erased or not',
  async (store, { url, driver }) => {
    const key = newUuid()
    const id = await append(store, { ...message({}), mintedKey: key })
    await store.erasures.erase(TENANT, [id], NOON)
    const [again] = await store.journal.append([item({ ...message({}), mintedKey: key })])
    assert.deepEqual(again, { outcome: 'stored', id }, 'the retry of its node')
    assert.deepEqual(await store.erasures.findMinted(TENANT, [key, newUuid()]), [id])
    assert.equal((await backDoorOf(driver).countJournal(url)).events, 1)
  },
)

everyStore(
  'conversations keep their ids and counts, and a rebuild finds them again',
  async (store, { url, driver }) => {
    const ids: number[] = []
    for (const [n, channel] of ['c:1', 'c:1', 'c:2', 'c:1', 'c:2'].entries()) {
      ids.push(await append(store, message({ ref: `r:${n}`, channel, text: `word${n}` })))
    }
    await indexAll(store)
    const [a, b, c, d, e] = ids as [number, number, number, number, number]
    // The first and last of one conversation, and all of another.
    assert.equal(await store.erasures.erase(TENANT, [a, d, c, e], NOON), 4)
    assert.equal(await store.erasures.isPending(TENANT), true)
    assert.equal(await store.erasures.isPending(OTHERS), false)
    await purgeAll(store)
    assert.equal(await store.erasures.isPending(TENANT), false)
    const first = (await store.inbox.conversation(TENANT, a))!
    const second = (await store.inbox.conversation(TENANT, c))!
    assert.deepEqual([first.eventCount, first.channelRef, first.lastEventId], [3, 'c:1', d])
    assert.deepEqual([first.firstContact.email, first.lastContact.email, first.lastSnippet], [null, null, null])
    assert.deepEqual([second.eventCount, second.lastEventId], [2, e])
    assert.match(second.channelRef, /^erased:/)
    assert.deepEqual(
      await store.events.conversation(TENANT, 'c:2'),
      second,
      'found by its old name, which nothing keeps',
    )
    assert.deepEqual(await listed(store, { contactEmail: 'ada@example.org' }), [b])
    assert.deepEqual(await listed(store, { words: ['word4'] }), [])
    assert.deepEqual(await listed(store, { channelRef: 'c:2' }), [e, c])
    const withoutCursors = async () => ({ ...(await backDoorOf(driver).dumpIndex(url)), cursors: null })
    const before = await withoutCursors()
    await store.index.requestRebuild()
    await indexAll(store)
    assert.deepEqual(await withoutCursors(), before, 'a rebuild before the erasures are followed again')
    await purgeAll(store)
    assert.deepEqual(await withoutCursors(), before, 'and after')
    const late = await append(store, message({ ref: 'r:9', channel: 'c:2' }))
    await indexAll(store)
    const joined = (await store.events.conversation(TENANT, 'c:2'))!
    assert.deepEqual([joined.id, joined.eventCount, joined.channelRef, joined.lastEventId], [c, 3, 'c:2', late])
  },
)

everyStore('an event that is erased before it is indexed is counted once', async (store, { url, driver }) => {
  const id = await append(store, message({ ref: 'r:1', channel: 'c:1' }))
  await store.erasures.erase(TENANT, [id], NOON)
  await purgeAll(store)
  await indexAll(store)
  const before = await backDoorOf(driver).dumpIndex(url)
  assert.equal(Number((before.conversations as { erased_count: unknown }[])[0]!.erased_count), 1)
  await store.index.requestRebuild()
  await indexAll(store)
  await purgeAll(store)
  assert.deepEqual((await backDoorOf(driver).dumpIndex(url)).conversations, before.conversations)
})

everyStore('claims, streams and lists show an erased event', async (store) => {
  const ids = [await append(store, message({ ref: 'r:1' })), await append(store, message({ ref: 'r:2' }))]
  await indexAll(store)
  await store.erasures.erase(TENANT, [ids[0]!], NOON + 5)
  await purgeAll(store)
  const queue = { tenant: TENANT, subscription: 'default' }
  const lease = { leaseId: newUuid(), leaseExpiresAt: NOON + 9, keyId: 'PPPPPPPPPP', now: NOON }
  const request = { ...queue, ...lease, limit: 10, maxBytes: 1 << 20, ordered: true, channelRef: null, maxAttempts: 3 }
  const claimed = (await store.processing.claim(request))!
  assert.deepEqual(
    claimed.map(({ event, payload }) => [event.id, event.erasedAt, payload === null]),
    [
      [ids[0], NOON + 5, true],
      [ids[1], null, false],
    ],
  )
  const items = [{ id: ids[0]!, leaseId: lease.leaseId, delayMs: 0, error: 'cannot parse "my secret"' }]
  const release = { ...queue, items, maxAttempts: 3, keyId: 'PPPPPPPPPP', jitter: 0, now: NOON + 1 }
  await store.processing.release(release)
  const [record] = await store.processing.history(TENANT, ids[0]!)
  assert.deepEqual(
    record!.history.map(({ what, error }) => [what, error]),
    [['released', null]],
    'a text that comes after the erasure is not kept',
  )
  const page = await store.follow.after(TENANT, 0, 10)
  assert.deepEqual(
    page.events.map(({ id, erasedAt, snippet }) => [id, erasedAt, snippet]),
    [
      [ids[0], NOON + 5, null],
      [ids[1], null, 'hello'],
    ],
  )
  assert.equal((await store.inbox.events(TENANT, {}, null, 10)).events[1]!.event.erasedAt, NOON + 5)
})

everyStore('an erasure takes the texts of the history', async (store) => {
  const id = await append(store, message({ ref: 'r:1' }))
  await indexAll(store)
  const queue = { tenant: TENANT, subscription: 'default' }
  const lease = { leaseId: newUuid(), leaseExpiresAt: NOON + 9, keyId: 'PPPPPPPPPP', now: NOON }
  const request = { ...queue, ...lease, limit: 10, maxBytes: 1 << 20, ordered: true, channelRef: null, maxAttempts: 3 }
  await store.processing.claim(request)
  const items = [{ id, leaseId: lease.leaseId, delayMs: 0, error: 'no such person: Ada' }]
  await store.processing.release({ ...queue, items, maxAttempts: 3, keyId: 'P', jitter: 0, now: NOON + 1 })
  const errors = async () => (await store.processing.history(TENANT, id))[0]!.history.map(({ error }) => error)
  assert.deepEqual(await errors(), ['no such person: Ada'])
  await store.erasures.erase(TENANT, [id], NOON)
  assert.deepEqual(await errors(), [null])
})

everyStore('a revision that is promoted while it is erased leaves nothing', async (store) => {
  const clock = { now: () => NOON }
  const principal = { ...TENANT, keyId: 'AAAAAAAAAA', scope: 'cf' }
  const stored = async (one: AppendItem) => ({
    outcome: 'stored' as const,
    id: idOf((await store.journal.append([one]))[0]),
  })
  const promote = (revisionId: number, submit = stored) =>
    createPromote({ ...store, clock, submit })({ principal, revisionId, requestId: newUuid() })
  const revised = async (ref: string) => {
    const event = await append(store, message({ ref, text: 'first' }))
    await store.journal.append([item(message({ ref, text: 'second' }))])
    return { event, revision: (await store.events.revisions(event, 0, 1))[0]!.id }
  }
  const eraseWith = (erasures: ErasureStore, event: number) =>
    new Erasures({ store: { ...store, erasures }, clock }).page(TENANT, {
      selector: { event },
      dryRun: false,
      after: null,
    })

  // The promotion has read the bytes, and stores them after the erasure.
  const late = await revised('r:1')
  let stays = 0
  const refused = await promote(late.revision, async (one) => {
    await eraseWith(store.erasures, late.event)
    const result = await stored(one)
    stays = result.id
    return result
  })
  assert.deepEqual(refused, { problem: { code: 'erased' } })
  assert.equal(await store.events.payload(stays), null)

  // The erasure has begun, and the promotion is done before the revision is erased.
  const early = await revised('r:2')
  let promoted = 0
  const erase: ErasureStore['erase'] = async (tenant, ids, at) => {
    if (ids.includes(early.revision)) promoted = ((await promote(early.revision)) as { id: number }).id
    return store.erasures.erase(tenant, ids, at)
  }
  assert.equal((await eraseWith({ ...store.erasures, erase }, early.event)).events, 3)
  assert.ok(promoted > 0)
  assert.equal(await store.events.payload(promoted), null)
})

everyStore(
  'a refusal that is stored while its reference is erased goes as well, one of another stays',
  async (store) => {
    const id = await append(store, message({ ref: 'r:1' }))
    const bodies = ['{"source_ref":"r:1" broken', '{"source_ref":"r:2" broken']
    let added = 0
    const erasures: ErasureStore = {
      ...store.erasures,
      erase: async (...args) => {
        const refusals = bodies.map((body) => refusal({ body: Buffer.from(body) }))
        await store.refusals.add(refusals, { maxCount: 9 })
        added += 1
        return store.erasures.erase(...args)
      },
    }
    const racing = new Erasures({ store: { ...store, erasures }, clock: { now: () => NOON + 1 } })
    const page = await racing.page(TENANT, { selector: { event: id }, dryRun: false, after: null })
    assert.deepEqual([page.messages, page.refusals, added], [1, 1, 1])
    const left = await store.refusals.list(TENANT, 1e9, 9)
    assert.deepEqual(
      left.map(({ body }) => Buffer.from(body).toString()),
      [bodies[1]],
    )
  },
)

everyDriver('the log names what an older state of the database still holds', async ({ open }) => {
  const store = await open('tool')
  const ids = [await append(store, message({ ref: 'r:1' })), await append(store, message({}))]
  const records = [
    { id: 1, ...TENANT, eventId: ids[0]!, erasedAt: NOON, digest: null, bytes: randomBytes(32) },
    { id: 2, ...OTHERS, eventId: ids[1]!, erasedAt: NOON, digest: null, bytes: randomBytes(32) },
  ]
  assert.deepEqual(await store.erasures.unerased(records), [], 'other bytes, another tenant')
  await store.erasures.erase(TENANT, ids, NOON + 3)
  const log = await store.erasures.log(0, 10)
  assert.deepEqual(
    log.map(({ eventId, erasedAt, digest }) => [eventId, erasedAt, digest?.byteLength ?? null]),
    [
      [ids[0], NOON + 3, 16],
      [ids[1], NOON + 3, null],
    ],
  )
  assert.deepEqual(await store.erasures.log(log[0]!.id, 10), [log[1]])
  assert.deepEqual(await store.erasures.unerased(log), [], 'they are erased')
})

everyDriver('a log applies to another database of the same key', async ({ url, open }) => {
  const store = await open('tool')
  const id = await append(store, message({ ref: 'r:1' }))
  const side = await openCopySide(url, { mustExist: true })
  const { dedupeKey } = await side.identity()
  await side.close()
  const event = (await store.events.find(id))!
  const bytes = createErasedDigest(dedupeKey)(event.sha256)
  const record = { id: 1, ...TENANT, eventId: id, erasedAt: NOON, digest: null, bytes }
  assert.deepEqual(await store.erasures.unerased([record]), [id], 'the digest of the model is that of the driver')
})

async function listed(store: Store, filter: Parameters<Store['inbox']['events']>[1]): Promise<number[]> {
  return (await store.inbox.events(TENANT, filter, null, 50)).events.map(({ event }) => event.id)
}
