// A batch of appends as it travels: one binary array for each column, made at once, while the bytes still belong to the
// caller. What no database could take is found here, item by item, so that it fails alone.

import { createIdentity, createMintedDigest, createSha256, DIGEST_BYTES, SHA256_BYTES } from '../../model/dedupe.ts'
import type { AppendItem } from '../contract/append.ts'
import { ArrayWriter, sliceArray } from './binary-array.ts'

/** The arguments of intray.append_batch. */
export interface AppendRows {
  readonly count: number
  readonly columns: readonly Buffer[]
}

const NUMBERS = ['companyId', 'accountId', 'receivedAt'] as const
const TEXTS = ['keyId', 'scope', 'route', 'origin', 'contentType', 'requestId'] as const
const REFS = ['sourceRef', 'channelRef', 'idempotencyKey'] as const
const OPTIONAL_TEXTS = ['traceparent', 'userAgent', 'remoteAddr'] as const
type TextColumn = (typeof TEXTS | typeof REFS | typeof OPTIONAL_TEXTS)[number]

export type PackRows = (items: readonly AppendItem[]) => AppendRows

export function createPackRows(dedupeKey: Uint8Array): PackRows {
  const identityOf = createIdentity(dedupeKey)
  const mintedDigest = createMintedDigest()
  const sha256Of = createSha256()

  return (items) => {
    const count = items.length
    let payloadBytes = 0
    for (const item of items) payloadBytes += item.payload.byteLength
    const minted = new ArrayWriter('bytea', count * (4 + DIGEST_BYTES))
    const digests = new ArrayWriter('bytea', count * (4 + DIGEST_BYTES))
    const sha256s = new ArrayWriter('bytea', count * (4 + SHA256_BYTES))
    const payloads = new ArrayWriter('bytea', count * 4 + payloadBytes)
    for (const item of items) {
      const mintedKey = mintedDigest(item.mintedKey)
      minted.bytes(mintedKey)
      digests.bytes(identityOf(item, mintedKey))
      sha256s.bytes(sha256Of(item.payload))
      payloads.bytes(item.payload)
    }
    return {
      count,
      columns: [
        minted.done(),
        digests.done(),
        ...NUMBERS.map((name) => numberColumn(items, name)),
        ...TEXTS.map((name) => textColumn(items, name, true)),
        ...REFS.map((name) => textColumn(items, name, false)),
        ...OPTIONAL_TEXTS.map((name) => textColumn(items, name, true)),
        sha256s.done(),
        payloads.done(),
      ],
    }
  }
}

function numberColumn(items: readonly AppendItem[], name: (typeof NUMBERS)[number]): Buffer {
  const writer = new ArrayWriter('bigint', items.length * 12)
  for (const item of items) writer.bigint(item[name])
  return writer.done()
}

/** PostgreSQL's texts hold no U+0000. What only describes a message is made to fit; what it is known by is not. */
function textColumn(items: readonly AppendItem[], name: TextColumn, isFitted: boolean): Buffer {
  const writer = new ArrayWriter('text', items.length * 48)
  for (const item of items) {
    const text = item[name]
    writer.text(isFitted && text?.includes('\0') ? text.replaceAll('\0', '\uFFFD') : text)
  }
  return writer.done()
}

/** The first half and the second. */
export function splitRows({ count, columns }: AppendRows): [AppendRows, AppendRows] {
  const middle = Math.ceil(count / 2)
  return [
    { count: middle, columns: columns.map((column) => sliceArray(column, 0, middle)) },
    { count: count - middle, columns: columns.map((column) => sliceArray(column, middle, count)) },
  ]
}
