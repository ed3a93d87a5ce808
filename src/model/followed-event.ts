// An event as stream clients get it: without its payload and with fewer fields than the full record, since it is sent
// for every event to every open stream.

import { digestText } from './erasure.ts'
import type { EventKind } from './event.ts'

export interface FollowedEvent {
  readonly id: number
  readonly kind: EventKind
  /** For a revision: the id of the event it revises. */
  readonly revises: number | null
  readonly receivedAt: number
  readonly sourceRef: string | null
  readonly channelRef: string | null
  readonly conversationId: number | null
  readonly contactName: string | null
  readonly contactEmail: string | null
  readonly messageType: string | null
  readonly snippet: string | null
  readonly size: number
  readonly sha256: Uint8Array
  readonly erasedAt: number | null
  readonly scope: string
  readonly keyId: string
  readonly requestId: string
}

/** As the API shows it. */
export function followedEventView(event: FollowedEvent) {
  return {
    id: event.id,
    kind: event.kind,
    revises: event.revises,
    received_at: new Date(event.receivedAt).toISOString(),
    source_ref: event.sourceRef,
    channel_ref: event.channelRef,
    conversation_id: event.conversationId,
    contact: { name: event.contactName, email: event.contactEmail },
    message_type: event.messageType,
    snippet: event.snippet,
    size: event.size,
    sha256: digestText(event),
    erased_at: event.erasedAt === null ? null : new Date(event.erasedAt).toISOString(),
    scope: event.scope,
    key_id: event.keyId,
    request_id: event.requestId,
  }
}
