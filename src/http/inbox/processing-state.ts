// Views with the processing state of the default subscription: the state of events, the unprocessed count of conversations.

import type { Conversation } from '../../model/conversation.ts'
import { conversationView } from '../../model/conversation-view.ts'
import type { StoredEvent } from '../../model/event.ts'
import type { DeliveryState } from '../../model/processing.ts'
import type { Processor } from '../../processing/claims.ts'
import type { InboxOptions } from './options.ts'

export function createProcessingState({ claims }: Pick<InboxOptions, 'claims'>) {
  /** An event without a delivery row is pending. Revisions are not processed. */
  const statesOf = async (caller: Processor, events: readonly StoredEvent[]) => {
    const known = await claims.states(
      caller,
      events.filter(({ kind }) => kind === 'event').map(({ id }) => id),
    )
    return ({ id, kind }: StoredEvent): DeliveryState | null => (kind === 'event' ? (known.get(id) ?? 'pending') : null)
  }

  return {
    statesOf,
    /** Uses the counters of each conversation and reads no event. */
    async conversationViews(caller: Processor, rows: readonly Conversation[]) {
      const counts = await claims.counts(
        caller,
        rows.map(({ id }) => id),
      )
      return rows.map((row) => {
        const { done, dead } = counts.get(row.id) ?? { done: 0, dead: 0 }
        return conversationView(row, done + dead)
      })
    },
  }
}
