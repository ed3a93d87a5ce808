// How what is stored is shown: names in snake_case, times as ISO text in UTC, digests in hexadecimal.

import type { Contact, Conversation } from '../../model/conversation.ts'
import type { EventIndexEntry, Repeats, StoredEvent } from '../../model/event.ts'
import type { DeliveryState } from '../../model/processing.ts'
import type { StoredRefusal } from '../../model/refusal.ts'
import { isoTime } from '../../runtime/clock.ts'

export function eventView(
  { event, entry }: { readonly event: StoredEvent; readonly entry: EventIndexEntry | null },
  state: DeliveryState | null,
) {
  return {
    id: event.id,
    kind: event.kind,
    state,
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
    sha256: digestOf(event),
    erased_at: event.erasedAt === null ? null : isoTime(event.erasedAt),
  }
}

/** Everything that is known of an event but its payload. */
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
    resends: repeats?.resends ?? 0,
    revisions: repeats?.revisions ?? 0,
    last_seen_at: isoTime(Math.max(event.receivedAt, repeats?.lastSeenAt ?? 0)),
  }
}

export function conversationView(conversation: Conversation, unprocessed: number) {
  return {
    id: conversation.id,
    channel_ref: conversation.channelRef,
    event_count: conversation.eventCount,
    unprocessed,
    first_received_at: isoTime(conversation.firstReceivedAt),
    last_event_id: conversation.lastEventId,
    last_received_at: isoTime(conversation.lastReceivedAt),
    first_contact: contactView(conversation.firstContact),
    last_contact: contactView(conversation.lastContact),
    last_snippet: conversation.lastSnippet,
  }
}

export function refusalView(refusal: StoredRefusal) {
  return {
    id: refusal.id,
    received_at: isoTime(refusal.receivedAt),
    error: refusal.code,
    key_id: refusal.keyId,
    route: refusal.route,
    request_id: refusal.requestId,
    headers: refusal.headers,
    body_size: refusal.bodySize,
    // What is not UTF-8 in it is shown as U+FFFD.
    body: Buffer.from(refusal.body).toString('utf8').toWellFormed(),
  }
}

export function digestOf({ sha256 }: StoredEvent): string {
  return Buffer.from(sha256).toString('hex')
}

function contactView({ name, email }: Contact) {
  return { name, email }
}

function promotedFrom({ origin, route }: StoredEvent): number | null {
  return origin === 'promotion' ? Number(/\/(\d+)\/promote$/.exec(route)?.[1]) : null
}
