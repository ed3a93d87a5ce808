// GET /v1/inbox/events and GET /v1/inbox/refusals: what there is, newest first, a page at a time.

import type { EventKind } from '../../model/event.ts'
import { leadOf } from '../../model/event-list.ts'
import { eventView } from '../../model/event-view.ts'
import { writeCursor } from '../../model/list-cursor.ts'
import { isScope } from '../../model/principal.ts'
import { queryWords } from '../../model/words.ts'
import { isoMoment, oneOf, type Parameter, textUpTo } from '../../runtime/parameter.ts'
import type { EventFilter } from '../../store/contract/inbox.ts'
import { callerOf, jsonAnswer, type Operation } from '../call.ts'
import { readQuery } from '../query.ts'
import { cursorParameter, DEFAULT_LIMIT, eventCursorParameter, limitParameter, nextAfter } from './cursor.ts'
import type { InboxOptions } from './operations.ts'
import { refusalView } from './views.ts'

const MAX_REF = 512

/** Tokens without a scope have the empty one. */
const scopeParameter: Parameter<string> = (text) => {
  if (text !== '' && !isScope(text)) throw new Error('must be a scope')
  return text
}

/** One place for each filter. A filter by the state of processing comes here. */
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
  scope: scopeParameter,
  key_id: textUpTo(32),
  message_type: textUpTo(64),
}

export function listOperations({ inbox, listRefusals, awaitIndex }: InboxOptions) {
  const listEvents: Operation = async (call) => {
    const query = readQuery(call.req, EVENT_QUERY)
    if ('problem' in query) return query.problem
    const { limit = DEFAULT_LIMIT, cursor, ...given } = query.values
    const filter: EventFilter = {
      words: given.q,
      channelRef: given.channel_ref,
      contactEmail: given.contact_email,
      sourceRef: given.source_ref,
      receivedAfter: given.received_after,
      receivedBefore: given.received_before,
      kind: given.kind,
      scope: given.scope,
      keyId: given.key_id,
      messageType: given.message_type,
    }
    const byTime = leadOf(filter) === 'time'
    if (cursor && byTime !== (cursor.receivedAt !== null)) {
      return {
        code: 'invalid_request',
        message: 'cursor is of a page with other filters. Keep them from page to page.',
      }
    }
    const lag = await awaitIndex()
    const page = await inbox.events(callerOf(call), filter, cursor ?? null, limit)
    return jsonAnswer({
      events: page.events.map(eventView),
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
