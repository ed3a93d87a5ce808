// Reads the journal by id. Readers see committed rows only.

import type { Conversation } from '../../model/conversation.ts'
import type { EventIndexEntry, Repeats, StoredEvent } from '../../model/event.ts'
import type { Tenant } from '../../model/principal.ts'

export interface EventReader {
  /** The highest id that readers may see: every row at or below it is committed and final. */
  watermark(): Promise<number>
  /** A row of the journal, event or revision. Without a tenant: of any tenant (operators only). */
  find(id: number, tenant?: Tenant): Promise<StoredEvent | null>
  /** The bytes as sent; null if there is no such row or it was erased. Fails if the digest does not match. */
  payload(id: number, tenant?: Tenant): Promise<Uint8Array | null>
  /** The fields of a JSON document that hold the payload (model/payload.ts); null as above. */
  payloadFields(id: number, tenant: Tenant): Promise<Uint8Array | null>
  /** Revisions of an event, oldest first, from after the given id. */
  revisions(eventId: number, afterId: number, limit: number): Promise<StoredEvent[]>
  /** The event's index entry; null until it is indexed. */
  indexEntry(event: StoredEvent): Promise<EventIndexEntry | null>
  /** Re-send counts; null if there are none, or they are not indexed yet. */
  repeats(event: StoredEvent): Promise<Repeats | null>
  /** The conversation of a channel_ref. */
  conversation(tenant: Tenant, channelRef: string): Promise<Conversation | null>
}
