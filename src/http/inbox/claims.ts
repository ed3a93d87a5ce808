// Claims over HTTP: claim events, then ack, extend or release their leases.

import type { Problem } from '../../model/errors.ts'
import type { LeaseItem, Settled } from '../../model/processing-plan.ts'
import type { Claims } from '../../processing/claims.ts'
import { type LeaseCommand, type Read, readAck, readClaim, readExtend, readRelease } from '../../processing/commands.ts'
import { claimedEventJson, settledView } from '../../processing/views.ts'
import type { Tracing } from '../../runtime/tracing.ts'
import { type Call, callerOf, jsonAnswer, type Operation, rawJsonAnswer } from '../call.ts'
import { MAX_LIST_BYTES, withCommand } from './command.ts'

export const NO_SUBSCRIPTION: Problem = {
  code: 'not_found',
  message:
    'This tenant has no such subscription. Create it with POST /v1/inbox/subscriptions, or leave it out for default.',
}

type ClaimedEvent = Parameters<typeof claimedEventJson>[0]

const OPENING = Buffer.from('{"ok":true,"events":[')
const COMMA = Buffer.from(',')
const CLOSING = Buffer.from(']}')

const listItem = (one: ClaimedEvent, n: number): Uint8Array[] =>
  n === 0 ? claimedEventJson(one) : [COMMA, ...claimedEventJson(one)]

export function createClaimOperations(claims: Claims, tracing: Tracing | null) {
  const settleOperation = <C extends LeaseCommand<LeaseItem>>(
    read: (body: Record<string, unknown>) => Read<C>,
    work: (call: Call, command: C) => Promise<readonly Settled[] | null>,
  ) =>
    withCommand(
      read,
      async (call, command) => {
        const settled = await work(call, command)
        if (settled === null) return NO_SUBSCRIPTION
        if (command.isSingle && !settled[0]!.ok) return { code: 'lease_lost' }
        return jsonAnswer({ events: settled.map(settledView) })
      },
      MAX_LIST_BYTES,
    )

  return {
    claim: withCommand(readClaim, async (call, command) => {
      const client = watchClient(call)
      try {
        const startedAt = performance.now()
        const claimed = await claims.claim(callerOf(call), command, client.disconnected)
        if (claimed === null) return NO_SUBSCRIPTION
        tracing?.claimed(call.exchange.requestId, startedAt, claimed)
        return rawJsonAnswer(Buffer.concat([OPENING, ...claimed.flatMap(listItem), CLOSING]))
      } finally {
        client.unwatch()
      }
    }),
    ack: settleOperation(readAck, (call, { subscription, items }) => claims.ack(callerOf(call), subscription, items)),
    extend: settleOperation(readExtend, (call, { subscription, items, leaseMs }) =>
      claims.extend(callerOf(call), subscription, items, leaseMs),
    ),
    release: settleOperation(readRelease, (call, { subscription, items }) =>
      claims.release(callerOf(call), subscription, items),
    ),
  } satisfies Record<string, Operation>
}

/** Signals when the client disconnects. A half-closed connection counts: no client half-closes and then waits for work. */
function watchClient({ req }: Call): { readonly disconnected: AbortSignal; unwatch(): void } {
  const { socket } = req
  const controller = new AbortController()
  const abort = () => controller.abort()
  if (socket.destroyed || socket.readableEnded) abort()
  socket.once('close', abort)
  socket.once('end', abort)
  return {
    disconnected: controller.signal,
    unwatch: () => {
      socket.off('close', abort)
      socket.off('end', abort)
    },
  }
}
