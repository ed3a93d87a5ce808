// JSON view of an event for the API and the commands: snake_case names, times as ISO 8601 in UTC, digests in
// hexadecimal.

import { digestText } from './erasure.ts'
import type { EventIndexEntry, Repeats, StoredEvent } from './event.ts'
import type { DeliveryState } from './processing.ts'

/** `state`: in the default subscription, if requested; null for an event without a state. `lastError`: in lists of dead events. */
export function eventView(
  { event, entry }: { readonly event: StoredEvent; readonly entry: EventIndexEntry | null },
  state?: DeliveryState | null,
  lastError?: string | null,
) {
  return {
    id: event.id,
    kind: event.kind,
    ...(state === undefined ? {} : { state }),
    ...(lastError === undefined ? {} : { last_error: lastError }),
    revises: event.revises,
    promoted_from: promotedFrom(event),
    received_at: isoTime(event.receivedAt),
    source_ref: event.sourceRef,
    channel_ref: event.channelRef,
    conversation_id: entry?.conversationId ?? null,
    contact: { name: entry?.contactName ?? null, email: entry?.contactEmail ?? null },
    message_type: entry?.messageType ?? null,
    snippet: entry?.snippet ?? null,
    warnings: entry?.warnings ?? [],
    unindexed: entry?.unindexed ?? null,
    key_id: event.keyId,
    scope: event.scope,
    origin: event.origin,
    size: event.size,
    sha256: digestText(event),
    erased_at: event.erasedAt === null ? null : isoTime(event.erasedAt),
  }
}

/** All fields of an event except its payload. */
export function eventDetail(
  event: StoredEvent,
  entry: EventIndexEntry | null,
  repeats: Repeats | null,
  state: DeliveryState | null,
) {
  return {
    ...eventView({ event, entry }, state),
    route: event.route,
    content_type: event.contentType,
    idempotency_key: event.idempotencyKey,
    request_id: event.requestId,
    traceparent: event.traceparent,
    user_agent: event.userAgent,
    remote_addr: event.remoteAddr,
    recipe: event.recipe,
    resends: repeats?.resends ?? 0,
    revisions: repeats?.revisions ?? 0,
    last_seen_at: isoTime(Math.max(event.receivedAt, repeats?.lastSeenAt ?? 0)),
  }
}

/** The revision that an event was promoted from; null for every other event. */
export function promotedFrom({ origin, route }: Pick<StoredEvent, 'origin' | 'route'>): number | null {
  return origin === 'promotion' ? Number(/\/(\d+)\/promote$/.exec(route)?.[1]) : null
}

export function isoTime(ms: number): string {
  return new Date(ms).toISOString()
}
