// The pen on PostgreSQL: the keys of a burst come later where one node writes alone, and every message is kept once all the same.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { AppendItem } from '../../src/store/contract/append.ts'
import type { Store } from '../../src/store/contract/store.ts'
import { openCopySide } from '../../src/store/open.ts'
import { parseAddress } from '../../src/store/postgres/address.ts'
import { fileSome, takeTurn } from '../../src/store/postgres/filing.ts'
import { Pool } from '../../src/store/postgres/pool.ts'
import { withStore } from '../support/journal.ts'
import { ask, assertKeys } from '../support/postgres/ask.ts'
import { connect, newPostgresDatabase, withClient } from '../support/postgres/databases.ts'
import { until } from '../support/until.ts'
import { idOf, item } from './rows.ts'
import { indexAll, outcomesOf } from './suite.ts'

const BATCH = 20
let made = 0
const fresh = (count = BATCH): AppendItem[] => Array.from({ length: count }, () => item({ sourceRef: `ref ${made++}` }))
/** The same message, sent again. */
const like = (sent: AppendItem): AppendItem => ({ ...item(), sourceRef: sent.sourceRef, payload: sent.payload })

/** Somebody wants to take the pen away. */
const isWaitedFor = (url: string): Promise<boolean> =>
  ask(
    url,
    `SELECT EXISTS (SELECT FROM pg_locks l JOIN pg_database d ON d.oid = l.database
      WHERE d.datname = current_database() AND l.locktype = 'advisory' AND l.objid = 14 AND NOT l.granted)`,
  )

/** Of somebody else: with the first batch the pen is asked for, and when the keys are read, those of the next ones come late. */
const WARM = { companyId: 9 }

const withServer = <T>(url: string, work: (store: Store) => Promise<T>): Promise<T> =>
  withStore(
    url,
    async (store) => {
      const isLate = async (): Promise<boolean> => {
        const ids = (await store.journal.append(Array.from({ length: BATCH }, () => item(WARM)))).map(idOf)
        return Number(await ask(url, `SELECT count(*) FROM intray.dedupe WHERE event_id = ${ids[0]}`)) === 0
      }
      await until('keys come late', isLate)
      return work(store)
    },
    'server',
  )

const keysPut = async (url: string): Promise<number> =>
  Number(await ask(url, `SELECT count(*) FROM intray.dedupe WHERE company_id <> ${WARM.companyId}`))
const holderOf = (url: string): Promise<string | null> => ask(url, 'SELECT holder FROM intray.pen')
const keysLate = async (url: string): Promise<number> =>
  Number(
    await ask(
      url,
      `SELECT count(*) FROM intray.arrivals a, LATERAL intray.late_keys(a) k WHERE k.company_id <> ${WARM.companyId}`,
    ),
  )

test('keys of a burst come with the filing; one that is sent again meanwhile has all of them put at once', async () => {
  const url = await newPostgresDatabase()
  await withServer(url, async (store) => {
    const [first, second, third] = [fresh(), fresh(), fresh()]
    await store.journal.append(first)
    assert.equal((await indexAll(store)).lag, 0)
    assert.deepEqual([await keysPut(url), await keysLate(url)], [BATCH, 0])
    const ids = (await store.journal.append(second)).map(idOf)
    await store.journal.append(third)
    assert.deepEqual([await keysPut(url), await keysLate(url)], [BATCH, 2 * BATCH])
    const other = { ...like(second[4]!), payload: Buffer.from('other') }
    assert.deepEqual(await store.journal.append([like(second[3]!), other]), [
      { outcome: 'duplicate', id: ids[3] },
      { outcome: 'conflict', id: ids[4] },
    ])
    assert.deepEqual([await holderOf(url), await keysPut(url), await keysLate(url)], [null, 3 * BATCH, 0])
    assert.deepEqual(
      await store.journal.append(second),
      ids.map((id) => ({ outcome: 'stored', id })),
      'its own retry',
    )
    for (const sent of [first, third]) {
      assert.deepEqual(new Set(outcomesOf(await store.journal.append(sent.map(like)))), new Set(['duplicate']))
    }
    assert.equal((await indexAll(store)).lag, 0)
  })
  await assertKeys(url)
})

