// Reading the journal: what was stored, by id. Readers see committed rows only.

import type { Conversation } from '../../model/conversation.ts'
import type { EventIndexEntry, Repeats, StoredEvent } from '../../model/event.ts'
import type { Tenant } from '../../model/principal.ts'

export interface EventReader {
  /** The highest id a reader may look at: everything at or below it is committed and stays as it is. */
  watermark(): Promise<number>
  /** A row of the journal, event or revision. Without a tenant: whoever it belongs to (operators only). */
  find(id: number, tenant?: Tenant): Promise<StoredEvent | null>
  /** The bytes as sent; null when there is no such row or its content was erased. Fails when the digest does not match. */
  payload(id: number, tenant?: Tenant): Promise<Uint8Array | null>
  /** Revisions of an event, oldest first, from after the given id. */
  revisions(eventId: number, afterId: number, limit: number): Promise<StoredEvent[]>
  /** What the indexer knows of it; null until it got there. */
  indexEntry(event: StoredEvent): Promise<EventIndexEntry | null>
  /** How often it was sent again; null if never, or not folded yet. */
  repeats(event: StoredEvent): Promise<Repeats | null>
  /** The conversation of a channel_ref. */
  conversation(tenant: Tenant, channelRef: string): Promise<Conversation | null>
}
