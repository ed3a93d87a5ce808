// One event: its details, its payload, its revisions, and the promotion of a revision to an event.

import { digestText } from '../../model/erasure.ts'
import { eventDetail } from '../../model/event-view.ts'
import { type Call, callerOf, idIn, jsonAnswer } from '../call.ts'
import type { Answer } from '../problem.ts'
import { DEFAULT_LIMIT, idCursorParameter, lagField, limitParameter, pageAnswer } from '../paging.ts'
import { withQuery } from '../query.ts'
import { headerValues } from '../wire/raw-headers.ts'
import { cursorProblem } from './cursor-ahead.ts'
import type { InboxOptions } from './options.ts'
import { createProcessingState } from './processing-state.ts'

const NOT_FOUND = { code: 'not_found' } as const
const ERASED = { code: 'erased' } as const
const PAGE = { limit: limitParameter, cursor: idCursorParameter }

const JSON_TYPE = /^[\w.+/-]*json\b/i

/** A payload may be anything: browsers must not run, sniff, frame or share it. */
const SAFE_HEADERS = {
  'Content-Type': 'application/json; charset=utf-8',
  'Cache-Control': 'private, no-cache',
  'Content-Security-Policy': "sandbox; default-src 'none'; frame-ancestors 'none'",
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
}

export function eventOperations(options: InboxOptions) {
  const { lists, events, awaitIndex, promote, resumePointOf } = options
  const { statesOf } = createProcessingState(options)

  /** Null for an id that is malformed, unknown, or of another tenant: the answers must not differ. */
  const find = async (call: Call) => {
    const id = idIn(call)
    return id === null ? null : events.find(id, callerOf(call))
  }

  const showEvent = withQuery({}, async (call) => {
    const lag = await awaitIndex()
    const event = await find(call)
    if (!event) return NOT_FOUND
    const payload = await events.payloadFields(event.id, callerOf(call))
    if (payload === null) return ERASED
    const state = (await statesOf(callerOf(call), [event]))(event)
    const detail = eventDetail(event, await events.indexEntry(event), await events.repeats(event), state)
    return withFields(jsonAnswer({ event: detail, ...lagField(lag) }), payload)
  })

  const eventPayload = withQuery({}, async (call) => {
    const event = await find(call)
    if (!event) return NOT_FOUND
    const payload = await events.payload(event.id, callerOf(call))
    if (!payload) return ERASED
    const etag = `"${digestText(event)}"`
    // A message to a hook may be a form or XML, which no browser should interpret.
    const isJson = event.recipe === null || JSON_TYPE.test(event.contentType)
    const type = isJson ? SAFE_HEADERS['Content-Type'] : 'application/octet-stream'
    const headers = { ...SAFE_HEADERS, 'Content-Type': type, ETag: etag }
    if (matchesEtag(call, etag)) return { status: 304, headers, body: '' }
    const disposition = `attachment; filename="event-${event.id}.${isJson ? 'json' : 'bin'}"`
    return { status: 200, headers: { ...headers, 'Content-Disposition': disposition }, body: payload }
  })

  const listRevisions = withQuery(PAGE, async (call, { limit = DEFAULT_LIMIT, cursor }) => {
    const ahead = await cursorProblem(resumePointOf, callerOf(call), cursor ?? null)
    if (ahead) return ahead
    const lag = await awaitIndex()
    const event = await find(call)
    if (!event) return NOT_FOUND
    return pageAnswer('revisions', await lists.revisions(callerOf(call), event.id, cursor ?? 0, limit), lag)
  })

  const promoteRevision = withQuery({}, async (call) => {
    const revisionId = idIn(call)
    if (revisionId === null) return NOT_FOUND
    const { exchange } = call
    const result = await promote({ principal: callerOf(call), revisionId, requestId: exchange.requestId })
    if ('problem' in result) return result.problem
    exchange.eventId = result.id
    return jsonAnswer({ id: result.id, promoted_from: revisionId })
  })

  return { showEvent, eventPayload, listRevisions, promoteRevision }
}

/** Inserts the payload as it was sent: parsing and serialising would lose digits of big numbers and repeated keys. */
function withFields(answer: Answer, fields: Uint8Array): Answer {
  const opening = Buffer.from(`${(answer.body as string).slice(0, -1)},`)
  return { ...answer, body: Buffer.concat([opening, fields, Buffer.from('}')]) }
}

function matchesEtag({ req }: Call, etag: string): boolean {
  return headerValues(req.rawHeaders, 'if-none-match')
    .flatMap((value) => value.split(','))
    .map((value) => value.trim().replace(/^W\//, ''))
    .some((value) => value === etag || value === '*')
}