test('under the pen a message that was filed before is found, and the others of its batch are stored', async () => {
  const url = await newPostgresDatabase()
  const old = fresh()
  const ids = await withServer(url, async (store) => {
    const stored = (await store.journal.append(old)).map(idOf)
    await indexAll(store)
    return stored
  })
  await withServer(url, async (store) => {
    const [outcome, ...others] = await store.journal.append([like(old[7]!), ...fresh()])
    assert.deepEqual(outcome, { outcome: 'duplicate', id: ids[7] })
    assert.deepEqual(new Set(outcomesOf(others)), new Set(['stored']))
    assert.notEqual(await holderOf(url), null, 'that costs nobody the pen')
    await indexAll(store)
  })
  await assertKeys(url)
})

test('batches with the same keys that are sent together are stored once', async () => {
  const url = await newPostgresDatabase()
  await withServer(url, async (store) => {
    const batch = fresh()
    const all = await Promise.all([1, 2, 3, 4].map(() => store.journal.append(batch.map(like))))
    const twice = await store.journal.append([...batch.map(like), ...fresh(), ...batch.map(like)])
    const ids = all[0]!.map(idOf)
    for (const outcomes of all) assert.deepEqual(outcomes.map(idOf), ids)
    assert.deepEqual(twice.slice(0, BATCH).map(idOf), ids)
    assert.equal(all.flat().filter(({ outcome }) => outcome === 'stored').length, BATCH)
    await indexAll(store)
  })
  await assertKeys(url)
})

test('another node that stores has all keys put first, and takes the pen away', async () => {
  const url = await newPostgresDatabase()
  const batch = fresh()
  await withServer(url, async (a) => {
    const ids = (await a.journal.append(batch)).map(idOf)
    assert.notEqual(await holderOf(url), null)
    await withStore(url, async (b) => {
      const again = await b.journal.append(batch.toReversed().map(like))
      assert.deepEqual(again.map(idOf), ids.toReversed())
      assert.deepEqual(new Set(outcomesOf(again)), new Set(['duplicate']))
      assert.deepEqual([await holderOf(url), await keysPut(url)], [null, BATCH])
      // Neither knows of the other's, but by the keys.
      const next = fresh()
      const stored = (await a.journal.append(next)).map(idOf)
      assert.equal(await keysPut(url), 2 * BATCH, 'put at once')
      assert.deepEqual((await b.journal.append(next.map(like))).map(idOf), stored)
      await indexAll(b)
    })
  })
  await assertKeys(url)
})

test('whoever knows of no pen ends it with the first key it adds, a node of an older version too', async () => {
  const url = await newPostgresDatabase()
  await withServer(url, async (store) => {
    await store.journal.append(fresh())
    await withClient(url, (client) =>
      client.query("INSERT INTO intray.dedupe VALUES (42, 1000, '\\x00', '\\x00', '\\x00')"),
    )
    assert.deepEqual([await holderOf(url), await keysPut(url), await keysLate(url)], [null, BATCH + 1, 0])
  })
})

test('a node that is gone leaves its keys to the next one', async () => {
  const url = await newPostgresDatabase()
  const batch = fresh()
  const ids = await withServer(url, async (store) => (await store.journal.append(batch)).map(idOf))
  assert.deepEqual([await keysPut(url), await keysLate(url)], [0, BATCH])
  await withServer(url, async (store) => {
    const again = await store.journal.append([...batch.map(like), ...fresh()])
    assert.deepEqual(again.slice(0, BATCH).map(idOf), ids)
    await store.journal.append(fresh())
    await indexAll(store)
  })
  await assertKeys(url)
})

test('where several nodes are alive nobody gets the pen', async () => {
  const url = await newPostgresDatabase()
  const work = async (store: Store): Promise<void> => {
    for (const nodeId of ['a', 'b']) await store.nodes.report({ nodeId, tokenGeneration: 1 })
    await store.journal.append(fresh())
    assert.deepEqual([await holderOf(url), await keysPut(url)], [null, BATCH])
  }
  await withStore(url, work, 'server')
})

test('nobody gets the pen while somebody else who adds keys is under way', async () => {
  const url = await newPostgresDatabase()
  const work = async (store: Store): Promise<void> => {
    const other = await connect(url)
    await other.query("BEGIN; INSERT INTO intray.dedupe VALUES (42, 1000, '\\x00', '\\x00', '\\x00')")
    await store.journal.append(fresh())
    assert.equal(await holderOf(url), null)
    await other.query('COMMIT')
    await other.end()
  }
  await withStore(url, work, 'server')
})

