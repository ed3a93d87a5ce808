// What has arrived on PostgreSQL and is not filed yet: it is read as if it were, the index passes over none of it, and filed it is the same.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { StoredEvent } from '../../src/model/event.ts'
import type { AppendItem } from '../../src/store/contract/append.ts'
import { StoreFailure } from '../../src/store/contract/failure.ts'
import type { Store } from '../../src/store/contract/store.ts'
import { openCopySide } from '../../src/store/open.ts'
import { withStore } from '../support/journal.ts'
import { ask as askCell } from '../support/postgres/ask.ts'
import { newPostgresDatabase, withClient } from '../support/postgres/databases.ts'
import { until } from '../support/until.ts'
import { idOf, item, NOON, TENANT } from './rows.ts'
import { drawSeed, random } from './seed.ts'
import { indexAll, outcomesOf, stepOnce } from './suite.ts'

const BATCH = 20
const newBatch = (fields: Partial<AppendItem> = {}): AppendItem[] => Array.from({ length: BATCH }, () => item(fields))

/** Two places that filing can be stopped at, by a lock that the test holds. */
const [BEFORE, AFTER] = [1001, 1002]
const stopAt = (place: number): string => `PERFORM pg_advisory_xact_lock_shared(${place});`

const withServer = <T>(url: string, work: (store: Store) => Promise<T>): Promise<T> => withStore(url, work, 'server')

/** A number that one statement answers with. */
const ask = async (url: string, text: string): Promise<number> => Number(await askCell(url, text))

const arrived = (url: string): Promise<number> =>
  ask(url, 'SELECT coalesce(sum(last_id - first_id + 1), 0) FROM intray.arrivals')

async function eventsOf(store: Store, ids: readonly number[]): Promise<(StoredEvent & { text: string })[]> {
  const found = ids.map(async (id) => {
    const event = await store.events.find(id)
    const payload = await store.events.payload(id)
    assert.ok(event && payload, `there is no event ${id}`)
    return { ...event, sha256: Uint8Array.from(event.sha256), text: Buffer.from(payload).toString('hex') }
  })
  return Promise.all(found)
}

test('what has arrived is found by its id, and is the same when it is filed', async (t) => {
  const url = await newPostgresDatabase()
  const { below, pick } = random(drawSeed(t))
  const texts = [
    '',
    'a',
    'Zoë "quoted" \\ / back',
    '日本語 🙂',
    `${'long '.repeat(200)}`,
    'tab\tline\nend',
    '{"json":[1,null]}',
  ]
  const text = (): string => pick(texts)
  const some = (): string | null => (below(3) === 0 ? null : pick(texts))
  const batch = Array.from({ length: 60 }, (_, n) =>
    item({
      companyId: 1 + below(3),
      accountId: below(2) === 0 ? 1 : 2 ** 53 - 1,
      receivedAt: below(2 ** 40),
      keyId: text(),
      scope: text(),
      route: text(),
      contentType: text(),
      requestId: text(),
      sourceRef: `ref ${n} ${text()}`,
      channelRef: some(),
      idempotencyKey: some(),
      traceparent: some(),
      userAgent: some(),
      remoteAddr: some(),
      payload: Buffer.from(Array.from({ length: below(3000) }, () => below(256))),
    }),
  )
  await withServer(url, async (store) => {
    const ids = (await store.journal.append(batch)).map(idOf)
    assert.equal(await arrived(url), 60)
    assert.equal(await ask(url, 'SELECT count(*) FROM intray.events'), 0)
    const before = await eventsOf(store, ids)
    for (const [n, event] of before.entries()) {
      const { mintedKey: _minted, payload, ...meta } = batch[n]!
      const { id, kind, revises, erasedAt, size, sha256: _sha256, text: bytes, ...told } = event
      assert.deepEqual(told, meta)
      assert.deepEqual([id, kind, revises, erasedAt, size], [ids[n], 'event', null, null, payload.byteLength])
      assert.equal(bytes, Buffer.from(payload).toString('hex'))
    }
    await indexAll(store, { maxRows: 7, maxBytes: 1 << 20 })
    assert.equal(await arrived(url), 0)
    assert.equal(await ask(url, 'SELECT count(*) FROM intray.events'), 60)
    assert.deepEqual(await eventsOf(store, ids), before)
  })
})

