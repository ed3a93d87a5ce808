// Conversations: the list by latest activity, one by its id, and the events of one, oldest first.

import { textUpTo } from '../../runtime/parameter.ts'
import { type Call, callerOf, idIn, jsonAnswer } from '../call.ts'
import { DEFAULT_LIMIT, idCursorParameter, lagField, limitParameter, pageAnswer } from '../paging.ts'
import { withQuery } from '../query.ts'
import { cursorProblem } from './cursor-ahead.ts'
import type { InboxOptions } from './options.ts'
import { createProcessingState } from './processing-state.ts'

const NOT_FOUND = { code: 'not_found' } as const
const PAGE = { limit: limitParameter, cursor: idCursorParameter }

export function conversationOperations(options: InboxOptions) {
  const { inbox, lists, events, clock, awaitIndex, resumePointOf } = options
  const { conversationViews } = createProcessingState(options)

  const find = async (call: Call) => {
    const id = idIn(call)
    return id === null ? null : inbox.conversation(callerOf(call), id)
  }

  const listConversations = withQuery({ ...PAGE, channel_ref: textUpTo(512) }, async (call, query) => {
    const { limit = DEFAULT_LIMIT, cursor, channel_ref: channelRef } = query
    const ahead = await cursorProblem(resumePointOf, callerOf(call), cursor ?? null)
    if (ahead) return ahead
    const lag = await awaitIndex()
    if (channelRef !== undefined) {
      const one = await events.conversation(callerOf(call), channelRef)
      const conversations = await conversationViews(callerOf(call), one ? [one] : [])
      return jsonAnswer({ conversations, next: null, ...lagField(lag) })
    }
    const page = await lists.conversations(callerOf(call), cursor ?? Number.MAX_SAFE_INTEGER, limit)
    return pageAnswer('conversations', page, lag)
  })

  const showConversation = withQuery({}, async (call) => {
    const lag = await awaitIndex()
    const found = await find(call)
    if (!found) return NOT_FOUND
    const [conversation] = await conversationViews(callerOf(call), [found])
    return jsonAnswer({ conversation, ...lagField(lag) })
  })

  const listConversationEvents = withQuery(PAGE, async (call, { limit = DEFAULT_LIMIT, cursor }) => {
    const ahead = await cursorProblem(resumePointOf, callerOf(call), cursor ?? null)
    if (ahead) return ahead
    const lag = await awaitIndex()
    const found = await find(call)
    if (!found) return NOT_FOUND
    const page = await lists.conversationEvents(callerOf(call), found.id, cursor ?? 0, limit, clock.now())
    return pageAnswer('events', page, lag)
  })

  return { listConversations, showConversation, listConversationEvents }
}