test('who takes the pen away waits for a filing that is under way', async () => {
  const url = await newPostgresDatabase()
  const batch = fresh()
  await withServer(url, async (store) => {
    await indexAll(store)
    const ids = (await store.journal.append(batch)).map(idOf)
    const filing = await connect(url)
    await filing.query('BEGIN')
    await filing.query('SELECT intray.file_arrivals($1, $2, 1000)', [ids[0]! - 1, ids.at(-1)!])
    const again = withStore(url, (other) => other.journal.append(batch.map(like)))
    await until('it waits', () => isWaitedFor(url))
    await filing.query('COMMIT')
    await filing.end()
    assert.deepEqual((await again).map(idOf), ids)
    assert.equal(await keysPut(url), BATCH)
  })
})

test('a server that took over, and is at an earlier moment, is not written to under the pen of the one before', async () => {
  const url = await newPostgresDatabase()
  await withServer(url, async (store) => {
    await indexAll(store)
    const batch = fresh()
    const ids = (await store.journal.append(batch)).map(idOf)
    await withClient(url, (client) => client.query("UPDATE intray.pen SET holder = holder || '1'"))
    await store.journal.append(fresh())
    assert.deepEqual([await holderOf(url), await keysPut(url), await keysLate(url)], [null, 2 * BATCH, 0])
    assert.deepEqual((await store.journal.append(batch.map(like))).map(idOf), ids)
  })
})

test('a node that falls silent while it files keeps nobody from storing for long', async () => {
  const url = await newPostgresDatabase()
  await withServer(url, async (store) => {
    await indexAll(store)
    const ids = (await store.journal.append(fresh())).map(idOf)
    const pool = new Pool(parseAddress(url))
    const silent = await pool.acquire()
    await silent.script('BEGIN')
    await takeTurn(silent, 1000)
    await fileSome(silent, ids[0]! - 1, ids.at(-1)!, 1000)
    await withStore(url, (other) => other.journal.append(fresh()))
    assert.deepEqual([await keysPut(url), await keysLate(url)], [2 * BATCH, 0])
    silent.destroy()
    pool.release(silent)
    await pool.close()
  })
})

test('ids that were set back since a pen was taken away leave no message without a key', async () => {
  const url = await newPostgresDatabase()
  await withServer(url, (store) => store.journal.append(fresh(100)))
  await withStore(url, (store) => store.journal.append(fresh()))
  await withClient(url, (client) =>
    client.query("TRUNCATE intray.arrivals, intray.events, intray.dedupe; SELECT setval('intray.event_ids', 1)"),
  )
  await withServer(url, async (store) => {
    await store.journal.append(fresh())
    await indexAll(store)
  })
  await assertKeys(url)
})

test('a pen with many late keys is taken away once, by a batch that hoped in vain as well', async () => {
  const url = await newPostgresDatabase()
  const batch = fresh()
  await withServer(url, (store) => store.journal.append(batch))
  await withStore(url, (store) => store.journal.append([...batch.map(like), ...fresh()]))
  const dead = "SELECT n_dead_tup FROM pg_stat_get_dead_tuples('intray.dedupe'::regclass) AS n_dead_tup"
  const inVain = await withClient(url, async (client) => {
    await client.query('SELECT pg_stat_force_next_flush()')
    return Number((await client.query(dead)).rows[0].n_dead_tup)
  })
  assert.ok(inVain <= 2 * BATCH, `${inVain} keys were put in vain, of a batch of ${2 * BATCH}`)
})

test('a batch that is given up with the question for the pen, and stored by its second try, is stored once', async () => {
  const url = await newPostgresDatabase()
  const work = async (store: Store): Promise<void> => {
    await store.journal.append(fresh(1))
    const batch = fresh()
    const holder = await connect(url)
    await holder.query('BEGIN; LOCK TABLE intray.dedupe IN SHARE ROW EXCLUSIVE MODE')
    const sending = store.journal.append(batch)
    const waiting = "SELECT count(*) FROM pg_locks WHERE relation = 'intray.dedupe'::regclass AND NOT granted"
    await until('it is tried again, on a connection of its own', async () => Number(await ask(url, waiting)) === 2)
    await holder.query('ROLLBACK')
    await holder.end()
    const ids = (await sending).map(idOf)
    assert.deepEqual((await store.journal.append(batch.map(like))).map(idOf), ids)
    await indexAll(store)
  }
  await withStore(url, work, 'server')
  assert.equal(Number(await ask(url, 'SELECT count(*) FROM intray.events')), BATCH + 1)
  await assertKeys(url)
})

