// Conformance: append. Every promise of src/store/contract/append.ts.

import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { newUuid } from '../../src/runtime/id.ts'
import type { AppendItem } from '../../src/store/contract/append.ts'
import { backDoorOf } from './back-door.ts'
import { badItem, type ItemFields, idOf, item, NOON, TENANT } from './rows.ts'
import { append, everyDriver, everyStore, indexAll, outcomesOf, payloadText } from './suite.ts'

everyStore('items of one call get ids in the order given, each above all before', async (store) => {
  const texts = Array.from({ length: 50 }, (_, n) => `{"n":${n}}`)
  const first = await store.journal.append(texts.slice(0, 20).map((body) => item({ body })))
  const second = await store.journal.append(texts.slice(20).map((body) => item({ body })))
  const ids = [...first, ...second].map(idOf)
  assert.deepEqual(
    ids,
    ids.toSorted((a, b) => a - b),
  )
  assert.equal(new Set(ids).size, texts.length)
  for (const [n, id] of ids.entries()) assert.equal(await payloadText(store, id), texts[n])
})

everyStore('an append of nothing answers nothing', async (store) => {
  assert.deepEqual(await store.journal.append([]), [])
  assert.equal(await store.events.watermark(), 0)
})

everyStore('everything that is known of a message at arrival is kept', async (store) => {
  const sent = item({
    receivedAt: NOON + 123,
    keyId: 'k3Y0000001',
    scope: 'bot',
    route: '/api/inbox',
    sourceRef: 'form-9',
    channelRef: 'Contact page ✉',
    idempotencyKey: 'idem-1',
    contentType: 'application/json; charset=utf-8',
    origin: 'test',
    traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01',
    userAgent: 'WordPress/6.6; https://example.org',
    remoteAddr: '2001:db8::1',
  })
  const [outcome] = await store.journal.append([sent])
  const found = await store.events.find(idOf(outcome))
  assert.ok(found)
  const { payload, mintedKey: _, ...meta } = sent
  const { sha256, ...rest } = found
  assert.deepEqual(rest, {
    ...meta,
    id: idOf(outcome),
    kind: 'event',
    revises: null,
    size: payload.byteLength,
    erasedAt: null,
  })
  assert.equal(Buffer.from(sha256).toString('hex'), createHash('sha256').update(payload).digest('hex'))
})

everyStore('bytes come back as they were sent: none, every value, a mebibyte', async (store) => {
  const payloads = [
    new Uint8Array(0),
    Uint8Array.from({ length: 256 }, (_, byte) => byte),
    new Uint8Array(1 << 20).map((_, index) => index % 251),
    Buffer.from('\uFEFF{"a":12345678901234567890,"a":"\\ud800\\u0000", "é":"\u{1F600}"}\n'),
    new Uint8Array(0),
  ]
  const outcomes = await store.journal.append(payloads.map((payload) => item({ payload })))
  for (const [n, outcome] of outcomes.entries()) {
    const kept = await store.events.payload(idOf(outcome))
    assert.ok(kept, `payload ${n} is there`)
    assert.ok(Buffer.from(kept).equals(payloads[n]!), `payload ${n} is unaltered`)
  }
  const [alone] = await store.journal.append([item({ payload: new Uint8Array(0) })])
  assert.equal((await store.events.payload(idOf(alone)))?.byteLength, 0)
})

everyStore('the bytes that were handed over still belong to the caller', async (store) => {
  const whole = Buffer.from('....{"part":true}....')
  const sent = item({ payload: whole.subarray(4, -4) })
  const pending = store.journal.append([sent])
  assert.equal(whole.toString(), '....{"part":true}....')
  whole.fill('x')
  assert.equal(await payloadText(store, idOf((await pending)[0])), '{"part":true}')
})

