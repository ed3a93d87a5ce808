// GET /v1/inbox/events and GET /v1/inbox/refusals: lists, newest first, in pages.

import type { EventKind } from '../../model/event.ts'
import { accessPathOf } from '../../model/event-list.ts'
import { eventView } from '../../model/event-view.ts'
import { writeCursor } from '../../model/list-cursor.ts'
import { isScope } from '../../model/principal.ts'
import { DEFAULT_SUBSCRIPTION, type DeliveryState, STATES } from '../../model/processing.ts'
import { queryWords } from '../../model/text-search.ts'
import { isSubscriptionName } from '../../processing/commands.ts'
import { isoMoment, oneOf, type Parameter, textUpTo } from '../../runtime/parameter.ts'
import type { StoredRefusal } from '../../model/refusal.ts'
import type { EventFilter } from '../../store/contract/inbox.ts'
import { callerOf, jsonAnswer } from '../call.ts'
import { DEFAULT_LIMIT, eventCursorParameter, idCursor, idCursorParameter, limitParameter, pageOf } from '../paging.ts'
import { invalidRequest } from '../problem.ts'
import { withQuery } from '../query.ts'
import { NO_SUBSCRIPTION } from './claims.ts'
import { disconnectSignal } from './disconnect-signal.ts'
import type { InboxOptions } from './options.ts'
import { createProcessingState } from './processing-state.ts'
import { refusalView } from './views.ts'

const MAX_REF = 512
/** Bodies in a page of refusals: the text of a page is written in one turn, and a byte may take six characters. */
const REFUSAL_PAGE_BYTES = 512 * 1024

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
  const { inbox, claims, clock, listRefusals, awaitIndex } = options
  const { eventViews } = createProcessingState(options)

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
    const tenant = callerOf(call)
    if (subscription !== DEFAULT_SUBSCRIPTION) {
      const known = await claims.subscriptions(tenant)
      if (!known.some(({ name }) => name === subscription)) return NO_SUBSCRIPTION
    }
    const lag = await awaitIndex(given.q ? 'words' : 'entries')
    const page = await inbox.events(tenant, filter, cursor ?? null, limit, disconnectSignal(call.req.socket))
    return jsonAnswer({
      // With a filter by state every row shows that state, also if it changed since the read.
      events: state ? page.events.map((row) => eventView(row, state)) : await eventViews(tenant, page.events),
      next: page.next && (byTime ? writeCursor(page.next) : idCursor(page.next.id)),
      ...(page.partial ? { partial: true } : {}),
      ...lagField(lag),
    })
  })

  const refusals = withQuery({ limit: limitParameter, cursor: idCursorParameter }, async (call, query) => {
    const { limit = DEFAULT_LIMIT, cursor } = query
    const rows = await listRefusals(callerOf(call), cursor ?? Number.MAX_SAFE_INTEGER, limit + 1)
    const { page, next } = pageOf(rows, Math.min(limit, countFitting(rows)), ({ id }) => idCursor(id))
    return jsonAnswer({ refusals: page.map(refusalView), next })
  })

  return { listEvents, listRefusals: refusals }
}

/** How many of the refusals fit into a page; at least one. */
function countFitting(refusals: readonly StoredRefusal[]): number {
  let bytes = 0
  const tooMany = refusals.findIndex(({ body }, n) => {
    bytes += body.byteLength
    return n > 0 && bytes > REFUSAL_PAGE_BYTES
  })
  return tooMany === -1 ? refusals.length : tooMany
}

/** Present only while the index lags. */
export function lagField(lag: number): { readonly index_lag?: number } {
  return lag > 0 ? { index_lag: lag } : {}
}
