// GET /v1/inbox/events and GET /v1/inbox/refusals: lists, newest first, in pages.

import type { EventKind } from '../../model/event.ts'
import { accessPathOf } from '../../model/event-list.ts'
import { isScope } from '../../model/principal.ts'
import { DEFAULT_SUBSCRIPTION, type DeliveryState, STATES } from '../../model/processing.ts'
import { queryWords } from '../../model/text-search.ts'
import { isSubscriptionName } from '../../processing/commands.ts'
import { isoMoment, oneOf, type Parameter, textUpTo } from '../../runtime/parameter.ts'
import type { EventFilter } from '../../store/contract/inbox.ts'
import { callerOf } from '../call.ts'
import { DEFAULT_LIMIT, eventCursorParameter, idCursorParameter, limitParameter, pageAnswer } from '../paging.ts'
import { invalidRequest } from '../problem.ts'
import { withQuery } from '../query.ts'
import { NO_SUBSCRIPTION } from './claims.ts'
import { cursorProblem } from './cursor-ahead.ts'
import { disconnectSignal } from './disconnect-signal.ts'
import type { InboxOptions } from './options.ts'

const MAX_REF = 512

/** The empty text is the scope of tokens without one. */
const scopeParameter: Parameter<string> = (text) => {
  if (text !== '' && !isScope(text)) throw new Error('must be a scope: 1 to 64 of a-z, 0-9, "_", ".", ":" and "-"')
  return text
}

const subscriptionParameter: Parameter<string> = (text) => {
  if (!isSubscriptionName(text)) throw new Error('must be the name of a subscription')
  return text
}

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
  const { lists, claims, clock, awaitIndex, resumePointOf } = options

  const listEvents = withQuery(EVENT_QUERY, async (call, query) => {
    const { limit = DEFAULT_LIMIT, cursor, ...given } = query
    const { state, subscription = DEFAULT_SUBSCRIPTION } = given
    if (given.subscription !== undefined && state === undefined) {
      return invalidRequest(
        'The query parameter subscription needs state beside it. Add state, or leave subscription out.',
      )
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
      return invalidRequest('The cursor belongs to a list with other filters. Use the same filters for every page.')
    }
    const ahead = await cursorProblem(resumePointOf, callerOf(call), cursor?.id ?? null)
    if (ahead) return ahead
    const tenant = callerOf(call)
    if (subscription !== DEFAULT_SUBSCRIPTION) {
      const known = await claims.subscriptions(tenant)
      if (!known.some(({ name }) => name === subscription)) return NO_SUBSCRIPTION
    }
    const lag = await awaitIndex(given.q ? 'words' : 'entries')
    const gone = disconnectSignal(call.req.socket)
    const page = await lists.events(tenant, filter, cursor ?? null, limit, clock.now(), gone)
    return pageAnswer('events', page, lag)
  })

  const refusals = withQuery({ limit: limitParameter, cursor: idCursorParameter }, async (call, query) => {
    const { limit = DEFAULT_LIMIT, cursor } = query
    return pageAnswer('refusals', await lists.refusals(callerOf(call), cursor ?? Number.MAX_SAFE_INTEGER, limit))
  })

  return { listEvents, listRefusals: refusals }
}