test('a batch under the pen that is given up and committed after all is found by whoever sends it again', async () => {
  const url = await newPostgresDatabase()
  await withServer(url, async (store) => {
    const batch = fresh()
    const holder = await connect(url)
    await holder.query('BEGIN; LOCK TABLE intray.arrivals IN SHARE MODE')
    const first = store.journal.append(batch)
    await until('its second try ends the pen, behind it', () => isWaitedFor(url))
    const second = store.journal.append(batch.map(like))
    await holder.query('ROLLBACK')
    await holder.end()
    assert.deepEqual((await second).map(idOf), (await first).map(idOf))
    await indexAll(store)
  })
  const stored = `SELECT count(*) FROM intray.events WHERE company_id <> ${WARM.companyId}`
  assert.equal(Number(await ask(url, stored)), BATCH)
  await assertKeys(url)
})

test('what has arrived is told with the key it will have', async () => {
  const url = await newPostgresDatabase()
  const late = new Map<number, string>()
  await withServer(url, async (store) => {
    await indexAll(store)
    await store.journal.append(fresh())
    const side = await openCopySide(url, { mustExist: true })
    for await (const { event, digest } of side.arrivals()) late.set(event.id, Buffer.from(digest!).toString('hex'))
    await side.close()
    await indexAll(store)
  })
  assert.equal(late.size, BATCH)
  const put = `SELECT json_object_agg(event_id, encode(digest, 'hex')) FROM intray.dedupe WHERE company_id <> ${WARM.companyId}`
  assert.deepEqual(await ask(url, put), Object.fromEntries(late))
})

test('a database that is frozen has no late keys, and nobody gets the pen', async () => {
  const url = await newPostgresDatabase()
  const side = await withServer(url, async (store) => {
    await store.journal.append(fresh())
    return openCopySide(url, { mustExist: true })
  })
  try {
    await side.freeze()
    await side.freeze()
    assert.deepEqual([await holderOf(url), await keysPut(url), await keysLate(url)], [null, BATCH, 0])
    await assert.rejects(ask(url, "SELECT intray.take_pen('mine')"), /frozen/)
  } finally {
    await side.release()
    await side.close()
  }
  await withServer(url, (store) => store.journal.append(fresh()))
  assert.equal(await keysLate(url), BATCH)
})

test('the isolation level that a database is set to makes no difference', async () => {
  const url = await newPostgresDatabase()
  await withClient(url, (client) =>
    client.query(
      `ALTER DATABASE ${new URL(url).pathname.slice(1)} SET default_transaction_isolation = 'repeatable read'`,
    ),
  )
  await withServer(url, async (store) => {
    const batch = fresh()
    const ids = (await store.journal.append(batch)).map(idOf)
    assert.deepEqual((await store.journal.append(batch.map(like))).map(idOf), ids)
  })
})

test('a row that is damaged keeps nobody from storing: its other keys are put, and the filing stops there', async () => {
  const url = await newPostgresDatabase()
  const [batch, next] = [fresh(), fresh()]
  const ids = await withServer(url, async (store) => {
    await indexAll(store)
    return (await store.journal.append(batch)).map(idOf)
  })
  await withClient(url, (client) =>
    client.query('UPDATE intray.arrivals SET digests[3] = NULL WHERE first_id = $1', [ids[0]]),
  )
  const side = await openCopySide(url, { mustExist: true })
  await assert.rejects(Array.fromAsync(side.arrivals()), /damaged/, 'told to whoever looks')
  await side.close()
  await withStore(url, async (store) => {
    assert.deepEqual((await store.journal.append([like(batch[0]!), ...next])).at(0), {
      outcome: 'duplicate',
      id: ids[0],
    })
    const stored = await store.journal.append(next.map(like))
    assert.deepEqual(new Set(outcomesOf(stored)), new Set(['duplicate']))
  })
  // Its keys that are whole are put now, and the one that is not is missing.
  assert.equal(await keysPut(url), 2 * BATCH - 1)
})

test('a row that is damaged and late stops the filing', async () => {
  const url = await newPostgresDatabase()
  await withServer(url, async (store) => {
    await indexAll(store)
    const ids = (await store.journal.append(fresh())).map(idOf)
    await withClient(url, (client) =>
      client.query('UPDATE intray.arrivals SET digests[3] = NULL WHERE first_id = $1', [ids[0]]),
    )
    await assert.rejects(indexAll(store), /damaged/)
  })
})
