// What every conformance test starts from: a database of its own, and stores opened on it in either role.
// A test written with `everyStore` or `everyDriver` runs on every driver and knows none of them.

import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { AppendOutcome } from '../../src/store/contract/append.ts'
import { StoreFailure, type StoreFailureKind } from '../../src/store/contract/failure.ts'
import type { IndexLimits, IndexProgress, IndexStepResult, WordLimits } from '../../src/store/contract/indexing.ts'
import type { Store } from '../../src/store/contract/store.ts'
import { openStore } from '../../src/store/open.ts'
import { type Driver, drivers } from '../support/drivers.ts'
import { type ItemFields, idOf, item } from './rows.ts'

export const roles = ['server', 'tool'] as const
export type Role = (typeof roles)[number]

/** For tests that want everything indexed and do not care in how many steps. */
export const WIDE: IndexLimits = { maxRows: 10_000, maxBytes: 1 << 30 }

/** Words of an event that no test reaches by accident. */
export const MAX_WORDS = 2048

export interface TestDatabase {
  readonly driver: Driver
  readonly url: string
  /** Closed when the test ends, if the test did not. */
  open(role?: Role): Promise<Store>
}

export async function newDatabase(t: TestContext, driver: Driver): Promise<TestDatabase> {
  const url = await driver.readyDatabase()
  return {
    driver,
    url,
    open: async (role = 'server') => {
      const store = await openStore(url, { role })
      t.after(() => store.close())
      return store
    },
  }
}

/** A test of what a store does by itself, on every driver and in both roles. */
export function everyStore(
  title: string,
  body: (store: Store, database: TestDatabase, role: Role, t: TestContext) => Promise<void>,
): void {
  for (const driver of drivers) {
    for (const role of roles) {
      test(`${driver.name}, ${role}: ${title}`, async (t) => {
        const database = await newDatabase(t, driver)
        await body(await database.open(role), database, role, t)
      })
    }
  }
}

/** A test of what several stores on one database do, on every driver. */
export function everyDriver(title: string, body: (database: TestDatabase, t: TestContext) => Promise<void>): void {
  for (const driver of drivers) {
    test(`${driver.name}: ${title}`, async (t) => body(await newDatabase(t, driver), t))
  }
}

/** Appends one item that must be its first arrival, and returns its id. */
export async function append(store: Store, fields: ItemFields = {}): Promise<number> {
  const [outcome] = await store.journal.append([item(fields)])
  assert.equal(outcome?.outcome, 'stored')
  return idOf(outcome)
}

export const outcomesOf = (outcomes: readonly AppendOutcome[]): string[] => outcomes.map(({ outcome }) => outcome)

/** One step. It finds everything that was stored before it: nothing else uses the server of a test file. */
export function stepOnce(store: Store, limits: IndexLimits = WIDE): Promise<IndexStepResult> {
  return untilTaken(() => store.index.step(limits))
}

/** PostgreSQL ends a step that is silent for so long, and nothing of it is done. */
const MAX_SILENCE_MS = 5000

/** A step during which the machine stood still is taken again. */
async function untilTaken(step: () => Promise<IndexStepResult>): Promise<IndexStepResult> {
  for (;;) {
    const startedAt = performance.now()
    try {
      return await step()
    } catch (error) {
      if (performance.now() - startedAt < MAX_SILENCE_MS) throw error
      failure('unavailable')(error)
    }
  }
}

const MAX_IDLE_STEPS = 10

/** A step of the second cursor. */
export function stepWords(store: Store, limits: IndexLimits = WIDE, maxWords = MAX_WORDS): Promise<IndexStepResult> {
  return untilTaken(() => store.index.stepWords({ ...limits, maxWords } satisfies WordLimits))
}

/** Steps both cursors until the index covers everything. Fails if it stands still before that. `onStep`: of the first. */
export async function indexAll(
  store: Store,
  limits: IndexLimits = WIDE,
  onStep: (result: IndexStepResult) => void = () => {},
): Promise<IndexProgress> {
  let before: IndexProgress = { cursor: -1, lag: 0, searchable: 0, searchLag: 0, clearing: false }
  for (let idle = 0; idle < MAX_IDLE_STEPS; ) {
    const isCovered = before.cursor >= 0 && before.lag === 0 && !before.clearing
    const result = isCovered ? await stepWords(store, limits) : await stepOnce(store, limits)
    if (!isCovered) onStep(result)
    if (result.lag === 0 && result.searchLag === 0 && !result.clearing) return result
    const hasMoved =
      result.clearing ||
      result.cursor !== before.cursor ||
      result.lag < before.lag ||
      result.searchable !== before.searchable
    idle = hasMoved ? 0 : idle + 1
    before = result
  }
  throw new assert.AssertionError({ message: `the index stands still at ${before.cursor} with a lag of ${before.lag}` })
}

export async function payloadText(store: Store, id: number): Promise<string | null> {
  const payload = await store.events.payload(id)
  return payload === null ? null : Buffer.from(payload).toString()
}

/** For assert.rejects: a failure of the store of this kind. */
export function failure(kind: StoreFailureKind): (error: unknown) => boolean {
  return (error) => {
    assert.ok(error instanceof StoreFailure, `not a StoreFailure: ${error}`)
    assert.equal(error.kind, kind)
    return true
  }
}
