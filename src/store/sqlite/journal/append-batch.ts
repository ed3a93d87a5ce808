// A batch of appends on its way to the writer thread: one JSON text with what is known of each message, and one buffer with
// their bytes, which is transferred. Both cross at a fraction of what a list of objects costs.

import type { EventMeta } from '../../../model/event.ts'
import type { AppendItem } from '../../contract/append.ts'
import { META_COLUMNS, metaOf, metaValues, type Value } from '../../event-columns.ts'

export interface AppendBatch {
  /** A JSON list with a `Meta` for each item. */
  readonly metas: string
  /** The payloads, one behind the other. */
  readonly payloads: Uint8Array<ArrayBuffer>
}

/** The values of META_COLUMNS, then the minted key and the size of the payload. */
type Meta = readonly [...Value[], mintedKey: string, size: number]

/** One item of a batch. */
export interface AppendRow {
  readonly meta: EventMeta
  /** The values of META_COLUMNS. */
  readonly values: readonly Value[]
  readonly mintedKey: string
  readonly payload: Uint8Array
}

export function packBatch(items: readonly AppendItem[]): AppendBatch {
  let size = 0
  for (const { payload } of items) size += payload.byteLength
  const payloads = new Uint8Array(size)
  let at = 0
  const metas = items.map((item): Meta => {
    payloads.set(item.payload, at)
    at += item.payload.byteLength
    return [...metaValues(item), item.mintedKey, item.payload.byteLength]
  })
  return { metas: JSON.stringify(metas), payloads }
}

export function* unpackBatch({ metas, payloads }: AppendBatch): Generator<AppendRow> {
  const keyAt = META_COLUMNS.length
  let at = 0
  for (const cells of JSON.parse(metas) as Meta[]) {
    const payload = payloads.subarray(at, at + (cells[keyAt + 1] as number))
    at += payload.byteLength
    yield { meta: metaOf(cells), values: cells.slice(0, keyAt), mintedKey: cells[keyAt] as string, payload }
  }
}
