// Forgets the deliveries of events that leave the journal, and lets their lanes go on.

import { type DeliveryState, laneTimes } from './processing.ts'
import { ask, type LaneChange, type Plan } from './processing-plan.ts'
import { UnitOfWork } from './processing-unit-of-work.ts'

export function* planForget(ids: readonly number[], now: number): Plan<void> {
  const { deliveries, others } = yield* ask('lock', { ids, runs: false, now: null })
  const gone = new Set(ids)
  const [going, staying] = [true, false].map((is) => deliveries.filter(({ eventId }) => gone.has(eventId) === is))
  if (going!.length === 0) return
  yield* ask('deleteDeliveries', { ids: going!.map(({ eventId }) => eventId) })
  const lanes = Array.from(Map.groupBy(going!, ({ lane }) => lane))
  const ofLanes = lanes.map(([lane]) => lane)
  const facts = new Map((yield* ask('pendingFacts', { lanes: ofLanes, now })).map((one) => [one.lane, one]))
  const leases = new UnitOfWork(staying!, others)
  const changes = lanes.map(([lane, some]): LaneChange => {
    const minus = (state: DeliveryState) => -some.filter((one) => one.state === state).length
    const times = laneTimes(leases.leasesOf(lane), facts.get(lane) ?? { head: null, openAt: null })
    return { lane, ...times, done: minus('done'), dead: minus('dead') }
  })
  yield* ask('saveLanes', { lanes: changes })
  yield* ask('deleteEmptyLanes', { lanes: ofLanes })
}