everyStore('equal items in one call are one event and duplicates of it', async (store, { url, driver }) => {
  const outcomes = await store.journal.append([
    item({ sourceRef: 'a', body: 'A' }),
    item({ sourceRef: 'b', body: 'B' }),
    item({ sourceRef: 'a', body: 'A' }),
    item({ sourceRef: 'a', body: 'A' }),
  ])
  assert.deepEqual(outcomesOf(outcomes), ['stored', 'stored', 'duplicate', 'duplicate'])
  assert.equal(idOf(outcomes[2]), idOf(outcomes[0]))
  assert.equal(idOf(outcomes[3]), idOf(outcomes[0]))
  assert.deepEqual(await backDoorOf(driver).countJournal(url), { events: 2, resends: 2, dedupe: 2 })
})

everyStore('other bytes under one source_ref in one call are a conflict, kept once', async (store, { url, driver }) => {
  const outcomes = await store.journal.append(
    ['A', 'B', 'A', 'B', 'C'].map((body) => item({ sourceRef: 'form-1', body })),
  )
  assert.deepEqual(outcomesOf(outcomes), ['stored', 'conflict', 'duplicate', 'conflict', 'conflict'])
  const id = idOf(outcomes[0])
  for (const outcome of outcomes) assert.equal(idOf(outcome), id)
  assert.equal(await payloadText(store, id), 'A')
  const revisions = await store.events.revisions(id, 0, 10)
  assert.deepEqual(await Promise.all(revisions.map((row) => payloadText(store, row.id))), ['B', 'C'])
  assert.deepEqual(await backDoorOf(driver).countJournal(url), { events: 3, resends: 2, dedupe: 1 })
})

everyStore('a re-send with the bytes of the first is a duplicate and adds no event', async (store, { url, driver }) => {
  const id = await append(store, { sourceRef: 'form-1', body: 'A' })
  for (let n = 0; n < 3; n++) {
    const [again] = await store.journal.append([item({ sourceRef: 'form-1', body: 'A', keyId: 'other00000' })])
    assert.deepEqual(again, { outcome: 'duplicate', id })
  }
  assert.deepEqual(await backDoorOf(driver).countJournal(url), { events: 1, resends: 3, dedupe: 1 })
})

everyStore('a re-send with other bytes becomes a revision with a row of its own', async (store) => {
  const id = await append(store, { sourceRef: 'form-1', channelRef: 'page', body: 'A' })
  const [changed] = await store.journal.append([
    item({ sourceRef: 'form-1', channelRef: 'other page', body: 'B', receivedAt: NOON + 5, route: '/api/inbox' }),
  ])
  assert.deepEqual(changed, { outcome: 'conflict', id })
  const [revision, ...more] = await store.events.revisions(id, 0, 10)
  assert.deepEqual(more, [])
  assert.ok(revision && revision.id > id)
  assert.equal(revision.kind, 'revision')
  assert.equal(revision.revises, id)
  assert.equal(revision.receivedAt, NOON + 5)
  assert.equal(revision.route, '/api/inbox')
  assert.equal(revision.channelRef, 'other page')
  assert.equal(await payloadText(store, revision.id), 'B')
  assert.equal(await payloadText(store, id), 'A')
})

everyStore('a revision that is sent again adds no row', async (store, { url, driver }) => {
  const id = await append(store, { sourceRef: 'form-1', body: 'A' })
  await store.journal.append([item({ sourceRef: 'form-1', body: 'B' })])
  const [again] = await store.journal.append([item({ sourceRef: 'form-1', body: 'B' })])
  assert.deepEqual(again, { outcome: 'conflict', id })
  assert.equal((await store.events.revisions(id, 0, 10)).length, 1)
  assert.deepEqual(await backDoorOf(driver).countJournal(url), { events: 2, resends: 1, dedupe: 1 })
})

