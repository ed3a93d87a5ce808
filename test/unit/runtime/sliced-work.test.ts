import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Sliceable, SlicedWork } from '../../../src/runtime/sliced-work.ts'

const PER_TURN = 4096
const PER_SLICE = 1024

class Units implements Sliceable {
  readonly turns: number[] = []
  #left: number
  readonly #turn: () => number

  constructor(units: number, turn: () => number) {
    this.#left = units
    this.#turn = turn
  }

  get isDone(): boolean {
    return this.#left === 0
  }

  run(maxUnits: number): number {
    const done = Math.min(this.#left, maxUnits)
    this.#left -= done
    for (let n = 0; n < done; n++) this.turns.push(this.#turn())
    return done
  }
}

/** Turns that the test takes itself. `unitsPerTurn`: the control passes over the limit. */
function harness(unitsPerTurn = PER_TURN) {
  const due: (() => void)[] = []
  let turn = 0
  const sliced = new SlicedWork({ unitsPerTurn, unitsPerSlice: unitsPerTurn / 4, nextTurn: (run) => due.push(run) })
  const all: Units[] = []
  return {
    sliced,
    finish: (holder: string, units: number) => {
      const work = new Units(units, () => turn)
      all.push(work)
      return { work, waiting: sliced.finish(holder, work) }
    },
    takeTurn: (): boolean => {
      turn += 1
      const run = due.shift()
      run?.()
      return run !== undefined
    },
    busiestTurn: (): number => {
      const perTurn = new Map<number, number>()
      for (const { turns } of all) for (const one of turns) perTurn.set(one, (perTurn.get(one) ?? 0) + 1)
      return Math.max(...perTurn.values())
    },
  }
}

/** Ten holders with ten small pieces and a large one each. */
function load(unitsPerTurn?: number) {
  const turns = harness(unitsPerTurn)
  for (let n = 0; n < 100; n++) turns.finish(`holder ${n % 10}`, 300)
  for (let n = 0; n < 10; n++) turns.finish(`holder ${n}`, 50_000)
  while (turns.takeTurn());
  return turns
}

test('no turn does more than is allowed, however much comes in at once', () => {
  assert.ok(load().busiestTurn() <= PER_TURN)
})

test('control: without the limit, one turn does more', () => {
  assert.ok(load(1e9).busiestTurn() > PER_TURN)
})

test('small work is done at once, as much as one turn may do', () => {
  const turns = harness()
  const done = Array.from({ length: 20 }, () => turns.finish('a', 300).waiting === null)
  assert.ok(done.slice(0, 12).every(Boolean))
  assert.ok(!done.at(-1))
})

test('work that is finished settles, in the order of its holder', async () => {
  const turns = harness()
  const order: string[] = []
  const note = async (name: string, waiting: Promise<void> | null) => {
    await waiting
    order.push(name)
  }
  const pending = [
    note('large', turns.finish('a', 20_000).waiting),
    note('small', turns.finish('a', 10).waiting),
    note('of another', turns.finish('b', 10).waiting),
  ]
  while (turns.takeTurn());
  await Promise.all(pending)
  assert.deepEqual(order, ['of another', 'large', 'small'])
})

test('a holder waits for one slice of each other holder, not for all that they have', () => {
  const turns = harness()
  for (let n = 0; n < 50; n++) turns.finish('busy', 100_000)
  const { work } = turns.finish('quiet', 300)
  turns.takeTurn()
  assert.deepEqual(new Set(work.turns), new Set([1]))
  assert.ok(work.isDone)
})

test('slices are not larger than allowed', () => {
  const sizes: number[] = []
  const due: (() => void)[] = []
  const sliced = new SlicedWork({
    unitsPerTurn: PER_TURN,
    unitsPerSlice: PER_SLICE,
    nextTurn: (run) => due.push(run),
  })
  const endless: Sliceable = { isDone: false, run: (units) => sizes.push(units) && units }
  void sliced.finish('a', endless)
  due.shift()?.()
  assert.deepEqual(new Set(sizes), new Set([PER_SLICE]))
})

test('work that throws fails for its own caller; other work goes on', async () => {
  const turns = harness()
  const before = turns.finish('a', 2 * PER_TURN)
  const broken: Sliceable = {
    isDone: false,
    run: () => {
      throw new Error('broken')
    },
  }
  const failing = turns.sliced.finish('b', broken)
  const after = turns.finish('c', PER_TURN)
  assert.ok(failing)
  const failed = assert.rejects(failing, /broken/)
  while (turns.takeTurn());
  await failed
  await Promise.all([before.waiting, after.waiting])
  assert.ok(before.work.isDone && after.work.isDone)
})
