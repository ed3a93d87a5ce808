// Subscriptions, the deliveries of an event, and the requeueing of dead events, over HTTP.

import { DEFAULT_SUBSCRIPTION } from '../../model/processing.ts'
import type { Claims } from '../../processing/claims.ts'
import { isSubscriptionName, readRequeue, readRequeueOne, readSubscription } from '../../processing/commands.ts'
import { deliveryView, subscriptionView } from '../../processing/views.ts'
import type { Tracing } from '../../runtime/tracing.ts'
import type { EventReader } from '../../store/contract/events.ts'
import { type Call, callerOf, idIn, jsonAnswer, type Operation, type Outcome } from '../call.ts'
import { invalidRequest } from '../problem.ts'
import { withQuery } from '../query.ts'
import { orUnavailable } from '../unavailable.ts'
import { createClaimOperations, NO_SUBSCRIPTION } from './claims.ts'
import { OUTCOME_UNKNOWN, withCommand } from './command.ts'
import type { EndpointOperations } from './endpoints.ts'

type Subscription = Awaited<ReturnType<Claims['subscriptions']>>[number]

export function createProcessingOperations(claims: Claims, events: EventReader, tracing: Tracing | null) {
  /** The event that the path names; null if the tenant has none. */
  const eventOf = async (call: Call): Promise<number | null> => {
    const id = idIn(call)
    const event = id === null ? null : await events.find(id, callerOf(call))
    return event?.kind === 'event' ? event.id : null
  }

  const subscriptionBody = (one: Subscription) => subscriptionView(one, claims.rulesOf(one))

  return {
    ...createClaimOperations(claims, tracing),
    requeueEvent: withCommand(readRequeueOne, async (call, { subscription }) => {
      const id = await eventOf(call)
      if (id === null) return { code: 'not_found' }
      const filter = { ids: [id], channelRef: null, deadAfter: null, deadBefore: null }
      const count = await claims.requeue(callerOf(call), subscription, filter, 1)
      return count === null ? NO_SUBSCRIPTION : jsonAnswer({ id, requeued: count === 1 })
    }),
    requeue: withCommand(readRequeue, async (call, { subscription, filter, limit, dryRun }) => {
      const matched = await claims.countDead(callerOf(call), subscription, filter)
      if (matched === null) return NO_SUBSCRIPTION
      call.exchange.isNoOp = dryRun
      const requeued = dryRun ? 0 : await claims.requeue(callerOf(call), subscription, filter, limit)
      return jsonAnswer({ dry_run: dryRun, matched, requeued: requeued ?? 0 })
    }),
    eventHistory: withoutQuery(async (call) => {
      const id = await eventOf(call)
      if (id === null) return { code: 'not_found' }
      return jsonAnswer({ id, deliveries: (await claims.history(callerOf(call), id)).map(deliveryView) })
    }),
    subscriptions: withoutQuery(async (call) =>
      jsonAnswer({ subscriptions: (await claims.subscriptions(callerOf(call))).map(subscriptionBody) }),
    ),
    createSubscription: withCommand(readSubscription, async (call, command) => {
      call.exchange.auditTarget = command.name
      const made = await claims.createSubscription(callerOf(call), command)
      if (made === null) return { code: 'too_many_subscriptions' }
      return jsonAnswer({ created: made.created, subscription: subscriptionBody(made.subscription) })
    }),
    deleteSubscription: withoutQuery(async (call) => {
      const name = call.params.name ?? ''
      if (name === DEFAULT_SUBSCRIPTION) {
        return invalidRequest(
          'The subscription default cannot be deleted. For a fresh start, create another with POST /v1/inbox/subscriptions.',
        )
      }
      const existed = isSubscriptionName(name) && (await claims.deleteSubscription(callerOf(call), name))
      return existed ? jsonAnswer({ name }) : { code: 'not_found' }
    }),
  } satisfies Record<string, Operation>
}

export type ProcessingOperations = ReturnType<typeof createProcessingOperations> & EndpointOperations

function withoutQuery(work: (call: Call) => Promise<Outcome>): Operation {
  return withQuery({}, (call) => orUnavailable(() => work(call), OUTCOME_UNKNOWN))
}
