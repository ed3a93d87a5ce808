// GET /v1/inbox/events and GET /v1/inbox/refusals: what there is, newest first, a page at a time.

import type { EventKind } from '../../model/event.ts'
import { accessPathOf } from '../../model/event-list.ts'
import { eventView } from '../../model/event-view.ts'
import { writeCursor } from '../../model/list-cursor.ts'
import { isScope } from '../../model/principal.ts'
import { DEFAULT_SUBSCRIPTION, type DeliveryState, STATES } from '../../model/processing.ts'
import { queryWords } from '../../model/text-search.ts'
import { isSubscriptionName } from '../../processing/commands.ts'
import { isoMoment, oneOf, type Parameter, textUpTo } from '../../runtime/parameter.ts'
import type { EventFilter } from '../../store/contract/inbox.ts'
import { callerOf, jsonAnswer, type Operation } from '../call.ts'
import { readQuery } from '../query.ts'
import { NO_SUBSCRIPTION } from './claims.ts'
import { watchClient } from './client-gone.ts'
import { cursorParameter, DEFAULT_LIMIT, eventCursorParameter, limitParameter, nextAfter } from './cursor.ts'
import type { InboxOptions } from './options.ts'
import { createStates } from './states.ts'
import { refusalView } from './views.ts'

const MAX_REF = 512

/** Tokens without a scope have the empty one. */
const scopeParameter: Parameter<string> = (text) => {
  if (text !== '' && !isScope(text)) throw new Error('must be a scope: 1 to 64 of a-z, 0-9, "_", ".", ":" and "-"')
  return text
}

const subscriptionParameter: Parameter<string> = (text) => {
  if (!isSubscriptionName(text)) throw new Error('must be the name of a subscription')
  return text
}

/** One place for each filter. */
const EVENT_QUERY = {
  limit: limitParameter,
  cursor: eventCursorParameter,
  q: (text: string) => queryWords(textUpTo(200)(text)),
  channel_ref: textUpTo(MAX_REF),
  contact_email: textUpTo(320),
  source_ref: textUpTo(MAX_REF),
  received_after: isoMoment,
  received_before: isoMoment,
  kind: oneOf<EventKind>('event', 'revision'),
  state: oneOf<DeliveryState>(...STATES),
  subscription: subscriptionParameter,
  scope: scopeParameter,
  key_id: textUpTo(32),
  message_type: textUpTo(64),
}

export function listOperations(options: InboxOptions) {
  const { inbox, claims, clock, listRefusals, awaitIndex } = options
  const { eventViews } = createStates(options)

  const listEvents: Operation = async (call) => {
    const query = readQuery(call.req, EVENT_QUERY)
    if ('problem' in query) return query.problem
    const { limit = DEFAULT_LIMIT, cursor, ...given } = query.values
    const { state, subscription = DEFAULT_SUBSCRIPTION } = given
    if (given.subscription !== undefined && state === undefined) {
      return {
        code: 'invalid_request',
        message: 'The query parameter subscription needs state beside it. Add state, or leave subscription out.',
      }
    }
    const filter: EventFilter = {
      words: given.q,
      channelRef: given.channel_ref,
      contactEmail: given.contact_email,
      sourceRef: given.source_ref,
      receivedAfter: given.received_after,
      receivedBefore: given.received_before,
      kind: given.kind,
      state: state && { is: state, subscription, now: clock.now() },
      scope: given.scope,
      keyId: given.key_id,
      messageType: given.message_type,
    }
    const byTime = accessPathOf(filter) === 'time'
    if (cursor && byTime !== (cursor.receivedAt !== null)) {
      return {
        code: 'invalid_request',
        message: 'The cursor belongs to a list with other filters. Use the same filters for every page.',
      }
    }
    const tenant = callerOf(call)
    if (subscription !== DEFAULT_SUBSCRIPTION) {
      const known = await claims.subscriptions(tenant)
      if (!known.some(({ name }) => name === subscription)) return NO_SUBSCRIPTION
    }
    const lag = await awaitIndex()
    const client = watchClient(call, { onEnd: false })
    const page = await inbox.events(tenant, filter, cursor ?? null, limit, client.gone).finally(client.forget)
    return jsonAnswer({
      // Where a state was asked for, all have it: what changed since then, or is so elsewhere, would only confuse.
      events: state ? page.events.map((row) => eventView(row, state)) : await eventViews(tenant, page.events),
      next: page.next && writeCursor(byTime ? page.next : { id: page.next.id, receivedAt: null }),
      ...(page.partial ? { partial: true } : {}),
      ...lagField(lag),
    })
  }

  const refusals: Operation = async (call) => {
    const query = readQuery(call.req, { limit: limitParameter, cursor: cursorParameter })
    if ('problem' in query) return query.problem
    const { limit = DEFAULT_LIMIT, cursor } = query.values
    const rows = await listRefusals(callerOf(call), cursor ?? Number.MAX_SAFE_INTEGER, limit + 1)
    return jsonAnswer({
      refusals: rows.slice(0, limit).map(refusalView),
      next: nextAfter(rows, limit, ({ id }) => id),
    })
  }

  return { listEvents, listRefusals: refusals }
}

/** Present only where something is missing. */
export function lagField(lag: number): { readonly index_lag?: number } {
  return lag > 0 ? { index_lag: lag } : {}
}
