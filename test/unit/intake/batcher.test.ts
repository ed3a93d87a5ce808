import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Batcher, type BatcherLimits, type SubmitResult } from '../../../src/intake/batcher.ts'
import type { AppendItem, AppendOutcome } from '../../../src/store/contract/append.ts'
import { StoreFailure } from '../../../src/store/contract/failure.ts'
import { within } from '../../support/until.ts'

const LIMITS: BatcherLimits = {
  queueMaxEvents: 100,
  queueMaxBytes: 10_000,
  queueMaxWait: 600_000,
  batchMaxEvents: 10,
  batchMaxBytes: 1000,
}

function item(name: string, bytes = 2): AppendItem {
  return { requestId: name, payload: new Uint8Array(bytes) } as unknown as AppendItem
}

/** A commit that is running: its messages by name, and how it is to end. */
interface Commit {
  readonly names: readonly string[]
  succeed(outcomes?: AppendOutcome[]): void
  fail(failure: unknown): void
}

/** A journal whose commits end when the test says so. */
class FakeJournal {
  readonly commits: Commit[] = []
  running = 0
  mostAtOnce = 0
  #ids = 0
  #wake: () => void = () => {}

  append(items: readonly AppendItem[]): Promise<AppendOutcome[]> {
    const done = Promise.withResolvers<AppendOutcome[]>()
    this.running += 1
    this.mostAtOnce = Math.max(this.mostAtOnce, this.running)
    const end = (settle: () => void) => {
      this.running -= 1
      settle()
    }
    this.commits.push({
      names: items.map(({ requestId }) => requestId),
      succeed: (outcomes = items.map(() => ({ outcome: 'stored', id: ++this.#ids }))) =>
        end(() => done.resolve(outcomes)),
      fail: (failure) => end(() => done.reject(failure)),
    })
    this.#wake()
    return done.promise
  }

  /** The commit of that number, once it has begun. */
  async commit(number: number): Promise<Commit> {
    while (this.commits.length < number) {
      await within(`commit ${number}`, new Promise<void>((resolve) => (this.#wake = resolve)))
    }
    return this.commits[number - 1]!
  }
}

const ONE_AT_A_TIME = { maxInFlight: 1, eagerEvents: Number.POSITIVE_INFINITY }

function setUp(limits: Partial<BatcherLimits> = {}, flow = ONE_AT_A_TIME) {
  const journal = new FakeJournal()
  const outcomes: unknown[] = []
  const failed: string[] = []
  let committed = 0
  const time = { ms: 0 }
  const batcher = new Batcher({
    journal,
    limits: { ...LIMITS, ...limits },
    ...flow,
    onCommitted: () => (committed += 1),
    onOutcome: (failure) => outcomes.push(failure),
    onItemFailed: ({ requestId }, reason) => failed.push(`${requestId}: ${reason}`),
    now: () => time.ms,
  })
  return { batcher, journal, outcomes, failed, time, committed: () => committed }
}

const codeOf = (result: SubmitResult) => ('problem' in result ? result.problem.code : result.outcome)
const idOf = (result: SubmitResult) => ('problem' in result ? null : result.id)

/** Lets everything run that can run without a commit ending. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve))
}

describe('group commit', () => {
  test('an idle writer commits a message at once, alone', async () => {
    const { batcher, journal } = setUp()
    const result = batcher.submit(item('a'))
    const commit = await journal.commit(1)
    assert.deepEqual(commit.names, ['a'])
    commit.succeed()
    assert.deepEqual(await result, { outcome: 'stored', id: 1 })
  })

  test('what arrives while a commit runs shares the next one, in order', async () => {
    const { batcher, journal } = setUp()
    const results = [batcher.submit(item('a'))]
    const first = await journal.commit(1)
    results.push(...['b', 'c', 'd'].map((name) => batcher.submit(item(name))))
    await settle()
    assert.equal(journal.commits.length, 1, 'the next commit waits for this one')
    first.succeed()
    const second = await journal.commit(2)
    assert.deepEqual(second.names, ['b', 'c', 'd'])
    second.succeed()
    assert.deepEqual((await Promise.all(results)).map(idOf), [1, 2, 3, 4])
  })

  test('messages of one turn of the event loop share a commit', async () => {
    const { batcher, journal } = setUp()
    const results = ['a', 'b', 'c'].map((name) => batcher.submit(item(name)))
    const commit = await journal.commit(1)
    assert.deepEqual(commit.names, ['a', 'b', 'c'])
    commit.succeed()
    await Promise.all(results)
  })

  test('nobody is answered before the commit has ended', async () => {
    const { batcher, journal } = setUp()
    let answered = false
    const result = batcher.submit(item('a')).then(() => (answered = true))
    const commit = await journal.commit(1)
    await settle()
    assert.equal(answered, false)
    commit.succeed()
    await result
  })

  test('one commit runs at a time, and the next begins when it ends', async () => {
    const { batcher, journal } = setUp({ batchMaxEvents: 1 })
    const results = Array.from({ length: 20 }, (_, n) => batcher.submit(item(String(n))))
    for (let number = 1; number <= 20; number += 1) (await journal.commit(number)).succeed()
    await Promise.all(results)
    assert.equal(journal.mostAtOnce, 1)
  })

  test('each message gets its own outcome', async () => {
    const { batcher, journal, committed } = setUp()
    const results = ['a', 'b', 'c', 'd'].map((name) => batcher.submit(item(name)))
    const commit = await journal.commit(1)
    commit.succeed([
      { outcome: 'stored', id: 5 },
      { outcome: 'duplicate', id: 1 },
      { outcome: 'conflict', id: 2 },
      { outcome: 'failed', reason: 'too odd' },
    ])
    assert.deepEqual((await Promise.all(results)).map(codeOf), ['stored', 'duplicate', 'conflict', 'internal_error'])
    assert.equal(committed(), 1)
  })
})

describe('the bounds of a commit', () => {
  test('are its number of messages', async () => {
    const { batcher, journal } = setUp({ batchMaxEvents: 3 })
    const results = Array.from({ length: 7 }, (_, n) => batcher.submit(item(String(n))))
    for (const [index, size] of [3, 3, 1].entries()) {
      const commit = await journal.commit(index + 1)
      assert.equal(commit.names.length, size)
      commit.succeed()
    }
    await Promise.all(results)
  })

  test('are its bytes', async () => {
    const { batcher, journal } = setUp({ batchMaxBytes: 100 })
    const results = [60, 40, 1, 99, 1].map((bytes, n) => batcher.submit(item(String(n), bytes)))
    for (const [index, names] of [['0', '1'], ['2', '3'], ['4']].entries()) {
      const commit = await journal.commit(index + 1)
      assert.deepEqual(commit.names, names)
      commit.succeed()
    }
    await Promise.all(results)
  })

  test('do not hold up a message that is larger than all of it: it is taken alone', async () => {
    const { batcher, journal } = setUp({ batchMaxBytes: 100 })
    const results = [10, 500, 10].map((bytes, n) => batcher.submit(item(String(n), bytes)))
    for (const [index, names] of [['0'], ['1'], ['2']].entries()) {
      const commit = await journal.commit(index + 1)
      assert.deepEqual(commit.names, names)
      commit.succeed()
    }
    await Promise.all(results)
  })
})

describe('the bounds of the queue', () => {
  test('are its number of messages, those under way to the store too; what does not fit is refused at once', async () => {
    const { batcher, journal } = setUp({ queueMaxEvents: 3 })
    const first = batcher.submit(item('in the commit'))
    const running = await journal.commit(1)
    const waiting = [batcher.submit(item('b')), batcher.submit(item('c'))]
    assert.equal(codeOf(await within('a refusal at once', batcher.submit(item('d')))), 'overloaded')
    running.succeed()
    const next = await journal.commit(2)
    assert.deepEqual(next.names, ['b', 'c'])
    const again = batcher.submit(item('e'))
    next.succeed()
    ;(await journal.commit(3)).succeed()
    assert.deepEqual((await Promise.all([first, ...waiting, again])).map(codeOf), Array(4).fill('stored'))
  })

  test('are its bytes, those under way too, and what was committed makes room', async () => {
    const { batcher, journal } = setUp({ queueMaxBytes: 190 })
    const first = batcher.submit(item('a', 90))
    const running = await journal.commit(1)
    const second = batcher.submit(item('b', 60))
    assert.equal(codeOf(await batcher.submit(item('c', 41))), 'overloaded')
    const third = batcher.submit(item('d', 40))
    running.succeed()
    ;(await journal.commit(2)).succeed()
    await Promise.all([first, second, third])
    const fourth = batcher.submit(item('e', 190))
    ;(await journal.commit(3)).succeed()
    assert.equal(codeOf(await fourth), 'stored')
  })

  test('let a message in that is larger than all of it, if nothing else waits', async () => {
    const { batcher, journal } = setUp({ queueMaxBytes: 100 })
    const large = batcher.submit(item('large', 5000))
    assert.equal(codeOf(await batcher.submit(item('next'))), 'overloaded')
    ;(await journal.commit(1)).succeed()
    assert.equal(codeOf(await large), 'stored')
  })

  test('are the time that messages would wait, by how long appends take: beyond it one round waits, and no more', async () => {
    const { batcher, journal, time } = setUp({ queueMaxWait: 20, batchMaxEvents: 2 })
    const waits = (names: string) => [...names].map((name) => batcher.submit(item(name)))
    const first = batcher.submit(item('a'))
    const running = await journal.commit(1)
    const quick = waits('bcdefgh')
    assert.equal(batcher.waiting.events, 8, 'nothing is known to be slow')
    time.ms += 25
    assert.equal(codeOf(await batcher.submit(item('i'))), 'overloaded')
    running.succeed()
    for (let number = 2; number <= 4; number += 1) (await journal.commit(number)).succeed()
    const last = await journal.commit(5)
    assert.deepEqual((await Promise.all([first, ...quick.slice(0, 6)])).map(codeOf), Array(7).fill('stored'))
    const round = waits('jk')
    assert.equal(batcher.waiting.events, 3, 'a round may wait, however long it takes')
    last.succeed()
    ;(await journal.commit(6)).succeed()
    assert.deepEqual((await Promise.all([...quick, ...round])).map(codeOf), Array(9).fill('stored'))
  })

  test('are free again after a commit that failed', async () => {
    const { batcher, journal } = setUp({ queueMaxEvents: 1, queueMaxBytes: 10 })
    const lost = batcher.submit(item('a', 10))
    ;(await journal.commit(1)).fail(new StoreFailure('unavailable', 'gone'))
    assert.equal(codeOf(await lost), 'storage_unavailable')
    assert.deepEqual(batcher.waiting, { events: 0, bytes: 0, oldestReceivedAt: null })
  })

  test('are pressed when they are more than half used', async () => {
    const { batcher, journal } = setUp({ queueMaxEvents: 4, queueMaxBytes: 100 })
    const two = [batcher.submit(item('a', 10)), batcher.submit(item('b', 10))]
    assert.equal(batcher.isUnderPressure, false)
    const third = batcher.submit(item('c', 10))
    assert.equal(batcher.isUnderPressure, true)
    ;(await journal.commit(1)).succeed()
    await Promise.all([...two, third])
    assert.equal(batcher.isUnderPressure, false)
    const large = batcher.submit(item('d', 51))
    assert.equal(batcher.isUnderPressure, true)
    ;(await journal.commit(2)).succeed()
    await large
  })

  test('are free again after many commits', async () => {
    const { batcher, journal } = setUp({ queueMaxEvents: 10, queueMaxBytes: 100 })
    for (let round = 1; round <= 50; round += 1) {
      const results = Array.from({ length: 10 }, (_, n) => batcher.submit(item(String(n), 10)))
      ;(await journal.commit(round)).succeed()
      assert.deepEqual((await Promise.all(results)).map(codeOf), Array(10).fill('stored'))
    }
  })
})

describe('a commit that fails', () => {
  test('answers its whole batch that nobody knows, and only that batch', async () => {
    const { batcher, journal, outcomes, committed } = setUp({ batchMaxEvents: 2 })
    const results = ['a', 'b', 'c'].map((name) => batcher.submit(item(name)))
    const failure = new StoreFailure('unavailable', 'disk full')
    ;(await journal.commit(1)).fail(failure)
    ;(await journal.commit(2)).succeed()
    assert.deepEqual((await Promise.all(results)).map(codeOf), ['storage_unavailable', 'storage_unavailable', 'stored'])
    assert.deepEqual(outcomes, [failure, null])
    assert.equal(committed(), 1)
  })

  test('for whatever reason is answered the same', async () => {
    const { batcher, journal } = setUp()
    const result = batcher.submit(item('a'))
    ;(await journal.commit(1)).fail(new TypeError('a bug'))
    assert.equal(codeOf(await result), 'storage_unavailable')
  })

  test('before it has begun is answered the same, and the next is tried', async () => {
    let failing = true
    const batcher = new Batcher({
      journal: {
        append: (items) => {
          if (failing) throw new RangeError('Array buffer allocation failed')
          return Promise.resolve(items.map((_, index) => ({ outcome: 'stored', id: index + 1 })))
        },
      },
      limits: LIMITS,
      ...ONE_AT_A_TIME,
      onCommitted: () => {},
      onOutcome: () => {},
      onItemFailed: () => {},
    })
    assert.equal(codeOf(await within('an answer', batcher.submit(item('a')))), 'storage_unavailable')
    failing = false
    assert.equal(codeOf(await within('an answer', batcher.submit(item('b')))), 'stored')
  })
})

describe('stop', () => {
  test('answers everything taken before, then refuses', async () => {
    const { batcher, journal } = setUp({ batchMaxEvents: 2 })
    const results = Array.from({ length: 5 }, (_, n) => batcher.submit(item(String(n))))
    let stopped = false
    const stopping = batcher.stop().then(() => (stopped = true))
    assert.equal(codeOf(await batcher.submit(item('late'))), 'shutting_down')
    for (let number = 1; number <= 3; number += 1) {
      const commit = await journal.commit(number)
      await settle()
      assert.equal(stopped, false)
      commit.succeed()
    }
    await within('the stop', stopping)
    assert.deepEqual((await Promise.all(results)).map(codeOf), Array(5).fill('stored'))
  })

  test('ends although a commit fails', async () => {
    const { batcher, journal } = setUp()
    const result = batcher.submit(item('a'))
    const stopping = batcher.stop()
    ;(await journal.commit(1)).fail(new Error('gone'))
    await within('the stop', stopping)
    assert.equal(codeOf(await result), 'storage_unavailable')
  })

  test('of an idle one is at once, and a second one is fine', async () => {
    const { batcher } = setUp()
    await within('the stop', batcher.stop())
    await within('the second stop', batcher.stop())
  })

  test('called twice while a commit runs ends for both callers', async () => {
    const { batcher, journal } = setUp()
    const result = batcher.submit(item('a'))
    const both = Promise.all([batcher.stop(), batcher.stop()])
    ;(await journal.commit(1)).succeed()
    await result
    await within('both stops', both)
  })
})

describe('a store that takes several appends at once', () => {
  test('gets the messages of the next turn while it works on those of the last', async () => {
    const { batcher, journal } = setUp({}, { maxInFlight: 2, eagerEvents: Number.POSITIVE_INFINITY })
    const first = batcher.submit(item('a'))
    await journal.commit(1)
    const second = batcher.submit(item('b'))
    await journal.commit(2)
    const third = [batcher.submit(item('c')), batcher.submit(item('d'))]
    await settle()
    assert.equal(journal.commits.length, 2)
    journal.commits[1]!.succeed()
    assert.equal(codeOf(await second), 'stored')
    assert.deepEqual((await journal.commit(3)).names, ['c', 'd'])
    journal.commits[0]!.succeed()
    journal.commits[2]!.succeed()
    await Promise.all([first, ...third])
    assert.equal(journal.mostAtOnce, 2)
  })

  test('gets the first messages of a long turn before the turn is over', async () => {
    const { batcher, journal } = setUp({}, { maxInFlight: 2, eagerEvents: 3 })
    const results = ['a', 'b', 'c', 'd', 'e', 'f'].map((name) => batcher.submit(item(name)))
    assert.deepEqual(
      journal.commits.map(({ names }) => names),
      [
        ['a', 'b', 'c'],
        ['d', 'e', 'f'],
      ],
    )
    for (const commit of journal.commits) commit.succeed()
    await Promise.all(results)
  })

  test('gets no small append behind a larger one, until there is more or that one is back', async () => {
    const { batcher, journal } = setUp({}, { maxInFlight: 3, eagerEvents: Number.POSITIVE_INFINITY })
    const results = ['a', 'b', 'c'].map((name) => batcher.submit(item(name)))
    assert.deepEqual((await journal.commit(1)).names, ['a', 'b', 'c'])
    results.push(batcher.submit(item('d')), batcher.submit(item('e')))
    await settle()
    assert.equal(journal.commits.length, 1)
    results.push(batcher.submit(item('f')))
    assert.deepEqual((await journal.commit(2)).names, ['d', 'e', 'f'])
    results.push(batcher.submit(item('g')))
    journal.commits[0]!.succeed()
    await settle()
    assert.equal(journal.commits.length, 2, 'as large as each of those under way')
    journal.commits[1]!.succeed()
    const last = await journal.commit(3)
    assert.deepEqual(last.names, ['g'])
    last.succeed()
    await Promise.all(results)
  })

  test('sends what is too little all the same when a larger append is stuck', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const { batcher, journal } = setUp({}, { maxInFlight: 2, eagerEvents: Number.POSITIVE_INFINITY })
    const stuck = ['a', 'b', 'c'].map((name) => batcher.submit(item(name)))
    await settle()
    const single = batcher.submit(item('d'))
    await settle()
    assert.equal(journal.commits.length, 1)
    t.mock.timers.tick(20)
    assert.deepEqual(journal.commits[1]?.names, ['d'])
    journal.commits[1]!.succeed()
    assert.equal(codeOf(await single), 'stored')
    journal.commits[0]!.succeed()
    await Promise.all(stuck)
  })

  test('behind a very large one it is enough to be as many as are sent at once', async () => {
    const { batcher, journal } = setUp({}, { maxInFlight: 2, eagerEvents: 2 })
    const results = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'].map((name) => batcher.submit(item(name)))
    journal.commits[0]!.succeed()
    assert.deepEqual((await journal.commit(3)).names, ['e', 'f', 'g', 'h'])
    journal.commits[1]!.succeed()
    await settle()
    results.push(...['i', 'j'].map((name) => batcher.submit(item(name))))
    assert.deepEqual((await journal.commit(4)).names, ['i', 'j'])
    for (const commit of journal.commits.slice(2)) commit.succeed()
    await Promise.all(results)
  })

  test('has answered all of them when stop returns', async () => {
    const { batcher, journal } = setUp({ batchMaxEvents: 1 }, { maxInFlight: 2, eagerEvents: Number.POSITIVE_INFINITY })
    const answered: string[] = []
    for (const name of ['a', 'b', 'c']) void batcher.submit(item(name)).then(() => answered.push(name))
    await journal.commit(2)
    const stopped = batcher.stop().then(() => assert.deepEqual(answered.toSorted(), ['a', 'b', 'c']))
    journal.commits[0]!.succeed()
    ;(await journal.commit(3)).succeed()
    journal.commits[1]!.succeed()
    await stopped
  })
})

test('a message that alone could not be stored is told to the operator, with the reason', async () => {
  const { batcher, journal, failed } = setUp()
  const results = [batcher.submit(item('good')), batcher.submit(item('bad'))]
  ;(await journal.commit(1)).succeed([
    { outcome: 'stored', id: 1 },
    { outcome: 'failed', reason: 'too big' },
  ])
  assert.deepEqual((await Promise.all(results)).map(codeOf), ['stored', 'internal_error'])
  assert.deepEqual(failed, ['bad: too big'])
})

test('a message whose tenant was moved while it waited is answered so, and is no failure', async () => {
  const { batcher, journal, failed } = setUp()
  const results = [batcher.submit(item('good')), batcher.submit(item('late'))]
  ;(await journal.commit(1)).succeed([
    { outcome: 'stored', id: 1 },
    { outcome: 'failed', reason: 'moved', isMoved: true },
  ])
  assert.deepEqual((await Promise.all(results)).map(codeOf), ['stored', 'tenant_moved'])
  assert.deepEqual(failed, [])
})
