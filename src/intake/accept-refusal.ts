// A refusal becomes an event after all: an operator corrects what was sent, and it passes the same validator as any message.
// Accepting again is the same arrival again, and a refusal that was accepted answers with its event.

import type { Problem } from '../model/errors.ts'
import type { Clock } from '../runtime/clock.ts'
import type { RefusalStore } from '../store/contract/refusals.ts'
import type { Accept, Arrival } from './accept.ts'
import { derivedKey } from './derived-key.ts'

export interface AcceptRefusalOptions {
  readonly accept: Accept
  readonly refusals: Pick<RefusalStore, 'find' | 'accept'>
  readonly clock: Clock
}

export type AcceptRefusal = (
  refusalId: number,
  arrival: Omit<Arrival, 'origin' | 'mintedKey' | 'idempotencyKeys' | 'route'>,
) => Promise<{ readonly id: number } | { readonly problem: Problem }>

export function createAcceptRefusal({ accept, refusals, clock }: AcceptRefusalOptions): AcceptRefusal {
  return async (refusalId, arrival) => {
    const { principal } = arrival
    const refusal = await refusals.find(principal, refusalId)
    if (!refusal) return { problem: { code: 'not_found' } }
    if (refusal.acceptedAs !== null) return { id: refusal.acceptedAs }
    const result = await accept({
      ...arrival,
      route: `/v1/console/refusals/${refusalId}/accept`,
      idempotencyKeys: [],
      origin: 'accepted_refusal',
      mintedKey: derivedKey('refusal', principal, refusalId),
    })
    if ('problem' in result) return result
    await refusals.accept(principal, refusalId, { eventId: result.id, at: clock.now(), by: principal.keyId })
    return { id: result.id }
  }
}
