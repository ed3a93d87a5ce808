// Conformance, by model: whatever processors, clocks and crashes do, the promises of src/store/contract/processing.ts hold.
// TEST_HISTORIES=5000 runs more by hand; TEST_SEED=<seed> repeats a run.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ClaimedEvent, ProcessingStore } from '../../src/store/contract/processing.ts'
import type { Store } from '../../src/store/contract/store.ts'
import { drivers } from '../support/drivers.ts'
import { runHistory } from './processing-model.ts'
import { drawSeed } from './seed.ts'
import { newDatabase } from './suite.ts'

const HISTORIES = Number(process.env.TEST_HISTORIES ?? 200)
const AT_ONCE = 4
/** Every step is a few round trips where the database is a server. */
const STEPS = { sqlite: 45, postgres: 25 } as const

async function runHistories(store: Store, seed: number, count: number, steps?: number): Promise<void> {
  let next = 0
  const worker = async (): Promise<void> => {
    while (next < count) await runHistory(store, seed + next++, steps)
  }
  await Promise.all(Array.from({ length: AT_ONCE }, worker))
}

for (const driver of drivers) {
  test(`${driver.name}: order, fences and completeness hold through ${HISTORIES} random histories`, async (t) => {
    const store = await (await newDatabase(t, driver)).open()
    await runHistories(store, drawSeed(t), HISTORIES, STEPS[driver.name as keyof typeof STEPS])
  })
}

/** Stores that are wrong, each in one way: the model has to see it. */
const FAULTS: Record<string, [fault: (processing: ProcessingStore) => Partial<ProcessingStore>, seen: RegExp]> = {
  'a late ack is accepted': [
    (processing) => ({
      ack: async (request) =>
        (await processing.ack(request))!.map((one) =>
          one.ok ? one : { id: one.id, ok: true, state: 'done', leaseExpiresAt: null, availableAt: 0 },
        ),
    }),
    /acknowledged under a lease that was lost/,
  ],
  'the lock of a lane is ignored': [
    (processing) => ({ claim: (request) => processing.claim({ ...request, now: request.now + 600_000 }) }),
    /under a live lease|died early|each event once/,
  ],
  'order is ignored': [
    (processing) => ({ claim: (request) => processing.claim({ ...request, ordered: false }) }),
    /overtook|under a live lease|a run is in order/,
  ],
  'an acknowledged event comes back': [
    (processing) => {
      const seen: ClaimedEvent[] = []
      return {
        claim: async (request) => {
          const claimed = (await processing.claim(request))!
          const old = seen.find(({ event }) => event.companyId === request.tenant.companyId)
          seen.push(...claimed)
          return claimed.length < request.limit && old && !claimed.includes(old) ? [...claimed, old] : claimed
        },
      }
    },
    /acknowledged and handed out again|live lease|overtook|died early|each event once|that was named|no more bytes/,
  ],
  'an event is lost': [
    (processing) => ({
      claim: async (request) => {
        const claimed = (await processing.claim(request))!
        const [lost, ...rest] = claimed
        if (!lost || lost.event.id % 7 !== 0) return claimed
        await processing.ack({ ...request, items: [{ id: lost.event.id, leaseId: lost.leaseId }] })
        return rest
      },
    }),
    /nobody acknowledged it|was lost in|overtook|live lease/,
  ],
  'a lease that was released still counts': [
    (processing) => ({
      release: async (request) => {
        const answers = await processing.release({ ...request, items: [] })
        return (
          answers &&
          request.items.map(({ id }) => ({ id, ok: true, state: 'pending', leaseExpiresAt: 0, availableAt: 0 }))
        )
      },
    }),
    /./,
  ],
}

for (const [name, [fault, seen]] of Object.entries(FAULTS)) {
  test(`it would be seen if ${name}`, async (t) => {
    const store = await (await newDatabase(t, drivers[0]!)).open('tool')
    const wrong: Store = { ...store, processing: { ...store.processing, ...fault(store.processing) } }
    await assert.rejects(runHistories(wrong, drawSeed(t), 200), seen)
  })
}