everyStore(
  'a thousand different bodies under one source_ref: one event, 999 revisions, every byte kept',
  async (store) => {
    const bodies = Array.from({ length: 1000 }, (_, n) => JSON.stringify({ source_ref: 'same', n }))
    const outcomes = await store.journal.append(bodies.map((body) => item({ sourceRef: 'same', body })))
    const id = idOf(outcomes[0])
    assert.deepEqual(outcomesOf(outcomes), ['stored', ...new Array<string>(999).fill('conflict')])
    const revisions = await store.events.revisions(id, 0, 2000)
    assert.equal(revisions.length, 999)
    for (const [n, row] of revisions.entries()) assert.equal(await payloadText(store, row.id), bodies[n + 1])
  },
)

const IDENTITIES: Record<string, ItemFields> = {
  'with a source_ref': { sourceRef: 'form-1' },
  'with an Idempotency-Key': { idempotencyKey: 'key-1' },
  'with both': { sourceRef: 'form-1', idempotencyKey: 'key-1' },
  'with neither': {},
}
for (const [name, identity] of Object.entries(IDENTITIES)) {
  everyStore(`the same minted key again, ${name}, is the same append again`, async (store, { url, driver }) => {
    const sent = item({ ...identity, channelRef: 'page' })
    const id = idOf((await store.journal.append([sent]))[0])
    const before = await backDoorOf(driver).countJournal(url)
    assert.deepEqual(await store.journal.append([sent]), [{ outcome: 'stored', id }])
    const [, ...retries] = await store.journal.append([item(), sent, sent])
    assert.deepEqual(retries, [
      { outcome: 'stored', id },
      { outcome: 'stored', id },
    ])
    const after = await backDoorOf(driver).countJournal(url)
    assert.deepEqual(after, { events: before.events + 1, resends: before.resends, dedupe: before.dedupe + 1 })
    await indexAll(store)
    const event = await store.events.find(id)
    assert.equal(await store.events.repeats(event!), null)
  })
}

everyDriver('the same minted key again after a restart is the same append again', async (database) => {
  const sent = [item({ sourceRef: 'form-1' }), item({ idempotencyKey: 'key-1' }), item()]
  const first = await database.open('server')
  const outcomes = await first.journal.append(sent)
  await first.close()
  const second = await database.open('server')
  assert.deepEqual(await second.journal.append(sent), outcomes)
  assert.deepEqual(await backDoorOf(database.driver).countJournal(database.url), { events: 3, resends: 0, dedupe: 3 })
})

everyStore('the same minted key of a re-send again keeps its bytes once', async (store, { url, driver }) => {
  const id = await append(store, { sourceRef: 'form-1', body: 'A' })
  const resend = item({ sourceRef: 'form-1', body: 'A' })
  const revision = item({ sourceRef: 'form-1', body: 'B' })
  await store.journal.append([resend, revision])
  const before = await backDoorOf(driver).countJournal(url)
  const again = await store.journal.append([resend, revision])
  assert.deepEqual(again.map(idOf), [id, id])
  assert.equal((await backDoorOf(driver).countJournal(url)).events, before.events)
})

everyStore('a source_ref is one event inside its tenant only', async (store) => {
  const tenants = [
    TENANT,
    { accountId: 7, companyId: 43 },
    { accountId: 8, companyId: 42 },
    { accountId: 42, companyId: 7 },
    // Digits that would run together without a length before each part.
    { accountId: 74, companyId: 2 },
    { accountId: 742, companyId: 0 },
  ]
  for (const identity of [{ sourceRef: 'form-1' }, { idempotencyKey: 'form-1' }]) {
    const ids = []
    for (const tenant of tenants) ids.push(await append(store, { ...tenant, ...identity, body: 'A' }))
    assert.equal(new Set(ids).size, tenants.length)
    for (const [n, tenant] of tenants.entries()) {
      const [again] = await store.journal.append([item({ ...tenant, ...identity, body: 'A' })])
      assert.deepEqual(again, { outcome: 'duplicate', id: ids[n] })
    }
  }
})

