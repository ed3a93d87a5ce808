// A batch of appends as it crosses to the writer thread: one flat array of cells and one buffer with all payloads,
// which is transferred. Measured for 32 rows of 340 bytes: 50 µs to send like this, 150 µs as an array of objects.
// Only bytes cross, never parsed JSON: cloning fails on nesting that JSON.parse takes without trouble.

import type { EventMeta } from '../../model/event.ts'
import type { AppendItem } from '../contract/append.ts'

type Cell = string | number | null

export interface AppendBatch {
  readonly cells: readonly Cell[]
  readonly payloads: Uint8Array<ArrayBuffer>
}

/** One item of a batch, seen in place. */
export interface AppendRow extends EventMeta {
  readonly mintedKey: string
  readonly payload: Uint8Array
}

const CELLS_PER_ITEM = 17

export function packBatch(items: readonly AppendItem[]): AppendBatch {
  let bytes = 0
  for (const item of items) bytes += item.payload.byteLength
  const payloads = new Uint8Array(bytes)
  const cells: Cell[] = []
  let offset = 0
  for (const item of items) {
    payloads.set(item.payload, offset)
    offset += item.payload.byteLength
    cells.push(
      item.mintedKey,
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
    )
  }
  return { cells, payloads }
}

export function* unpackBatch(batch: AppendBatch): Generator<AppendRow> {
  const { cells, payloads } = batch
  let offset = 0
  for (let at = 0; at < cells.length; at += CELLS_PER_ITEM) {
    const size = cells[at + CELLS_PER_ITEM - 1] as number
    yield {
      mintedKey: cells[at] as string,
      accountId: cells[at + 1] as number,
      companyId: cells[at + 2] as number,
      receivedAt: cells[at + 3] as number,
      keyId: cells[at + 4] as string,
      scope: cells[at + 5] as string,
      route: cells[at + 6] as string,
      sourceRef: cells[at + 7] as string | null,
      channelRef: cells[at + 8] as string | null,
      idempotencyKey: cells[at + 9] as string | null,
      contentType: cells[at + 10] as string,
      origin: cells[at + 11] as AppendRow['origin'],
      requestId: cells[at + 12] as string,
      traceparent: cells[at + 13] as string | null,
      userAgent: cells[at + 14] as string | null,
      remoteAddr: cells[at + 15] as string | null,
      payload: payloads.subarray(offset, offset + size),
    }
    offset += size
  }
}
