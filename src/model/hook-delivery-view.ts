// The latest deliveries of a hook as JSON: what was stored and what was refused, the newest first, each with its verdict.

import { ERRORS } from './errors.ts'
import { isoTime } from './event-view.ts'
import { DELIVERIES_SHOWN, type HookDeliveries } from './hook.ts'

export function hookDeliveryViews({ events, refusals }: HookDeliveries) {
  const stored = events.map(({ event, entry }) => ({
    at: event.receivedAt,
    view: {
      received_at: isoTime(event.receivedAt),
      verdict: 'stored',
      kind: event.kind,
      is_sample: event.origin === 'test',
      event_id: event.id,
      refusal_id: null,
      reason: null,
      request_id: event.requestId,
      recipe: event.recipe,
      source_ref: event.sourceRef,
      channel_ref: event.erasedAt === null ? event.channelRef : null,
      content_type: event.contentType,
      size: event.size,
      contact: { name: entry?.contactName ?? null, email: entry?.contactEmail ?? null },
      message_type: entry?.messageType ?? null,
      snippet: entry?.snippet ?? null,
      warnings: entry?.warnings ?? [],
      is_indexed: entry !== null,
    },
  }))
  const refused = refusals.map((refusal) => ({
    at: refusal.receivedAt,
    view: {
      received_at: isoTime(refusal.receivedAt),
      verdict: refusal.code,
      kind: null,
      is_sample: false,
      event_id: null,
      refusal_id: refusal.id,
      reason: refusal.reason ?? ERRORS[refusal.code].message,
      request_id: refusal.requestId,
      recipe: null,
      source_ref: null,
      channel_ref: null,
      content_type: refusal.headers['content-type'] ?? '',
      size: refusal.bodySize,
      contact: { name: null, email: null },
      message_type: null,
      snippet: null,
      warnings: [],
      is_indexed: false,
    },
  }))
  return [...stored, ...refused]
    .toSorted((a, b) => b.at - a.at)
    .slice(0, DELIVERIES_SHOWN)
    .map(({ view }) => view)
}