everyStore('a source_ref is compared byte for byte', async (store) => {
  const refs = [
    'form-1',
    'Form-1',
    'form-1 ',
    ' form-1',
    'é',
    'e\u0301',
    'É',
    'ﬁ',
    'fi',
    '1',
    '01',
    '1.0',
    'ß',
    'ss',
    '0',
  ]
  const ids = []
  for (const sourceRef of refs) ids.push(await append(store, { sourceRef, body: 'A' }))
  assert.equal(new Set(ids).size, refs.length)
  const outcomes = await store.journal.append(refs.map((sourceRef) => item({ sourceRef, body: 'A' })))
  assert.deepEqual(
    outcomes,
    ids.map((id) => ({ outcome: 'duplicate', id })),
  )
})

everyStore('the longest source_ref there is works like any other', async (store) => {
  const long = '\u{1F600}'.repeat(256)
  const id = await append(store, { sourceRef: long, body: 'A' })
  await append(store, { sourceRef: `${long.slice(0, -2)}\u{1F601}`, body: 'A' })
  assert.deepEqual(await store.journal.append([item({ sourceRef: long, body: 'A' })]), [{ outcome: 'duplicate', id }])
  assert.equal((await store.events.find(id))?.sourceRef, long)
})

everyStore('an Idempotency-Key is one event where there is no source_ref', async (store) => {
  const id = await append(store, { idempotencyKey: 'key-1', body: 'A' })
  assert.deepEqual(await store.journal.append([item({ idempotencyKey: 'key-1', body: 'A' })]), [
    { outcome: 'duplicate', id },
  ])
  assert.deepEqual(await store.journal.append([item({ idempotencyKey: 'key-1', body: 'B' })]), [
    { outcome: 'conflict', id },
  ])
  assert.equal((await store.events.revisions(id, 0, 10)).length, 1)
})

everyStore('a source_ref and an Idempotency-Key with the same text are two messages', async (store) => {
  const byRef = await append(store, { sourceRef: 'x', body: 'A' })
  const byKey = await append(store, { idempotencyKey: 'x', body: 'A' })
  assert.notEqual(byRef, byKey)
})

everyStore('beside a source_ref an Idempotency-Key decides nothing', async (store) => {
  const id = await append(store, { sourceRef: 'a', idempotencyKey: 'k', body: 'A' })
  const other = await append(store, { sourceRef: 'b', idempotencyKey: 'k', body: 'A' })
  const keyed = await append(store, { idempotencyKey: 'k', body: 'A' })
  assert.equal(new Set([id, other, keyed]).size, 3)
  assert.deepEqual(await store.journal.append([item({ sourceRef: 'a', idempotencyKey: 'other', body: 'A' })]), [
    { outcome: 'duplicate', id },
  ])
})

everyStore('messages with neither are never the same message, whatever their bytes', async (store) => {
  const outcomes = await store.journal.append(Array.from({ length: 100 }, () => item({ body: 'A' })))
  assert.deepEqual(new Set(outcomesOf(outcomes)), new Set(['stored']))
  assert.equal(new Set(outcomes.map(idOf)).size, 100)
})

const PLACES = { first: 0, 'in the middle': 2, last: 4 } as const
for (const [place, at] of Object.entries(PLACES)) {
  everyStore(`an item that cannot be stored fails alone: ${place}`, async (store) => {
    const items = Array.from({ length: 5 }, (_, n) => item({ sourceRef: `form-${n}`, body: `${n}` }))
    items[at] = badItem({ sourceRef: `form-${at}`, body: `${at}` })
    const outcomes = await store.journal.append(items)
    for (const [n, outcome] of outcomes.entries()) {
      if (n === at) {
        assert.equal(outcome.outcome, 'failed')
        assert.ok('reason' in outcome && outcome.reason.length > 0)
      } else {
        assert.equal(outcome.outcome, 'stored')
        assert.equal(await payloadText(store, idOf(outcome)), `${n}`)
      }
    }
    // It left nothing behind: the same source_ref is free.
    await append(store, { sourceRef: `form-${at}`, body: 'another' })
  })
}

