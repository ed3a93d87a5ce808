// Conformance, by model: whatever processors, clocks and crashes do, the promises of src/store/contract/processing.ts hold.
// TEST_HISTORIES=5000 runs more by hand; TEST_SEED=<seed> repeats a run.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Delivery, HELD, handOut, laneTimes, leaseFacts, newDelivery } from '../../src/model/processing.ts'
import type { ClaimedEvent, ProcessingStore } from '../../src/store/contract/processing.ts'
import type { Store } from '../../src/store/contract/store.ts'
import { drivers } from '../support/drivers.ts'
import { backDoorOf } from './back-door.ts'
import type { DeliveryRow, LaneKey, LaneRow } from './lane-rows.ts'
import { type History, type HistoryOptions, runHistory } from './processing-model.ts'
import { drawSeed } from './seed.ts'
import { newDatabase } from './suite.ts'

const HISTORIES = Number(process.env.TEST_HISTORIES ?? 200)
/** So many of them end in the middle. */
const CUT = 100
const AT_ONCE = 4
/** Every step is a few round trips where the database is a server. */
const STEPS = { sqlite: 45, postgres: 25 } as const

async function runHistories(store: Store, seed: number, count: number, options?: HistoryOptions): Promise<History[]> {
  const histories: History[] = []
  let next = 0
  const worker = async (): Promise<void> => {
    while (next < count) histories.push(await runHistory(store, seed + next++, options))
  }
  await Promise.all(Array.from({ length: AT_ONCE }, worker))
  return histories
}

for (const driver of drivers) {
  test(`${driver.name}: order, fences and completeness hold through ${HISTORIES} random histories`, async (t) => {
    const store = await (await newDatabase(t, driver)).open()
    await runHistories(store, drawSeed(t), HISTORIES, { steps: STEPS[driver.name as keyof typeof STEPS] })
  })

  test(`${driver.name}: the times of every lane follow from what is in it, through ${CUT} random histories`, async (t) => {
    const database = await newDatabase(t, driver)
    const histories = await runHistories(await database.open(), drawSeed(t), CUT, { steps: 25, isCut: true })
    const { lanes, deliveries } = await backDoorOf(driver).dumpLanes(database.url)
    const keyOf = (one: LaneKey) => `${one.company_id} ${one.subscription} ${one.lane}`
    const contents = Map.groupBy(deliveries, keyOf)
    const latest = new Map(histories.map((one) => [one.companyId, one.latest]))
    for (const lane of lanes) {
      const fault = laneFault(lane, contents.get(keyOf(lane)) ?? [], latest.get(lane.company_id)!)
      assert.equal(fault, null, `${keyOf(lane)}: ${fault}`)
    }
    const busy = [0, 1, 2].map((held) => lanes.filter((one) => one.held === held && one.head !== null).length)
    assert.ok(
      busy.every((count) => count > 0),
      `lanes under each kind of lease: ${busy}`,
    )
    for (const moved of [{ head: -1 }, { ready_at: 1 }, { open_at: 1 }, { held: 3 }]) {
      const lane = { ...lanes.find(({ held }) => held === 2)!, ...moved }
      assert.ok(laneFault(lane, contents.get(keyOf(lane))!, latest.get(lane.company_id)!), 'the control is found out')
    }
  })
}

/** What is wrong with the times of a lane. When it is open may be told by another that is open too, by the clock of who wrote it. */
function laneFault(lane: LaneRow, rows: readonly DeliveryRow[], latest: number): string | null {
  const pending = rows.filter(({ state }) => state === 'pending').toSorted((a, b) => a.event_id - b.event_id)
  const leased = rows.filter(({ state }) => state === 'leased').map(deliveryOf)
  const head = pending[0] ? { eventId: pending[0].event_id, availableAt: pending[0].available_at } : null
  const soonest = Math.min(...pending.map(({ available_at: at }) => at))
  const leases = leaseFacts(leased)
  const right = laneTimes(leases, { head, openAt: head ? soonest : null })
  // Under an ordered lease what is pending, brought back before it, need not be known until its end.
  const rights = leases?.isOrdered ? [right, laneTimes(leases, { head: null, openAt: null })] : [right]
  const { head: first, ready_at: readyAt, open_at: openAt, held } = lane
  if (!rights.some((one) => first === one.head && readyAt === one.readyAt && held === one.held))
    return `${JSON.stringify(lane)} instead of ${JSON.stringify(right)}`
  if (openAt !== null && (openAt >= readyAt! || held === HELD.ordered)) return `it need not be open: ${openAt}`
  const [opens, may] = [openAt ?? readyAt ?? 0, right.openAt ?? right.readyAt ?? 0]
  return opens >= may && opens <= Math.max(may, latest) ? null : `it opens at ${opens} instead of ${may}`
}

function deliveryOf(row: DeliveryRow): Delivery {
  const { event_id: id, lane, lease_expires_at: expiresAt, ordered } = row
  return handOut(newDelivery(id, lane, row.available_at), {
    id: '',
    expiresAt: expiresAt!,
    ordered: ordered === 1,
    keyId: '',
  })
}

/** Stores that are wrong, each in one way: the model has to see it. */
const FAULTS: Record<string, (processing: ProcessingStore) => Partial<ProcessingStore>> = {
  'a late ack is accepted': (processing) => ({
    ack: async (request) =>
      (await processing.ack(request))!.map((one) =>
        one.ok ? one : { id: one.id, ok: true, state: 'done', leaseExpiresAt: null, availableAt: 0 },
      ),
  }),
  'the lock of a lane is ignored': (processing) => ({
    claim: (request) => processing.claim({ ...request, now: request.now + 600_000 }),
  }),
  'order is ignored': (processing) => ({ claim: (request) => processing.claim({ ...request, ordered: false }) }),
  'an acknowledged event comes back': (processing) => {
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
  'an event is lost': (processing) => ({
    claim: async (request) => {
      const claimed = (await processing.claim(request))!
      const [lost, ...rest] = claimed
      if (!lost || lost.event.id % 7 !== 0) return claimed
      await processing.ack({ ...request, items: [{ id: lost.event.id, leaseId: lost.leaseId }] })
      return rest
    },
  }),
  'a lease that was released still counts': (processing) => ({
    release: async (request) => {
      const answers = await processing.release({ ...request, items: [] })
      return (
        answers &&
        request.items.map(({ id }) => ({ id, ok: true, state: 'pending', leaseExpiresAt: 0, availableAt: 0 }))
      )
    },
  }),
}

for (const [name, fault] of Object.entries(FAULTS)) {
  test(`it would be seen if ${name}`, async (t) => {
    const store = await (await newDatabase(t, drivers[0]!)).open('tool')
    const wrong: Store = { ...store, processing: { ...store.processing, ...fault(store.processing) } }
    // Which rule is broken first depends on the history.
    const isFound = ({ message, cause }: Error) =>
      message.startsWith('history ') && cause instanceof assert.AssertionError
    await assert.rejects(runHistories(wrong, drawSeed(t), 200), isFound)
  })
}