test('an id that nobody has, and one of another tenant, are not found among what has arrived', async () => {
  const url = await newPostgresDatabase()
  await withServer(url, async (store) => {
    const first = (await store.journal.append(newBatch())).map(idOf)
    await withClient(url, (client) => client.query("SELECT nextval('intray.event_ids') FROM generate_series(1, 5)"))
    const second = (await store.journal.append(newBatch())).map(idOf)
    const unused = [0, first.at(-1)! + 1, second[0]! - 1, second.at(-1)! + 1, 2 ** 53 - 1, -1]
    for (const id of unused) assert.equal(await store.events.find(id), null, `${id}`)
    const other = { ...TENANT, companyId: TENANT.companyId + 1 }
    assert.equal(await store.events.find(first[3]!, other), null)
    assert.equal(await store.events.payload(first[3]!, other), null)
    assert.ok(await store.events.payload(first[3]!, TENANT))
  })
})

test('a row holds messages of one company, and outcomes are those of the items in their order', async () => {
  const url = await newPostgresDatabase()
  const batch = Array.from({ length: 30 }, (_, n) => item({ companyId: 1 + (n % 3), body: `message ${n}` }))
  await withServer(url, async (store) => {
    const outcomes = await store.journal.append(batch)
    assert.equal(await ask(url, 'SELECT count(*) FROM intray.arrivals'), 3)
    for (const [n, event] of (await eventsOf(store, outcomes.map(idOf))).entries()) {
      assert.equal(event.companyId, batch[n]!.companyId)
      assert.equal(Buffer.from(event.text, 'hex').toString(), `message ${n}`)
    }
    const ids = outcomes.map(idOf)
    const own = ids.filter((_, n) => n % 3 === 1)
    assert.deepEqual(
      own,
      own.toSorted((a, b) => a - b),
      'in a company they keep their order',
    )
  })
})

test('a batch with a large message, or with a text that is not plain, goes to its places at once', async () => {
  const url = await newPostgresDatabase()
  const odd = [
    { payload: Buffer.alloc(64 * 1024 + 1) },
    { userAgent: 'nothing \0 here' },
    { requestId: 'half \ud83d a character' },
    { contentType: 'a bell \u0007' },
  ]
  for (const fields of odd) {
    await withServer(url, async (store) => {
      const ids = (await store.journal.append([...newBatch(), item(fields)])).map(idOf)
      assert.equal(await arrived(url), 0, JSON.stringify(Object.keys(fields)))
      assert.ok(await store.events.find(ids.at(-1)!))
    })
  }
  await withServer(url, async (store) => {
    const ids = (await store.journal.append([...newBatch(), item({ payload: Buffer.alloc(64 * 1024, 7) })])).map(idOf)
    assert.equal(await arrived(url), BATCH + 1, 'a little smaller, it lies with the others')
    assert.equal((await store.events.payload(ids.at(-1)!))!.byteLength, 64 * 1024)
  })
})

test('a batch whose ids are not in a row goes to its places at once', async () => {
  const url = await newPostgresDatabase()
  await withServer(url, async (store) => {
    await withClient(url, (client) => client.query('ALTER SEQUENCE intray.event_ids INCREMENT BY 2'))
    const batch = newBatch({ channelRef: 'page' })
    const outcomes = await store.journal.append(batch)
    assert.deepEqual(new Set(outcomesOf(outcomes)), new Set(['stored']))
    assert.equal(await arrived(url), 0)
    const [event] = await eventsOf(store, [idOf(outcomes[7]!)])
    assert.equal(event!.requestId, batch[7]!.requestId)
    assert.equal(event!.channelRef, 'page')
  })
})

test('re-sends and revisions of what is not filed are counted once it is', async () => {
  const url = await newPostgresDatabase()
  await withServer(url, async (store) => {
    const batch = Array.from({ length: 40 }, (_, n) => item({ sourceRef: `ref ${n}`, channelRef: 'page' }))
    const ids = (await store.journal.append(batch)).map(idOf)
    assert.ok((await ask(url, 'SELECT max(first_id) FROM intray.arrivals')) > 3, 'more than one row')
    const again = (n: number, body: string) => item({ sourceRef: `ref ${n}`, channelRef: 'page', body })
    const same = (n: number) => ({ ...item(), sourceRef: `ref ${n}`, channelRef: 'page', payload: batch[n]!.payload })
    // The second is of an event that is filed first, and waits behind the first all the same.
    const outcomes = []
    for (const sent of [same(35), same(0), again(36, 'other')]) outcomes.push(...(await store.journal.append([sent])))
    assert.deepEqual(outcomes, [
      { outcome: 'duplicate', id: ids[35] },
      { outcome: 'duplicate', id: ids[0] },
      { outcome: 'conflict', id: ids[36] },
    ])
    // The first step has the first of them filed, and neither of these.
    const first = await stepOnce(store, { maxRows: 3, maxBytes: 1 << 20 })
    assert.equal(first.indexed, 3)
    assert.equal(first.lag, 40 - 3 + 3)
    const [event, revised] = await Promise.all([store.events.find(ids[35]!), store.events.find(ids[36]!)])
    assert.equal(await store.events.repeats(event!), null)
    assert.equal((await indexAll(store, { maxRows: 3, maxBytes: 1 << 20 })).lag, 0)
    assert.equal((await store.events.repeats(event!))!.resends, 1)
    assert.equal((await store.events.repeats(revised!))!.revisions, 1)
    const counted = (await store.traffic.hours(TENANT, 0)).map(({ events, resends, revisions }) => [
      events,
      resends,
      revisions,
    ])
    assert.deepEqual(counted, [[40, 2, 1]])
  })
})

