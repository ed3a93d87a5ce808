// What an export reads, and what an import asks before it appends.
//
// Promises
// - Rows are read in id order and in bounded pages, beside servers. A page of one tenant costs that tenant's rows: it is read by
//   the index, which has to cover them.
// - `held` recognises a message however often and from wherever it is imported: by its reference and bytes, or by the key that
//   identifies a message without a reference. It changes nothing, and counts no re-send.

import type { StoredEvent } from '../../model/event.ts'
import type { Tenant } from '../../model/principal.ts'
import type { AppendItem } from './append.ts'

export interface RowQuery {
  /** Null: every tenant. */
  readonly tenant: Tenant | null
  readonly afterId: number
  readonly throughId: number
  readonly limit: number
}

/** A row that an import has and the database may have too. */
export interface ImportedItem extends AppendItem {
  readonly sha256: Uint8Array
}

/**
 * same: the database holds these bytes, or held them and purged them. erased: it held them, and they were erased. taken: another
 * message has the key of one that has no reference.
 */
export interface Held {
  readonly state: 'same' | 'erased' | 'taken'
  /** Of the first event. */
  readonly eventId: number
}

export interface TransferStore {
  /** Rows of the journal, without their bytes. */
  rows(query: RowQuery): Promise<StoredEvent[]>
  /** The bytes of rows as they are stored, by id, unchecked. No entry: erased or gone. */
  payloads(ids: readonly number[]): Promise<ReadonlyMap<number, Uint8Array>>
  /** For each item in its place; null: it has to be appended, as an event or as a revision. */
  held(items: readonly ImportedItem[]): Promise<(Held | null)[]>
}