everyStore('beside an item that fails, duplicates, conflicts and retries are what they always are', async (store) => {
  const retried = item({ sourceRef: 'first', body: 'A' })
  const id = idOf((await store.journal.append([retried]))[0])
  const outcomes = await store.journal.append([
    item({ sourceRef: 'first', body: 'A' }),
    badItem({ sourceRef: 'first', body: 'never' }),
    item({ sourceRef: 'first', body: 'B' }),
    badItem(),
    retried,
    item({ sourceRef: 'second', body: 'A' }),
    item({ sourceRef: 'second', body: 'A' }),
  ])
  assert.deepEqual(outcomesOf(outcomes), ['duplicate', 'failed', 'conflict', 'failed', 'stored', 'stored', 'duplicate'])
  for (const n of [0, 2, 4]) assert.equal(idOf(outcomes[n]), id)
  const revisions = await store.events.revisions(id, 0, 10)
  assert.deepEqual(await Promise.all(revisions.map((row) => payloadText(store, row.id))), ['B'])
})

everyStore('a call in which every item fails answers each, and the store goes on', async (store, { url, driver }) => {
  const ways: Partial<Record<keyof AppendItem, unknown>>[] = [
    { receivedAt: 'soon' },
    { accountId: null },
    { companyId: 'forty-two' },
    { contentType: null },
    { receivedAt: 1.5 },
    { mintedKey: null },
    { mintedKey: 'zz' },
    { sourceRef: 5 },
    { idempotencyKey: false },
  ]
  const outcomes = await store.journal.append(ways.map((way) => item(way as ItemFields)))
  assert.deepEqual(
    outcomesOf(outcomes),
    ways.map(() => 'failed'),
  )
  assert.deepEqual(await backDoorOf(driver).countJournal(url), { events: 0, resends: 0, dedupe: 0 })
  await append(store)
})

everyStore('nothing that other messages share is touched: what is derived waits for the indexer', async (store) => {
  const id = await append(store, { sourceRef: 'a', channelRef: 'page', body: 'A' })
  await store.journal.append([item({ sourceRef: 'a', channelRef: 'page', body: 'B' })])
  const event = await store.events.find(id)
  assert.equal(await store.events.conversation(TENANT, 'page'), null)
  assert.equal(await store.events.indexEntry(event!), null)
  assert.equal(await store.events.repeats(event!), null)
})

everyDriver('what was stored outlives the store, in either role, and stays what it was', async (database) => {
  const kept = new Map<number, string>()
  const sent: AppendItem[] = []
  let highest = 0
  for (const [round, role] of (['server', 'tool', 'server', 'tool', 'server'] as const).entries()) {
    const store = await database.open(role)
    for (const [id, body] of kept) assert.equal(await payloadText(store, id), body)
    const duplicates = await store.journal.append(sent.map((one) => ({ ...one, mintedKey: newUuid() })))
    assert.deepEqual(
      duplicates,
      Array.from(kept.keys(), (id) => ({ outcome: 'duplicate', id })),
    )
    const items = ['A', 'B'].map((body) => item({ sourceRef: `${round}-${body}`, body: `${round}${body}` }))
    for (const [n, outcome] of (await store.journal.append(items)).entries()) {
      assert.equal(outcome.outcome, 'stored')
      assert.ok(idOf(outcome) > highest, 'an id is never used again')
      highest = idOf(outcome)
      kept.set(highest, Buffer.from(items[n]!.payload).toString())
      sent.push(items[n]!)
    }
    await store.close()
  }
})

