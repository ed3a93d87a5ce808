// Keys that are not in `dedupe` yet: known all the same, whoever is killed, and put there in its order.

import assert from 'node:assert/strict'
import { join } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { type TestContext, test } from 'node:test'
import fc from 'fast-check'
import type { AppendOutcome } from '../../../../src/store/contract/append.ts'
import { openStore } from '../../../../src/store/open.ts'
import { RecentKeys } from '../../../../src/store/recent-keys.ts'
import { outcomeOf, prepareAppend } from '../../../../src/store/sqlite/append.ts'
import { packBatch } from '../../../../src/store/sqlite/append-batch.ts'
import { FROZEN, openConnection } from '../../../../src/store/sqlite/connection.ts'
import { type Filing, prepareFiling } from '../../../../src/store/sqlite/filing.ts'
import { migrate } from '../../../../src/store/sqlite/schema.ts'
import { StoredKeys } from '../../../../src/store/sqlite/stored-keys.ts'
import { prepareUnsortedKeys } from '../../../../src/store/sqlite/unsorted-keys.ts'
import { idOf, item } from '../../../store/rows.ts'
import { append, indexAll } from '../../../store/suite.ts'
import { tempFolder } from '../../../support/temp.ts'

const GROUP = 20
const SLICE = 4
/** A group is read in turns of 16 times this. */
const SLICES = [1, SLICE]

/** Soon crowded, and read in many slices. */
const BOUNDS = { sliceKeys: 3, fewestBits: 64, mostBits: 1024 }

/** The writer of a server, on small groups. */
class Writer {
  recent!: RecentKeys
  stored!: StoredKeys
  filing!: Filing
  readonly db: DatabaseSync
  readonly #sliceKeys: number
  readonly #mostUnfiled: number
  #appendAll!: ReturnType<typeof prepareAppend>

  constructor(t: TestContext, { sliceKeys = SLICE, mostUnfiled = 60 } = {}) {
    this.#sliceKeys = sliceKeys
    this.#mostUnfiled = mostUnfiled
    this.db = openConnection(join(tempFolder('keys'), 'intray.db'), 'writer')
    t.after(() => this.db.close())
    migrate(this.db)
    this.startAgain()
  }

