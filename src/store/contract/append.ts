// Append: makes messages durable.
//
// Promises
// - When `append` resolves, every item that did not fail is on disk. When it rejects with `unavailable` or `fatal`, the
//   outcome is unknown: some items may have been stored.
// - One commit a call, or one for several calls that were waiting together. Items of a company are taken in order (a
//   revision may get a higher id than new messages of the same call); two equal items in one call give one event and
//   one duplicate.
// - Inside a tenant, a source_ref (or, without one, an Idempotency-Key) is one event for ever.
// - A repeated mintedKey is the same arrival: for a first arrival it answers `stored` with the first id and adds
//   nothing. (A retried re-send may be counted twice; its bytes are kept once.)
// - An item that cannot be stored fails alone, also if that is because of a damaged page.
// - Append updates nothing that unrelated messages share, except the id sequence: no counter, no conversation.
// - Ids are never reused. On a store with one writer, id order is commit order.

import type { EventMeta } from '../../model/event.ts'

export interface AppendItem extends EventMeta {
  /** A UUID minted by the node before its first try. */
  readonly mintedKey: string
  /** The body's bytes, as sent. */
  readonly payload: Uint8Array
}

export type AppendOutcome =
  /** First arrival. */
  | { readonly outcome: 'stored'; readonly id: number }
  /** A re-send with the bytes of the first; `id` is the first's. */
  | { readonly outcome: 'duplicate'; readonly id: number }
  /** A re-send with other bytes, which are kept as a revision; `id` is the first's. */
  | { readonly outcome: 'conflict'; readonly id: number }
  /**
   * This item alone could not be stored; `isDamaged`: since a page that it needs is damaged; `isMoved`: since its tenant was moved to
   * another database.
   */
  | { readonly outcome: 'failed'; readonly reason: string; readonly isDamaged?: true; readonly isMoved?: true }

export interface Appender {
  append(items: readonly AppendItem[]): Promise<AppendOutcome[]>
}