test('an index that knows of no arrivals cannot pass over them; one that does goes on', async () => {
  const url = await newPostgresDatabase()
  await withServer(url, async (store) => {
    const ids = (await store.journal.append(newBatch())).map(idOf)
    const move = (to: number) =>
      withClient(url, (client) => client.query('UPDATE intray.index_cursors SET position = $1', [to]))
    await assert.rejects(move(ids[0]!), /not filed yet/)
    await move(ids[0]! - 1)
    assert.equal((await indexAll(store)).lag, 0)
    await move(ids.at(-1)! + 1)
  })
})

test('a row that does not hold what it says stays where it is, and the index before it', async () => {
  const url = await newPostgresDatabase()
  await withServer(url, async (store) => {
    const whole = (await store.journal.append(newBatch())).map(idOf)
    await indexAll(store)
    await store.journal.append(newBatch())
    await withClient(url, (client) =>
      client.query(
        'UPDATE intray.arrivals SET payloads = payloads[2:], sha256s = sha256s[2:], metas = (metas::jsonb - 0)::text',
      ),
    )
    await assert.rejects(stepOnce(store), (error) => error instanceof StoreFailure && /is damaged/.test(error.message))
    assert.equal(await arrived(url), BATCH)
    assert.equal((await store.index.progress()).cursor, whole.at(-1))
    assert.equal(await ask(url, 'SELECT count(*) FROM intray.events'), BATCH)
  })
})

test('a step that ends within a row has all of it filed, and the next goes on from there', async () => {
  const url = await newPostgresDatabase()
  await withServer(url, async (store) => {
    await store.journal.append(newBatch())
    assert.equal(await ask(url, 'SELECT intray.file_arrivals(0, 10, 100)'), 10)
    assert.equal(await arrived(url), 0)
    assert.equal(await ask(url, `SELECT intray.file_arrivals(10, ${BATCH}, 100)`), BATCH)
    assert.equal((await indexAll(store)).cursor, BATCH)
  })
})

test('a rebuild that is asked for while some have arrived covers them too', async () => {
  const url = await newPostgresDatabase()
  await withServer(url, async (store) => {
    await store.journal.append(newBatch({ channelRef: 'page' }))
    await indexAll(store)
    await store.journal.append(newBatch({ channelRef: 'page' }))
    await store.index.requestRebuild()
    await indexAll(store, { maxRows: 7, maxBytes: 1 << 20 })
    assert.equal((await store.events.conversation(TENANT, 'page'))!.eventCount, 2 * BATCH)
  })
})

test('the oldest that nobody has seen is told of what has arrived', async () => {
  const url = await newPostgresDatabase()
  await withServer(url, async (store) => {
    assert.equal((await store.figures.read(NOON)).unseenSince, null)
    await store.journal.append(newBatch({ receivedAt: NOON - 5000 }))
    assert.equal((await store.figures.read(NOON)).unseenSince, NOON - 5000)
  })
})

test('a message is found at every moment while it is moved', async () => {
  const url = await newPostgresDatabase()
  await withServer(url, async (store) => {
    const ids: number[] = []
    for (let n = 0; n < 10; n++) ids.push(...(await store.journal.append(newBatch())).map(idOf))
    let moving = true
    const looking = [0, 1, 2].map(async () => {
      let looks = 0
      for (; moving; looks++) {
        const id = ids[Math.floor(Math.random() * ids.length)]!
        assert.ok(await store.events.payload(id), `event ${id}`)
      }
      return looks
    })
    await indexAll(store, { maxRows: 3, maxBytes: 1 << 20 })
    moving = false
    assert.ok((await Promise.all(looking)).every((looks) => looks > 0))
    assert.equal(await arrived(url), 0)
  })
})

