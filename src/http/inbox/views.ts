// Views of conversations and refusals: names in snake_case, times as ISO text in UTC. Events: model/event-view.ts.

import type { Contact, Conversation } from '../../model/conversation.ts'
import type { StoredRefusal } from '../../model/refusal.ts'
import { isoTime } from '../../runtime/clock.ts'

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
    // Bytes that are not UTF-8 show as U+FFFD.
    body: Buffer.from(refusal.body).toString('utf8').toWellFormed(),
    accepted_as: refusal.acceptedAs,
  }
}

function contactView({ name, email }: Contact) {
  return { name, email }
}
