// A batch of appends on its way to the writer thread: one JSON text with the metadata of all messages, and one
// transferred buffer with their payloads. That costs a fraction of a list of objects.

import type { EventMeta } from '../../../model/event.ts'
import type { AppendItem } from '../../contract/append.ts'
import { metaOf, metaValues, type Value } from '../../event-columns.ts'

export interface AppendBatch {
  /** A JSON list with a `Meta` for each item. */
  readonly metas: string
  /** The payloads, one after the other. */
  readonly payloads: Uint8Array<ArrayBuffer>
}

type Meta = readonly [values: readonly Value[], mintedKey: string, size: number]

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
    const { payload, mintedKey } = item
    payloads.set(payload, at)
    at += payload.byteLength
    return [metaValues(item), mintedKey, payload.byteLength]
  })
  return { metas: JSON.stringify(metas), payloads }
}

export function unpackBatch({ metas, payloads }: AppendBatch): AppendRow[] {
  let at = 0
  return (JSON.parse(metas) as Meta[]).map(([values, mintedKey, size]) => {
    const payload = payloads.subarray(at, at + size)
    at += size
    return { meta: metaOf(values), values, mintedKey, payload }
  })
}
