// Claims over HTTP: a processor asks for events, and says what became of them.

import type { Problem } from '../../model/errors.ts'
import type { LeaseItem, Settled } from '../../model/processing-plan.ts'
import type { Claims } from '../../processing/claims.ts'
import { type LeaseCommand, type Read, readAck, readClaim, readExtend, readRelease } from '../../processing/commands.ts'
import { settledView } from '../../processing/views.ts'
import { type Call, callerOf, jsonAnswer, type Operation, readCommand } from '../call.ts'
import type { Answer } from '../problem.ts'
import { claimedEvents } from './claimed-events.ts'
import { watchClient } from './client-gone.ts'

/** Room for the longest list of leases there may be. */
const MAX_COMMAND_BYTES = 256 * 1024

export const NO_SUBSCRIPTION: Problem = {
  code: 'not_found',
  message:
    'This tenant has no such subscription. Create it with POST /v1/inbox/subscriptions, or leave it out for default.',
}
const UNAVAILABLE: Problem = {
  code: 'storage_unavailable',
  message:
    'The database cannot be reached, so it is not known whether this was done. Send it again after Retry-After seconds: ' +
    'nothing is done twice.',
}

type Outcome = Answer | Problem

export function createClaimOperations(claims: Claims) {
  const settling =
    <C extends LeaseCommand<LeaseItem>>(
      read: (body: Record<string, unknown>) => Read<C>,
      work: (call: Call, command: C) => Promise<readonly Settled[] | null>,
    ): Operation =>
    (call) =>
      commanded(call, read, async (command) => {
        const settled = await work(call, command)
        if (settled === null) return NO_SUBSCRIPTION
        if (command.isSingle && !settled[0]!.ok) return { code: 'lease_lost' }
        return jsonAnswer({ events: settled.map(settledView) })
      })

  return {
    claim: (call: Call) =>
      commanded(call, readClaim, async (command) => {
        // Nobody half-closes and goes on waiting for work.
        const client = watchClient(call, { onEnd: true })
        try {
          const claimed = await claims.claim(callerOf(call), command, client.gone)
          return claimed === null ? NO_SUBSCRIPTION : claimedEvents(claimed)
        } finally {
          client.forget()
        }
      }),
    ack: settling(readAck, (call, { subscription, items }) => claims.ack(callerOf(call), subscription, items)),
    extend: settling(readExtend, (call, { subscription, items, leaseMs }) =>
      claims.extend(callerOf(call), subscription, items, leaseMs),
    ),
    release: settling(readRelease, (call, { subscription, items }) =>
      claims.release(callerOf(call), subscription, items),
    ),
  } satisfies Record<string, Operation>
}

/** Reads the command and carries it out. */
export async function commanded<C>(
  call: Call,
  read: (body: Record<string, unknown>) => Read<C>,
  work: (command: C) => Promise<Outcome>,
): Promise<Outcome> {
  const given = await readCommand(call, MAX_COMMAND_BYTES)
  if ('problem' in given) return given.problem
  const found = read(given.body)
  return 'problem' in found ? found.problem : available(() => work(found.command))
}

/** What a store that cannot be reached means to a processor. */
export async function available(work: () => Promise<Outcome>): Promise<Outcome> {
  try {
    return await work()
  } catch (error) {
    if ((error as { kind?: unknown } | null)?.kind === 'unavailable') return UNAVAILABLE
    throw error
  }
}