test('what was acknowledged before a database is frozen in a burst is in its place, and nothing else', async () => {
  const url = await newPostgresDatabase()
  const stored: number[] = []
  await withServer(url, async (store) => {
    await store.journal.append(newBatch())
    const side = await openCopySide(url, { mustExist: true })
    const sending = [0, 1, 2].map(async () => {
      for (;;) {
        try {
          stored.push(...(await store.journal.append(newBatch())).map(idOf))
        } catch {
          return
        }
      }
    })
    try {
      await until('some are stored', async () => stored.length > 200)
      await side.freeze()
      await Promise.all(sending)
      assert.equal(await arrived(url), 0)
      const count = `SELECT count(*) FROM intray.events`
      assert.equal(await ask(url, count), stored.length + BATCH)
      assert.equal(await ask(url, `${count} WHERE id = ANY ('{${stored}}')`), stored.length)
    } finally {
      await side.release()
      await side.close()
    }
  })
})

test('a batch that commits while others are filed is not lost, wherever that is held up', async () => {
  const url = await newPostgresDatabase()
  // Commands hold no pen: their keys are put at once, and several may be under way.
  await withStore(url, async (slow) => {
    await withClient(url, async (client) => {
      const sourceOf = async (name: string): Promise<string> =>
        (await client.query(`SELECT pg_get_functiondef('intray.${name}'::regproc) AS source`)).rows[0].source
      const append = await sourceOf('append_arrivals')
      const held = append.replace('-- Keys in the order', 'PERFORM pg_advisory_xact_lock(total);\n-- Keys in the order')
      assert.notEqual(held, append)
      await client.query(held)
      // Filing stops before it looks again at what it is about to move, and when it has put it down.
      const file = await sourceOf('file_arrivals')
      const stopped = file.replace('IF last IS NOT NULL THEN', `IF last IS NOT NULL THEN ${stopAt(BEFORE)}`)
      assert.notEqual(stopped, file)
      await client.query(stopped)
      await client.query(
        `CREATE FUNCTION public.stop() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ${stopAt(AFTER)} RETURN NULL; END $$`,
      )
      await client.query('CREATE TRIGGER stop AFTER INSERT ON intray.events EXECUTE FUNCTION public.stop()')
    })
    await withStore(url, async (quick) => {
      for (const [size, place] of [
        [9, BEFORE],
        [10, AFTER],
      ] as const) {
        await withClient(url, async (gate) => {
          await gate.query(`SELECT pg_advisory_lock(${size}), pg_advisory_lock(${place})`)
          const waiting = (count: number) => async () =>
            (await ask(url, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")) >= count
          const early = slow.journal.append(newBatch().slice(0, size))
          await until('its ids are drawn', waiting(1))
          const ids = (await quick.journal.append(newBatch())).map(idOf)
          const filing = ask(url, `SELECT intray.file_arrivals(0, ${ids.at(-1)}, 1000)`)
          await until('filing has begun', waiting(2))
          await gate.query(`SELECT pg_advisory_unlock(${size})`)
          ids.push(...(await early).map(idOf))
          await gate.query('SELECT pg_advisory_unlock_all()')
          await filing
          for (const id of ids) assert.ok(await quick.events.find(id), `event ${id}`)
        })
      }
    })
  })
})

test('a database that is frozen has nothing left to be filed', async () => {
  const url = await newPostgresDatabase()
  await withServer(url, async (store) => {
    for (let n = 0; n < 3; n++) await store.journal.append(newBatch())
  })
  const side = await openCopySide(url, { mustExist: true })
  try {
    const before = await side.filedThrough()
    const waiting = []
    for await (const { event, payload } of side.arrivals()) waiting.push([event.id, payload.byteLength, event.size])
    assert.equal(before, 0)
    assert.deepEqual(
      waiting.map(([id]) => id),
      Array.from({ length: 3 * BATCH }, (_, n) => n + 1),
    )
    assert.ok(waiting.every(([, bytes, size]) => bytes === size))
    await side.freeze()
    assert.equal(await arrived(url), 0)
    assert.equal(await ask(url, 'SELECT count(*) FROM intray.events'), 3 * BATCH)
    assert.equal(await side.filedThrough(), 3 * BATCH)
  } finally {
    await side.release()
    await side.close()
  }
})
