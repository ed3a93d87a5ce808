// JSON view of a conversation for the API: names in snake_case, times as ISO text in UTC.

import type { Contact, Conversation } from './conversation.ts'
import { isoTime } from './event-view.ts'

/** `settled`: its done and dead events. While the index is rebuilt, it may count fewer events than were settled. */
export function conversationView(conversation: Conversation, settled: number) {
  return {
    id: conversation.id,
    channel_ref: conversation.channelRef,
    event_count: conversation.eventCount,
    unprocessed: Math.max(0, conversation.eventCount - settled),
    first_received_at: isoTime(conversation.firstReceivedAt),
    last_event_id: conversation.lastEventId,
    last_received_at: isoTime(conversation.lastReceivedAt),
    first_contact: contactView(conversation.firstContact),
    last_contact: contactView(conversation.lastContact),
    last_snippet: conversation.lastSnippet,
  }
}

function contactView({ name, email }: Contact) {
  return { name, email }
}
