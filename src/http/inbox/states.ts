// What the default subscription makes of what is shown: the state of events, and what is left to do in conversations.

import type { Conversation } from '../../model/conversation.ts'
import type { StoredEvent } from '../../model/event.ts'
import { eventView } from '../../model/event-view.ts'
import type { DeliveryState } from '../../model/processing.ts'
import type { Processor } from '../../processing/claims.ts'
import type { ListedEvent } from '../../store/contract/inbox.ts'
import type { InboxOptions } from './options.ts'
import { conversationView } from './views.ts'

export function createStates({ claims }: Pick<InboxOptions, 'claims'>) {
  /** What it has not taken notice of yet is pending. Revisions are not processed. */
  const statesOf = async (caller: Processor, events: readonly StoredEvent[]) => {
    const known = await claims.states(
      caller,
      events.filter(({ kind }) => kind === 'event').map(({ id }) => id),
    )
    return ({ id, kind }: StoredEvent): DeliveryState | null => (kind === 'event' ? (known.get(id) ?? 'pending') : null)
  }

  return {
    statesOf,
    async eventViews(caller: Processor, rows: readonly ListedEvent[]) {
      const stateOf = await statesOf(
        caller,
        rows.map(({ event }) => event),
      )
      return rows.map((row) => eventView(row, stateOf(row.event)))
    },
    /** From the counts that are kept for each: no event is looked at. */
    async conversationViews(caller: Processor, rows: readonly Conversation[]) {
      const counts = await claims.counts(
        caller,
        rows.map(({ id }) => id),
      )
      return rows.map((row) => {
        const { done, dead } = counts.get(row.id) ?? { done: 0, dead: 0 }
        // While the index is made anew, a conversation counts fewer events than were processed.
        return conversationView(row, Math.max(0, row.eventCount - done - dead))
      })
    },
  }
}
