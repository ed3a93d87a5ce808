// A batch of appends as it travels: the pen it is written with (pen.ts) and one binary array for each column, made at once, while
// the bytes still belong to the caller. What no database could take was found before (`sound-items.ts`).

import { createIdentity, createMintedDigest, createSha256, DIGEST_BYTES } from '../../model/dedupe.ts'
import type { AppendItem } from '../contract/append.ts'
import { type ArrayWriter, sliceArray } from './binary-array.ts'
import { BindMessage } from './bind-message.ts'
import type { Statement } from './connection.ts'
import { NO_PEN } from './pen.ts'

/** The arguments of intray.append_messages, or of intray.append_late. */
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

export type PackRows = (statement: Statement, batch: Batch, message: BindMessage) => AppendRows

/** The messages of a batch, and with them what was found out about them. */
export interface Batch {
  readonly items: readonly AppendItem[]
  /** What each is known by, one behind the other. */
  readonly keys: Uint8Array
  /** The name of the pen they are written with. */
  readonly pen: string
  /** The keys may come later. */
  readonly isLate: boolean
  /** The places, from 1, of keys that may be in `dedupe`, as far as the node knows. */
  readonly doubts: readonly number[]
}

/** What messages are known by, and what the bytes of one are known by: these are good until it is asked again. */
export interface ItemDigests {
  readonly minted: (item: AppendItem) => Uint8Array
  readonly keys: (items: readonly AppendItem[]) => Uint8Array
  readonly sha256: (item: AppendItem) => Uint8Array
}

export function createItemDigests(dedupeKey: Uint8Array): ItemDigests {
  const identityOf = createIdentity(dedupeKey)
  const mintedDigest = createMintedDigest()
  const sha256Of = createSha256()
  return {
    minted: (item) => mintedDigest(item.mintedKey),
    keys: (items) => {
      const keys = Buffer.allocUnsafe(items.length * DIGEST_BYTES)
      let at = 0
      for (const item of items) {
        const isKnown = item.sourceRef !== null || item.idempotencyKey !== null
        keys.set(identityOf(item, isKnown ? NO_KEY : mintedDigest(item.mintedKey)), at)
        at += DIGEST_BYTES
      }
      return keys
    },
    sha256: (item) => sha256Of(item.payload),
  }
}

export function createPackRows(digests: ItemDigests): PackRows {
  return (statement, { items, keys, pen }, message) => {
    const bytes = (of: (item: AppendItem) => Uint8Array) =>
      message.array('bytea', (writer) => {
        for (const item of items) writer.bytes(of(item))
      })
    const numbers = (name: (typeof NUMBERS)[number]) =>
      message.array('bigint', (writer) => {
        for (const item of items) writer.bigint(item[name])
      })
    message.begin(statement.name)
    message.value(Buffer.from(pen))
    bytes(digests.minted)
    writeKeys(message, keys)
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

export function writeKeys(message: BindMessage, keys: Uint8Array): void {
  message.array('bytea', (writer) => writer.chunks(keys, DIGEST_BYTES))
}

/** PostgreSQL's texts hold no U+0000. What only describes a message is made to fit; what it is known by is not. */
function writeTexts(writer: ArrayWriter, items: readonly AppendItem[], name: TextColumn, isFitted: boolean): void {
  for (const item of items) {
    const text = item[name]
    writer.text(isFitted && text?.includes('\0') ? text.replaceAll('\0', '\uFFFD') : text)
  }
}

/** The first half and the second, under no pen. */
export function splitRows(statement: Statement, rows: AppendRows): [AppendRows, AppendRows] {
  const middle = Math.ceil(rows.count / 2)
  const part = (from: number, to: number): AppendRows => ({
    statement,
    count: to - from,
    message: copyOf(statement, rows.message, (column) => sliceArray(column, from, to)),
    canSplit: true,
  })
  return [part(0, middle), part(middle, rows.count)]
}

/** The same under no pen. */
export function disown(rows: AppendRows): AppendRows {
  return { ...rows, message: copyOf(rows.statement, rows.message, (column) => column) }
}

function copyOf(statement: Statement, message: BindMessage, take: (column: Buffer) => Buffer): BindMessage {
  const copy = new BindMessage()
  const [, ...columns] = message.parameters
  copy.begin(statement.name)
  copy.value(Buffer.from(NO_PEN))
  for (const column of columns) copy.value(take(column))
  copy.end()
  return copy
}
