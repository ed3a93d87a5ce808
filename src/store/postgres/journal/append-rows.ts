// A batch of appends as parameters of intray.append_messages: one binary array per column, packed synchronously, since
// the bytes belong to the caller.

import { createIdentity, createMintedDigest, createSha256 } from '../../../model/dedupe.ts'
import type { EventMeta } from '../../../model/event.ts'
import type { AppendItem } from '../../contract/append.ts'
import { META_COLUMNS } from '../../event-columns.ts'
import { type ArrayWriter, sliceArray } from '../connection/binary-array.ts'
import { BindMessage } from '../connection/bind-message.ts'
import type { Statement } from '../connection/connection.ts'

/** Minted key, digest, SHA-256, payload, then META_COLUMNS. */
const PARAMETERS = Array.from({ length: 4 + META_COLUMNS.length }, (_, n) => `$${n + 1}`).join(', ')

export const APPEND: Statement = {
  name: 'intray_append',
  text: `SELECT ids, outcomes FROM intray.append_messages(${PARAMETERS})`,
}

/** A packed batch, which can be sent repeatedly. */
export interface AppendRows {
  readonly count: number
  readonly message: BindMessage
}

export type PackRows = (items: readonly AppendItem[], message: BindMessage) => AppendRows

export function createPackRows(dedupeKey: Uint8Array): PackRows {
  const identityOf = createIdentity(dedupeKey)
  const mintedDigest = createMintedDigest()
  const sha256Of = createSha256()
  return (items, message) => {
    const bytes = (of: (item: AppendItem) => Uint8Array) =>
      message.array('bytea', (writer) => {
        for (const item of items) writer.bytes(of(item))
      })
    message.begin(APPEND.name)
    bytes((item) => mintedDigest(item.mintedKey))
    bytes((item) => identityOf(item, mintedDigest(item.mintedKey)))
    bytes((item) => sha256Of(item.payload))
    bytes((item) => item.payload)
    for (const { field, type } of META_COLUMNS) {
      if (type === 'text') message.array('text', (writer) => writeTexts(writer, items, field))
      else message.array('bigint', (writer) => writeNumbers(writer, items, field))
    }
    message.end()
    return { count: items.length, message }
  }
}

function writeNumbers(writer: ArrayWriter, items: readonly AppendItem[], field: keyof EventMeta): void {
  for (const item of items) writer.bigint(item[field] as number)
}

/** Refs identify a message: they are stored as they are, or rejected. */
const REFS: ReadonlySet<keyof EventMeta> = new Set(['sourceRef', 'channelRef', 'idempotencyKey'])

/** PostgreSQL text cannot hold U+0000: descriptive fields get a replacement character. */
function writeTexts(writer: ArrayWriter, items: readonly AppendItem[], field: keyof EventMeta): void {
  const isFitted = !REFS.has(field)
  for (const item of items) {
    const text = item[field] as string | null
    writer.text(isFitted && text?.includes('\0') ? text.replaceAll('\0', '\uFFFD') : text)
  }
}

/** Splits a batch into halves. */
export function splitRows({ count, message }: AppendRows): [AppendRows, AppendRows] {
  const middle = Math.ceil(count / 2)
  const part = (from: number, to: number): AppendRows => {
    const half = new BindMessage()
    half.begin(APPEND.name)
    for (const column of message.parameters) half.value(sliceArray(column, from, to))
    half.end()
    return { count: to - from, message: half }
  }
  return [part(0, middle), part(middle, count)]
}