  /** As after a kill: nothing is remembered but what stands in the file. */
  startAgain(): void {
    this.recent = new RecentKeys()
    this.filing = prepareFiling(this.db, this.recent, prepareUnsortedKeys(this.db, this.recent, GROUP, this.#sliceKeys))
    this.stored = new StoredKeys(this.db, this.recent, BOUNDS)
    this.#appendAll = prepareAppend(this.db, this.filing, this.recent, this.stored, this.#mostUnfiled)
  }

  send(companyId: number, refs: readonly string[], body = 'one') {
    return this.#appendAll([batchOf(companyId, refs, body)])[0]!.map(outcomeOf)
  }

  /** A command that stores them, beside the server. */
  sendBeside(companyId: number, refs: readonly string[], body: string) {
    const appendAll = prepareAppend(this.db, prepareFiling(this.db, null), null)
    return appendAll([batchOf(companyId, refs, body)])[0]!.map(outcomeOf)
  }

  /** Null if nothing at all was stored. */
  refusing<T>(what: 'arrivals' | 'events' | 'frozen', work: () => T): T | null {
    const [table, why] = what === 'frozen' ? ['arrivals', FROZEN] : [what, 'no']
    this.db.exec(`CREATE TRIGGER refused BEFORE INSERT ON ${table} BEGIN SELECT RAISE(ABORT, '${why}'); END`)
    try {
      return work()
    } catch (error) {
      assert.match((error as Error).message, new RegExp(why))
      return null
    } finally {
      this.db.exec('DROP TRIGGER refused')
    }
  }

  fileAll(): void {
    while (this.filing.fileSome(SLICE).hasMore);
  }

  count(table: 'arrivals' | 'events' | 'dedupe' | 'unsorted_keys' | 'resends'): number {
    return Number(this.db.prepare(`SELECT count(*) AS n FROM ${table}`).get()!.n)
  }
}

function batchOf(companyId: number, refs: readonly string[], body: string) {
  return packBatch(refs.map((sourceRef) => item({ accountId: 7, companyId, sourceRef, body })))
}

type Act =
  | {
      readonly do: 'send'
      readonly company: number
      readonly refs: readonly number[]
      readonly body: string
      readonly beside: boolean
      /** The table that takes no rows meanwhile. */
      readonly refuses: 'arrivals' | 'events' | 'frozen' | null
    }
  | { readonly do: 'file' | 'read' | 'kill' | 'fail' | 'tool' }

const ACTS: fc.Arbitrary<Act[]> = fc.array(
  fc.oneof(
    {
      weight: 5,
      arbitrary: fc.record({
        do: fc.constant('send' as const),
        company: fc.integer({ min: 1, max: 3 }),
        refs: fc.array(fc.integer({ min: 0, max: 60 }), { minLength: 1, maxLength: 8 }),
        body: fc.constantFrom('one', 'two'),
        beside: fc.nat(9).map((n) => n === 0),
        refuses: fc.nat(19).map((n) => (['arrivals', 'events', 'frozen'] as const)[n] ?? null),
      }),
    },
    { weight: 6, arbitrary: fc.constant({ do: 'read' as const }) },
    { weight: 6, arbitrary: fc.constant({ do: 'file' as const }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('kill' as const, 'fail' as const, 'tool' as const) }) },
  ),
  { minLength: 20, maxLength: 150 },
)

/** What a writer may do wrong: start without the newest keys, or not see that somebody else has stored messages. */
type Fault = 'forgets' | 'overlooks'

/** Plays it, and holds every answer against what was sent before. */
function play(t: TestContext, acts: readonly Act[], sliceKeys: number, mostUnfiled = 60, fault?: Fault): void {
  const writer = new Writer(t, { sliceKeys, mostUnfiled })
  const firsts = new Map<string, { readonly id: number; readonly body: string }>()
  for (const act of acts) {
    if (act.do === 'file') writer.filing.fileSome(SLICE)
    if (act.do === 'kill') writer.startAgain()
    if (act.do === 'kill' && fault === 'forgets') writer.recent.forgetThrough(Number.MAX_SAFE_INTEGER)
    if (fault === 'overlooks') writer.stored.startAgain = () => {}
    if (act.do === 'read') writer.stored.readSome()
    if (act.do === 'tool') {
      const tool = prepareFiling(writer.db, null)
      while (tool.fileSome(SLICE).hasMore);
      tool.sortNow()
    }
    if (act.do === 'fail') {
      writer.db.exec("CREATE TRIGGER no BEFORE INSERT ON dedupe BEGIN SELECT RAISE(ABORT, 'no'); END")
      for (let n = 0; n < 4; n++) {
        try {
          writer.filing.fileSome(SLICE)
        } catch (error) {
          assert.match((error as Error).message, /no/)
        }
      }
      writer.db.exec('DROP TRIGGER no')
    }
    if (act.do !== 'send') continue
    const send = () =>
      act.beside
        ? writer.sendBeside(act.company, act.refs.map(String), act.body)
        : writer.send(act.company, act.refs.map(String), act.body)
    const outcomes = act.refuses === null ? send() : writer.refusing(act.refuses, send)
    if (outcomes === null) continue
    for (const [place, ref] of act.refs.entries()) {
      const key: string = `${act.company}:${ref}`
      const first = firsts.get(key)
      const outcome: AppendOutcome = outcomes[place]!
      if (outcome.outcome === 'failed' && act.refuses !== null) continue
      const expected: string = !first ? 'stored' : first.body === act.body ? 'duplicate' : 'conflict'
      assert.equal(outcome.outcome, expected, key)
      if (first) assert.equal(idOf(outcome), first.id)
      else firsts.set(key, { id: idOf(outcome), body: act.body })
    }
  }
  writer.fileAll()
  while (writer.filing.sortNow());
  writer.fileAll()
  const rows = writer.db.prepare('SELECT event_id FROM dedupe ORDER BY event_id').all()
  const ids = Array.from(firsts.values(), ({ id }) => id).sort((one, other) => one - other)
  assert.deepEqual(
    rows.map((row) => row.event_id),
    ids,
  )
  assert.equal(writer.count('unsorted_keys'), 0)
  assert.equal(writer.recent.size, 0, 'nothing is remembered for longer')
}

for (const slice of SLICES) {
  for (const mostUnfiled of [3, 60]) {
    const when = mostUnfiled === 3 ? ', most of them put into their places at once' : ''
    test(`a key is known wherever it is: through filing, sorting by ${slice}, kills, failures and commands beside it${when}`, (t) => {
      fc.assert(
        fc.property(ACTS, (acts) => play(t, acts, slice, mostUnfiled)),
        { numRuns: 40 },
      )
    })
  }
}

for (const [fault, who] of [
  ['forgets', 'starts without the newest keys'],
  ['overlooks', 'does not see that a command has stored messages'],
] as const) {
  test(`control: whoever ${who} is found out`, (t) => {
    const result = fc.check(
      fc.property(ACTS, (acts) => play(t, acts, SLICE, 60, fault)),
      { numRuns: 200, endOnFailure: true },
    )
    assert.ok(result.failed)
  })
}

test('a key is known though its first message was too large to lie with others', (t) => {
  const writer = new Writer(t)
  writer.stored.readSome()
  assert.equal(writer.stored.hasMore, false)
  const [first] = writer.send(1, ['large'], 'x'.repeat(70_000))
  const [again] = writer.send(1, ['large'], 'small')
  assert.deepEqual(again, { outcome: 'conflict', id: idOf(first!) })
})

test('the table of known keys is made once, and then asked instead of the database', (t) => {
  const writer = new Writer(t)
  for (let n = 0; n < 30; n++) writer.send(1, [`old ${n}`])
  writer.fileAll()
  while (writer.filing.sortNow());
  writer.startAgain()
  while (writer.stored.hasMore) writer.stored.readSome()
  const startedAgain = t.mock.method(writer.stored, 'startAgain')
  // Whoever looks a key up now fails.
  writer.db.exec('ALTER TABLE dedupe RENAME TO away')
  const sent = Array.from({ length: 40 }, (_, n) => {
    try {
      return writer.send(1, [`new ${n}`])[0]!.outcome
    } catch {
      return 'looked up'
    }
  })
  writer.db.exec('ALTER TABLE away RENAME TO dedupe')
  assert.equal(startedAgain.mock.callCount(), 0)
  assert.ok(sent.filter((outcome) => outcome === 'stored').length > 20, sent.join())
})

test('keys wait until a group is full, and are then put in in the order of the table, while more come in', (t) => {
  const writer = new Writer(t)
  writer.db.exec(`CREATE TEMP TABLE inserted (place INTEGER PRIMARY KEY, company_id, digest);
    CREATE TEMP TRIGGER note AFTER INSERT ON main.dedupe BEGIN
      INSERT INTO inserted (company_id, digest) VALUES (new.company_id, new.digest); END`)
  const sendAndFile = (from: number) => {
    for (const company of [3, 1, 2, 900_000_000]) {
      writer.send(
        company,
        Array.from({ length: 4 }, (_, n) => `${from + n}`),
      )
    }
    writer.fileAll()
  }
  sendAndFile(0)
  assert.deepEqual([writer.count('dedupe'), writer.recent.size], [0, 16])
  for (let from = 10; writer.count('dedupe') < GROUP; from += 10) {
    assert.ok(from < 100, 'it is put in sooner or later')
    sendAndFile(from)
  }
  const inserted = writer.db.prepare('SELECT company_id, hex(digest) AS digest FROM inserted ORDER BY place').all()
  const group = inserted
    .slice(0, GROUP)
    .map(({ company_id: company, digest }) => `${String(company).padStart(9, '0')}:${String(digest).slice(0, 4)}`)
  assert.deepEqual(group, group.toSorted())
  assert.equal(writer.recent.size, writer.count('events') - writer.count('dedupe'), 'those that are in are forgotten')
})

test('what somebody else has sorted in is forgotten, however much it was, and messages arrive as before', (t) => {
  const writer = new Writer(t, { mostUnfiled: 30 })
  const refs = (from: number, count: number) => Array.from({ length: count }, (_, n) => `${from + n}`)
  writer.send(1, refs(0, 30))
  writer.send(1, refs(100, 1))
  assert.deepEqual([writer.count('arrivals'), writer.count('events'), writer.recent.size], [1, 1, 30])
  const tool = prepareFiling(writer.db, null)
  while (tool.fileSome(SLICE).hasMore);
  writer.fileAll()
  assert.equal(writer.recent.size, 0)
  writer.send(1, refs(200, 3))
  assert.equal(writer.count('arrivals'), 1)
  writer.fileAll()
  writer.fileAll()
  assert.equal(writer.recent.size, 3, 'those of its own that are not sorted in are still remembered')
})

test('a group that does not fit into its numbers is refused', (t) => {
  const writer = new Writer(t)
  const keys = prepareUnsortedKeys(writer.db, null, 2 ** 20)
  writer.db.prepare('INSERT INTO unsorted_keys (first_id, keys) VALUES (1, ?)').run(Buffer.alloc(80 * (2 ** 18 + 1)))
  assert.throws(() => keys.sortAll(), /a group of 262145 keys is too large/)
  assert.equal(writer.count('unsorted_keys'), 1)
})

test('keys that are damaged are told when a server starts', async (t) => {
  const path = join(tempFolder('keys'), 'intray.db')
  const store = await openStore(`sqlite:${path}`, { role: 'server' })
  await append(store)
  await indexAll(store)
  await store.close()
  const db = openConnection(path, 'tool')
  t.after(() => db.close())
  db.exec("UPDATE unsorted_keys SET keys = CAST(keys || x'00' AS BLOB)")
  await assert.rejects(openStore(`sqlite:${path}`, { role: 'server' }), /the dedupe keys from event 1 on are damaged/)
})