everyStore('an id that failed, conflicted or was rolled back is not given out twice', async (store) => {
  const seen = new Set<number>()
  for (let round = 0; round < 5; round++) {
    const outcomes = await store.journal.append([
      item({ sourceRef: `${round}` }),
      badItem(),
      item({ sourceRef: `${round}`, body: 'B' }),
      item(),
    ])
    for (const outcome of outcomes) {
      if (outcome.outcome !== 'stored') continue
      assert.ok(!seen.has(outcome.id))
      seen.add(outcome.id)
    }
    for (const row of await store.events.revisions(idOf(outcomes[0]), 0, 10)) {
      assert.ok(!seen.has(row.id))
      seen.add(row.id)
    }
  }
})

everyStore('calls in flight at once: one event for each source_ref, and everybody gets its id', async (store) => {
  const calls = Array.from({ length: 60 }, (_, call) =>
    store.journal.append(
      Array.from({ length: 10 }, (_, n) => item({ sourceRef: `ref-${(call + n) % 20}`, body: 'A' })),
    ),
  )
  const ids = new Map<string, Set<number>>()
  let stored = 0
  for (const [call, outcomes] of (await Promise.all(calls)).entries()) {
    for (const [n, outcome] of outcomes.entries()) {
      const ref = `ref-${(call + n) % 20}`
      ids.set(ref, (ids.get(ref) ?? new Set()).add(idOf(outcome)))
      if (outcome.outcome === 'stored') stored += 1
      else assert.equal(outcome.outcome, 'duplicate')
    }
  }
  assert.equal(stored, 20)
  for (const [ref, found] of ids) assert.equal(found.size, 1, `${ref} has one id`)
})

everyStore('ids ascend inside a call, and with one writer in the order of the calls', async (store) => {
  const calls = Array.from({ length: 40 }, () => store.journal.append([item(), item()]))
  const ids = (await Promise.all(calls)).map((outcomes) => outcomes.map(idOf))
  for (const own of store.traits.concurrentWriters ? ids : [ids.flat()]) {
    assert.deepEqual(
      own,
      own.toSorted((a, b) => a - b),
    )
  }
  assert.equal(new Set(ids.flat()).size, 80)
})

everyStore(
  'a row that the database itself refuses fails alone, and can be stored once it is not',
  async (store, database) => {
    const backDoor = backDoorOf(database.driver)
    const known = await append(store, { sourceRef: 'known', body: { n: 0 } })
    await backDoor.refuseEvent(database.url, 'bad')
    const bad = item({ sourceRef: 'bad' })
    const [first, second] = await Promise.all([
      store.journal.append([
        item({ sourceRef: 'one' }),
        bad,
        item({ sourceRef: 'known', body: { n: 0 } }),
        item({ sourceRef: 'known', body: { n: 1 } }),
        item({ sourceRef: 'two' }),
      ]),
      store.journal.append([item({ sourceRef: 'three' }), item({ sourceRef: 'bad' }), item()]),
    ])
    assert.deepEqual(outcomesOf(first), ['stored', 'failed', 'duplicate', 'conflict', 'stored'])
    assert.deepEqual(outcomesOf(second), ['stored', 'failed', 'stored'])
    assert.deepEqual([idOf(first[2]), idOf(first[3])], [known, known])
    // A key without its event would take the next message with that source_ref for a re-send.
    assert.deepEqual(await backDoor.countJournal(database.url), { events: 6, resends: 1, dedupe: 5 })
    await backDoor.refuseNothing(database.url)
    assert.deepEqual(outcomesOf(await store.journal.append([bad])), ['stored'])
    const ids = [...first, ...second].filter(({ outcome }) => outcome === 'stored').map(idOf)
    assert.equal(new Set(ids).size, 4)
    await indexAll(store)
    assert.equal((await store.index.progress()).lag, 0)
  },
)

everyStore('a ref with U+0000 or half a character fails alone: no two refs become one', async (store) => {
  const refs = ['a\0b', 'x\ud800', 'x\udfff', 'fine 💌']
  const outcomes = await store.journal.append(refs.map((sourceRef) => item({ sourceRef })))
  assert.deepEqual(outcomesOf(outcomes), ['failed', 'failed', 'failed', 'stored'])
})
