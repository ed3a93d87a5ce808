// A batch of appends as it travels: one binary array for each column, made at once, while the bytes still belong to the
// caller. What no database could take was found before (`sound-items.ts`).

import { createIdentity, createMintedDigest, createSha256, DIGEST_BYTES } from '../../model/dedupe.ts'
import type { AppendItem } from '../contract/append.ts'
import { type ArrayWriter, sliceArray } from './binary-array.ts'
import { BindMessage } from './bind-message.ts'
import type { Statement } from './connection.ts'

/** The arguments of intray.append_messages, or of intray.append_arrivals. */
export interface AppendRows {
  readonly statement: Statement
  readonly count: number
  readonly message: BindMessage
  /** Arrivals cannot be cut in two, and need not be: whatever a column could refuse does not go that way. */
  readonly canSplit: boolean
}

const NUMBERS = ['companyId', 'accountId', 'receivedAt'] as const
const TEXTS = ['keyId', 'scope', 'route', 'origin', 'contentType', 'requestId'] as const
const REFS = ['sourceRef', 'channelRef', 'idempotencyKey'] as const
const OPTIONAL_TEXTS = ['traceparent', 'userAgent', 'remoteAddr'] as const
type TextColumn = (typeof TEXTS | typeof REFS | typeof OPTIONAL_TEXTS)[number]

/** Not looked at where the sender knows the message by something. */
const NO_KEY = new Uint8Array(DIGEST_BYTES)

export type PackRows = (statement: Statement, items: readonly AppendItem[], message: BindMessage) => AppendRows

/** What a message is known by, and what its bytes are known by. Each answers with bytes that are good until it is asked again. */
export interface ItemDigests {
  readonly minted: (item: AppendItem) => Uint8Array
  readonly identity: (item: AppendItem) => Uint8Array
  readonly sha256: (item: AppendItem) => Uint8Array
}

export function createItemDigests(dedupeKey: Uint8Array): ItemDigests {
  const identityOf = createIdentity(dedupeKey)
  const mintedDigest = createMintedDigest()
  const sha256Of = createSha256()
  return {
    minted: (item) => mintedDigest(item.mintedKey),
    identity: (item) => {
      const isKnown = item.sourceRef !== null || item.idempotencyKey !== null
      return identityOf(item, isKnown ? NO_KEY : mintedDigest(item.mintedKey))
    },
    sha256: (item) => sha256Of(item.payload),
  }
}

export function createPackRows(digests: ItemDigests): PackRows {
  return (statement, items, message) => {
    const bytes = (of: (item: AppendItem) => Uint8Array) =>
      message.array('bytea', (writer) => {
        for (const item of items) writer.bytes(of(item))
      })
    const numbers = (name: (typeof NUMBERS)[number]) =>
      message.array('bigint', (writer) => {
        for (const item of items) writer.bigint(item[name])
      })
    message.begin(statement.name)
    bytes(digests.minted)
    bytes(digests.identity)
    for (const name of NUMBERS) numbers(name)
    for (const name of TEXTS) message.array('text', (writer) => writeTexts(writer, items, name, true))
    for (const name of REFS) message.array('text', (writer) => writeTexts(writer, items, name, false))
    for (const name of OPTIONAL_TEXTS) message.array('text', (writer) => writeTexts(writer, items, name, true))
    bytes(digests.sha256)
    bytes((item) => item.payload)
    message.end()
    return { statement, count: items.length, message, canSplit: true }
  }
}

/** PostgreSQL's texts hold no U+0000. What only describes a message is made to fit; what it is known by is not. */
function writeTexts(writer: ArrayWriter, items: readonly AppendItem[], name: TextColumn, isFitted: boolean): void {
  for (const item of items) {
    const text = item[name]
    writer.text(isFitted && text?.includes('\0') ? text.replaceAll('\0', '\uFFFD') : text)
  }
}

/** The first half and the second. */
export function splitRows(statement: Statement, { count, message }: AppendRows): [AppendRows, AppendRows] {
  const middle = Math.ceil(count / 2)
  const part = (from: number, to: number): AppendRows => {
    const half = new BindMessage()
    half.begin(statement.name)
    for (const column of message.parameters) half.value(sliceArray(column, from, to))
    half.end()
    return { statement, count: to - from, message: half, canSplit: true }
  }
  return [part(0, middle), part(middle, count)]
}
