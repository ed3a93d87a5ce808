// Claims around events that are granted and cannot be handed out, since their rows are gone or damaged: they are parked with that
// reason, and their conversations go on. Without this, one such event would fail every claim that meets it.

import type { Grant } from '../model/processing-enqueue.ts'
import type { Settled } from '../model/processing-plan.ts'
import { LOST_EVENT } from '../model/processing.ts'
import type { ClaimedEvent, ClaimRequest, ReleaseRequest } from './contract/processing.ts'

/** What a claim was granted, as far as it can be read. */
export interface ReadGrants {
  readonly claimed: ClaimedEvent[]
  /** Ids of events that cannot be handed out. */
  readonly lost: readonly number[]
}

/** So many times a claim that was granted lost events alone is repeated at once. */
const MAX_TRIES = 10

/** Events of a claim that cannot tell how large they are: as many of the largest fit into one answer. */
export const UNSIZED_EVENTS = 8

interface ClaimSteps {
  grant(request: ClaimRequest): Promise<readonly Grant[] | null>
  read(grants: readonly Grant[], request: ClaimRequest): Promise<ReadGrants>
  release(request: ReleaseRequest): Promise<readonly Settled[] | null>
}

export async function claimAround(request: ClaimRequest, steps: ClaimSteps): Promise<readonly ClaimedEvent[] | null> {
  for (let tries = 1; ; tries++) {
    const grants = await steps.grant(request)
    if (grants === null || grants.length === 0) return grants && []
    const { claimed, lost } = await steps.read(grants, request)
    const settled = lost.length > 0 ? await steps.release(parking(lost, request)) : []
    // A delivery that retention has deleted since is not parked, and gives nothing back.
    const parked = (settled ?? []).flatMap(({ id, ok }) => (ok ? [id] : []))
    const kept = withoutGivenBack(claimed, grants, parked, request)
    if (kept.length > 0 || tries === MAX_TRIES) return kept
  }
}

/** Parking an event of a run gives back those behind it. */
function withoutGivenBack(
  claimed: readonly ClaimedEvent[],
  grants: readonly Grant[],
  parked: readonly number[],
  { ordered }: ClaimRequest,
): readonly ClaimedEvent[] {
  if (!ordered || parked.length === 0) return claimed
  const laneOf = new Map(grants.map(({ eventId, lane }) => [eventId, lane]))
  return claimed.filter(({ event }) => !parked.some((id) => id < event.id && laneOf.get(id) === laneOf.get(event.id)))
}

function parking(lost: readonly number[], request: ClaimRequest): ReleaseRequest {
  const { tenant, subscription, leaseId, maxAttempts, keyId, now } = request
  const items = lost.map((id) => ({ id, leaseId, delayMs: null, error: LOST_EVENT, isDead: true }))
  return { tenant, subscription, items, maxAttempts, keyId, jitter: 0, now }
}
