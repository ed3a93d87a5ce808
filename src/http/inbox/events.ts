// One event: what is known of it, its bytes, its revisions, and making an event of a revision.

import { digestOf, eventDetail, eventView } from '../../model/event-view.ts'
import { type Call, callerOf, idIn, jsonAnswer, type Operation } from '../call.ts'
import type { Answer } from '../problem.ts'
import { readQuery } from '../query.ts'
import { headerValues } from '../wire/raw-headers.ts'
import { cursorParameter, DEFAULT_LIMIT, limitParameter, nextAfter } from './cursor.ts'
import { lagField } from './lists.ts'
import type { InboxOptions } from './options.ts'
import { createStates } from './states.ts'

const NOT_FOUND = { code: 'not_found' } as const
const ERASED = { code: 'erased' } as const

/** Whatever the bytes are, nobody is to run, guess at, frame or pass them on. */
const SAFE_HEADERS = {
  'Content-Type': 'application/json; charset=utf-8',
  'Cache-Control': 'private, no-cache',
  'Content-Security-Policy': "sandbox; default-src 'none'; frame-ancestors 'none'",
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
}

export function eventOperations(options: InboxOptions) {
  const { inbox, events, awaitIndex, promote } = options
  const { statesOf } = createStates(options)

  /** An id that cannot be, is unknown, or belongs to another tenant: all the same. */
  const find = async (call: Call) => {
    const id = idIn(call)
    return id === null ? null : events.find(id, callerOf(call))
  }

  const showEvent: Operation = async (call) => {
    const query = readQuery(call.req, {})
    if ('problem' in query) return query.problem
    const lag = await awaitIndex()
    const event = await find(call)
    if (!event) return NOT_FOUND
    const payload = await events.payloadText(event.id, callerOf(call))
    if (payload === null) return ERASED
    const state = (await statesOf(callerOf(call), [event]))(event)
    const detail = eventDetail(event, await events.indexEntry(event), await events.repeats(event), state)
    return withPayload(jsonAnswer({ event: detail, ...lagField(lag) }), payload)
  }

  const eventPayload: Operation = async (call) => {
    const query = readQuery(call.req, {})
    if ('problem' in query) return query.problem
    const event = await find(call)
    if (!event) return NOT_FOUND
    const payload = await events.payload(event.id, callerOf(call))
    if (!payload) return ERASED
    const etag = `"${digestOf(event)}"`
    const headers = { ...SAFE_HEADERS, ETag: etag }
    if (isKnown(call, etag)) return { status: 304, headers, body: '' }
    const disposition = `attachment; filename="event-${event.id}.json"`
    return { status: 200, headers: { ...headers, 'Content-Disposition': disposition }, body: payload }
  }

  const listRevisions: Operation = async (call) => {
    const query = readQuery(call.req, { limit: limitParameter, cursor: cursorParameter })
    if ('problem' in query) return query.problem
    const { limit = DEFAULT_LIMIT, cursor } = query.values
    const lag = await awaitIndex()
    const event = await find(call)
    if (!event) return NOT_FOUND
    const rows = await inbox.revisions(callerOf(call), event.id, cursor ?? 0, limit + 1)
    return jsonAnswer({
      revisions: rows.slice(0, limit).map((row) => eventView(row, null)),
      next: nextAfter(rows, limit, (row) => row.event.id),
      ...lagField(lag),
    })
  }

  const promoteRevision: Operation = async (call) => {
    const query = readQuery(call.req, {})
    if ('problem' in query) return query.problem
    const revisionId = idIn(call)
    if (revisionId === null) return NOT_FOUND
    const { exchange } = call
    const result = await promote({ principal: callerOf(call), revisionId, requestId: exchange.requestId })
    if ('problem' in result) return result.problem
    exchange.eventId = result.id
    return jsonAnswer({ id: result.id, promoted_from: revisionId })
  }

  return { showEvent, eventPayload, listRevisions, promoteRevision }
}

/**
 * The payload is put into the answer as it was sent: parsed and written again, big numbers would lose digits and repeated
 * keys a value.
 */
function withPayload(answer: Answer, payload: string): Answer {
  return { ...answer, body: `${(answer.body as string).slice(0, -1)},"payload":${payload}}` }
}

function isKnown({ req }: Call, etag: string): boolean {
  return headerValues(req.rawHeaders, 'if-none-match')
    .flatMap((value) => value.split(','))
    .map((value) => value.trim().replace(/^W\//, ''))
    .some((value) => value === etag || value === '*')
}
