// Stores a refused request as an event after an operator has corrected it. It passes the same validator as any message.
// Accepting the same bytes again answers with the same event; other bytes are refused.

import { hash } from 'node:crypto'
import type { Problem } from '../model/errors.ts'
import type { Clock } from '../runtime/clock.ts'
import type { EventReader } from '../store/contract/events.ts'
import type { RefusalStore } from '../store/contract/refusals.ts'
import type { Accept, Arrival } from './accept.ts'
import { derivedKey } from '../model/derived-key.ts'
import { HOOK_PATH } from '../model/hook.ts'

export interface AcceptRefusalOptions {
  readonly accept: Accept
  readonly events: Pick<EventReader, 'find'>
  readonly refusals: Pick<RefusalStore, 'find' | 'accept'>
  readonly clock: Clock
}

export type AcceptRefusal = (
  refusalId: number,
  arrival: Omit<Arrival, 'origin' | 'mintedKey' | 'idempotencyKeys' | 'route'>,
) => Promise<{ readonly id: number } | { readonly problem: Problem }>

const OF_HOOK: Problem = {
  code: 'invalid_request',
  message:
    'A request to a hook is not accepted by hand, because it would skip its recipe. Mend the cause and let the vendor send it again.',
}

export function createAcceptRefusal({ accept, events, refusals, clock }: AcceptRefusalOptions): AcceptRefusal {
  const acceptedBefore = async (id: number, { principal, payload }: Pick<Arrival, 'principal' | 'payload'>) => {
    const event = await events.find(id, principal)
    if (event && hash('sha256', payload, 'buffer').equals(event.sha256)) return { id }
    const message = `This refusal was already accepted as event ${id}, with other bytes. Send the new bytes as a message of their own.`
    return { problem: { code: 'invalid_request', message } satisfies Problem }
  }

  return async (refusalId, arrival) => {
    const { principal } = arrival
    const refusal = await refusals.find(principal, refusalId)
    if (!refusal) return { problem: { code: 'not_found' } }
    if (refusal.route.startsWith(HOOK_PATH)) return { problem: OF_HOOK }
    if (refusal.acceptedAs !== null) return acceptedBefore(refusal.acceptedAs, arrival)
    const result = await accept({
      ...arrival,
      route: `/v1/console/refusals/${refusalId}/accept`,
      idempotencyKeys: [],
      origin: 'accepted_refusal',
      mintedKey: derivedKey('refusal', principal, refusalId),
    })
    if ('problem' in result) return result
    // Another operator may have accepted it at the same time, with other bytes.
    if (result.outcome === 'stored') {
      const event = await events.find(result.id, principal)
      if (event?.requestId !== arrival.requestId) return acceptedBefore(result.id, arrival)
    }
    await refusals.accept(principal, refusalId, { eventId: result.id, at: clock.now(), by: principal.keyId })
    return { id: result.id }
  }
}
