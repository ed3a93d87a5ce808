// Finds the messages that an erasure names. A message is a first event, its revisions and the events promoted from them: all of
// it is what one sender wrote under one reference.

import { derivedKey } from '../model/derived-key.ts'
import type { ErasureSelector } from '../model/erasure.ts'
import type { StoredEvent } from '../model/event.ts'
import { promotedFrom } from '../model/event-view.ts'
import type { Tenant } from '../model/principal.ts'
import type { ErasureStore } from '../store/contract/erasures.ts'
import type { EventReader } from '../store/contract/events.ts'
import type { EventPosition, InboxReader, ListedEvent } from '../store/contract/inbox.ts'

const PAGE = 100

export interface SelectionStore {
  readonly events: Pick<EventReader, 'find' | 'revisions'>
  readonly inbox: Pick<InboxReader, 'events' | 'conversationEvents'>
  readonly erasures: Pick<ErasureStore, 'findMinted'>
}

/** The next events that match, and where to go on; null at the end. */
export interface SelectedPage {
  readonly events: readonly StoredEvent[]
  readonly next: number | null
}

export async function selectEvents(
  { events, inbox }: SelectionStore,
  tenant: Tenant,
  selector: ErasureSelector,
  after: number | null,
): Promise<SelectedPage> {
  if ('event' in selector) {
    const event = await events.find(selector.event, tenant)
    return { events: event ? [event] : [], next: null }
  }
  if ('conversation' in selector) {
    const listed = await inbox.conversationEvents(tenant, selector.conversation, after ?? 0, PAGE)
    return { events: eventsOf(listed), next: listed.length === PAGE ? listed.at(-1)!.event.id : null }
  }
  const filter = 'email' in selector ? { contactEmail: selector.email } : { sourceRef: selector.sourceRef }
  const position: EventPosition | null = after === null ? null : { id: after, receivedAt: null }
  const page = await inbox.events(tenant, filter, position, PAGE)
  return { events: eventsOf(page.events), next: page.next?.id ?? null }
}

const eventsOf = (listed: readonly ListedEvent[]): StoredEvent[] => listed.map(({ event }) => event)

/** The first event of the message that an event belongs to. */
export async function firstOf({ events }: SelectionStore, tenant: Tenant, event: StoredEvent): Promise<number> {
  const revisionId = promotedFrom(event)
  const source = revisionId === null ? event : ((await events.find(revisionId, tenant)) ?? event)
  return source.revises ?? source.id
}

/**
 * All rows of a message, the first event first, in pages. What was promoted from a page of revisions is looked up once the caller is
 * done with that page: after they are erased, nothing more can be promoted from them.
 */
export async function* rowsOf(
  { events, erasures }: SelectionStore,
  tenant: Tenant,
  firstId: number,
): AsyncGenerator<readonly StoredEvent[]> {
  const first = await events.find(firstId, tenant)
  if (first) yield [first]
  for (let after = 0; ; ) {
    const revisions = await events.revisions(firstId, after, PAGE)
    if (revisions.length === 0) return
    yield revisions
    const keys = revisions.map(({ id }) => derivedKey('promotion', tenant, id))
    const promoted: StoredEvent[] = []
    for (const id of await erasures.findMinted(tenant, keys)) {
      const event = await events.find(id, tenant)
      if (event) promoted.push(event)
    }
    if (promoted.length > 0) yield promoted
    after = revisions.at(-1)!.id
  }
}
