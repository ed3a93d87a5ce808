// A batch of appends as it crosses to the writer thread: one flat array of cells and one buffer with all bytes, which is
// transferred. Measured for 32 rows of 340 bytes: 50 µs to send like this, 150 µs as an array of objects.
// Only bytes cross, never parsed JSON: cloning fails on nesting that JSON.parse takes without trouble.
//
// The digests are made on this side: the writer is one for all, and what it need not do itself makes it quicker for all.
//
//   bytes of an item   digest 16 · minted key 16 · SHA-256 32 · payload

import { createIdentity, createMintedDigest, createSha256, DIGEST_BYTES, SHA256_BYTES } from '../../model/dedupe.ts'
import type { EventMeta } from '../../model/event.ts'
import type { AppendItem } from '../contract/append.ts'

type Cell = string | number | null

export interface AppendBatch {
  readonly cells: readonly Cell[]
  readonly bytes: Uint8Array<ArrayBuffer>
}

/** One item of a batch, seen in place. */
export interface AppendRow extends EventMeta {
  /** What makes this message one message. */
  readonly digest: Uint8Array
  /** Null where the item has none: such a row fails alone, as any other that a column does not take. */
  readonly mintedKey: Uint8Array | null
  readonly sha256: Uint8Array
  readonly payload: Uint8Array
}

export type PackBatch = (items: readonly AppendItem[]) => AppendBatch

const CELLS_PER_ITEM = 17
const NO_KEY = new Uint8Array(DIGEST_BYTES)
const MINTED_AT = DIGEST_BYTES
const SHA256_AT = 2 * DIGEST_BYTES
const PAYLOAD_AT = SHA256_AT + SHA256_BYTES

export function createPackBatch(dedupeKey: Uint8Array): PackBatch {
  const identityOf = createIdentity(dedupeKey)
  const mintedDigest = createMintedDigest()
  const sha256Of = createSha256()

  return (items) => {
    let size = 0
    for (const item of items) size += PAYLOAD_AT + item.payload.byteLength
    const bytes = new Uint8Array(size)
    const cells: Cell[] = []
    let at = 0
    for (const item of items) {
      const hasKey = typeof item.mintedKey === 'string'
      const minted = hasKey ? mintedDigest(item.mintedKey) : NO_KEY
      bytes.set(minted, at + MINTED_AT)
      bytes.set(identityOf(item, minted), at)
      bytes.set(sha256Of(item.payload), at + SHA256_AT)
      bytes.set(item.payload, at + PAYLOAD_AT)
      at += PAYLOAD_AT + item.payload.byteLength
      cells.push(
        item.accountId,
        item.companyId,
        item.receivedAt,
        item.keyId,
        item.scope,
        item.route,
        item.sourceRef,
        item.channelRef,
        item.idempotencyKey,
        item.contentType,
        item.origin,
        item.requestId,
        item.traceparent,
        item.userAgent,
        item.remoteAddr,
        item.payload.byteLength,
        hasKey ? 1 : 0,
      )
    }
    return { cells, bytes }
  }
}

export function* unpackBatch({ cells, bytes }: AppendBatch): Generator<AppendRow> {
  let offset = 0
  for (let at = 0; at < cells.length; at += CELLS_PER_ITEM) {
    const end = offset + PAYLOAD_AT + (cells[at + 15] as number)
    yield {
      digest: bytes.subarray(offset, offset + DIGEST_BYTES),
      mintedKey: cells[at + 16] === 1 ? bytes.subarray(offset + MINTED_AT, offset + SHA256_AT) : null,
      sha256: bytes.subarray(offset + SHA256_AT, offset + PAYLOAD_AT),
      payload: bytes.subarray(offset + PAYLOAD_AT, end),
      accountId: cells[at] as number,
      companyId: cells[at + 1] as number,
      receivedAt: cells[at + 2] as number,
      keyId: cells[at + 3] as string,
      scope: cells[at + 4] as string,
      route: cells[at + 5] as string,
      sourceRef: cells[at + 6] as string | null,
      channelRef: cells[at + 7] as string | null,
      idempotencyKey: cells[at + 8] as string | null,
      contentType: cells[at + 9] as string,
      origin: cells[at + 10] as AppendRow['origin'],
      requestId: cells[at + 11] as string,
      traceparent: cells[at + 12] as string | null,
      userAgent: cells[at + 13] as string | null,
      remoteAddr: cells[at + 14] as string | null,
    }
    offset = end
  }
}
