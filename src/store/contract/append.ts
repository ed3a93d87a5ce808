// Append: a message becomes durable.
//
// Promises
// - When `append` resolves, every item that was not `failed` is on disk. When it rejects with `unavailable` or `fatal`,
//   nobody knows: some items may have been stored.
// - One commit a call, or one for several calls that were waiting together. Items of a company are taken in order (a revision may
//   get an id behind those of new messages of the same call); two equal items in one call are one event and one duplicate.
// - Inside a tenant, a source_ref (or, without one, an Idempotency-Key) is one event for ever.
// - The same mintedKey again is the same arrival again: for a first arrival it answers `stored` with the first id and adds
//   nothing. (A re-send that is tried again may be counted twice; its bytes are kept once.)
// - An item that cannot be stored fails alone.
// - Nothing is updated that unrelated messages share (but the place that gives out ids): no counter, no conversation.
// - Ids are never reused. On a store with one writer they are the order of commits.

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
  /** This item alone could not be stored. */
  | { readonly outcome: 'failed'; readonly reason: string }

export interface Appender {
  append(items: readonly AppendItem[]): Promise<AppendOutcome[]>
}
