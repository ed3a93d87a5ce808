// Conversations: by latest activity, one by its id, and its events oldest first.

import { textUpTo } from '../../runtime/parameter.ts'
import { callerOf, idIn, jsonAnswer, type Operation } from '../call.ts'
import { readQuery } from '../query.ts'
import { cursorParameter, DEFAULT_LIMIT, limitParameter, nextAfter } from './cursor.ts'
import { lagField } from './lists.ts'
import type { InboxOptions } from './options.ts'
import { createStates } from './states.ts'

const NOT_FOUND = { code: 'not_found' } as const

export function conversationOperations(options: InboxOptions) {
  const { inbox, events, awaitIndex } = options
  const { conversationViews, eventViews } = createStates(options)

  const listConversations: Operation = async (call) => {
    const query = readQuery(call.req, {
      limit: limitParameter,
      cursor: cursorParameter,
      channel_ref: textUpTo(512),
    })
    if ('problem' in query) return query.problem
    const { limit = DEFAULT_LIMIT, cursor, channel_ref: channelRef } = query.values
    const lag = await awaitIndex()
    if (channelRef !== undefined) {
      const one = await events.conversation(callerOf(call), channelRef)
      return jsonAnswer({
        conversations: await conversationViews(callerOf(call), one ? [one] : []),
        next: null,
        ...lagField(lag),
      })
    }
    const rows = await inbox.conversations(callerOf(call), cursor ?? Number.MAX_SAFE_INTEGER, limit + 1)
    return jsonAnswer({
      conversations: await conversationViews(callerOf(call), rows.slice(0, limit)),
      next: nextAfter(rows, limit, ({ lastEventId }) => lastEventId),
      ...lagField(lag),
    })
  }

  const showConversation: Operation = async (call) => {
    const query = readQuery(call.req, {})
    if ('problem' in query) return query.problem
    const lag = await awaitIndex()
    const id = idIn(call)
    const found = id === null ? null : await inbox.conversation(callerOf(call), id)
    if (!found) return NOT_FOUND
    const [conversation] = await conversationViews(callerOf(call), [found])
    return jsonAnswer({ conversation, ...lagField(lag) })
  }

  const listConversationEvents: Operation = async (call) => {
    const query = readQuery(call.req, { limit: limitParameter, cursor: cursorParameter })
    if ('problem' in query) return query.problem
    const { limit = DEFAULT_LIMIT, cursor } = query.values
    const lag = await awaitIndex()
    const id = idIn(call)
    const found = id === null ? null : await inbox.conversation(callerOf(call), id)
    if (!found) return NOT_FOUND
    const rows = await inbox.conversationEvents(callerOf(call), found.id, cursor ?? 0, limit + 1)
    return jsonAnswer({
      events: await eventViews(callerOf(call), rows.slice(0, limit)),
      next: nextAfter(rows, limit, (row) => row.event.id),
      ...lagField(lag),
    })
  }

  return { listConversations, showConversation, listConversationEvents }
}
