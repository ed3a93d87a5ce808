// A batch of new messages as it travels to `arrivals`: their keys as arrays, and what they stand for in rows that lie down as they
// are (migrations/0010_arrivals.sql, 0012_late_keys.sql). Made at once, while the bytes still belong to the caller.

import type { AppendItem } from '../contract/append.ts'
import { type AppendRows, type Batch, type ItemDigests, writeKeys } from './append-rows.ts'
import { bigints } from './binary-array.ts'
import type { BindMessage } from './bind-message.ts'
import type { Statement } from './connection.ts'

/** What is larger goes to its own place at once, and is not written twice. */
const LARGEST = 64 * 1024
/**
 * A row should fit on a page of the database: 8,160 bytes, of which it has so many for its messages. Where texts are not
 * ASCII it is larger than we count: put aside by the database, and a little slower.
 */
const ROW_BYTES = 7900
/** Larger batches save nothing this way: the server looks for the messages of each row from the first of the batch on. */
const MOST_IN_BATCH = 512
/** By its ids a message is looked for in one row (events.ts): so far behind the first of a row its last may be. */
export const MOST_IN_ROW = 256
/** What a message needs beside its texts and bytes: digests, and the keys if they are late. */
const MESSAGE_BYTES = 88
const FALSE = Uint8Array.of(0)
const TRUE = Uint8Array.of(1)

const ARRIVE: Statement = {
  name: 'intray_arrive',
  text: `SELECT ids, outcomes, first_id, put_through
  FROM intray.append_late($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
}

/** Null if they cannot go this way. They are of one company after the other: a row holds messages of one. */
export type PackArrivals = (batch: Batch, message: BindMessage) => AppendRows | null

export function createPackArrivals(digests: ItemDigests): PackArrivals {
  return ({ items, keys, pen, isLate, doubts }, message) => {
    if (items.length > MOST_IN_BATCH || items.some(({ payload }) => payload.byteLength > LARGEST)) return null
    const rows = rowsOf(items)
    // An escape in it: a control character, such as the U+0000 that no text of PostgreSQL holds, or half a character. (Or a backslash
    // and a u: those go the other way for nothing.)
    if (rows.some(({ metas }) => metas.includes('\\u'))) return null
    const bytes = (of: (item: AppendItem) => Uint8Array) =>
      message.array('bytea', (writer) => {
        for (const item of items) writer.bytes(of(item))
      })
    const numbers = (of: (row: ArrivalRow) => number) =>
      message.array('bigint', (writer) => {
        for (const row of rows) writer.bigint(of(row))
      })
    message.begin(ARRIVE.name)
    message.value(Buffer.from(pen))
    message.value(isLate ? TRUE : FALSE)
    message.value(bigints(doubts))
    bytes(digests.minted)
    writeKeys(message, keys)
    message.array('bigint', (writer) => {
      for (const { companyId } of items) writer.bigint(companyId)
    })
    bytes(digests.sha256)
    bytes(({ payload }) => payload)
    numbers(({ from }) => from)
    numbers(({ to }) => to)
    message.array('text', (writer) => {
      for (const { metas } of rows) writer.text(metas)
    })
    message.end()
    return { statement: ARRIVE, count: items.length, message, canSplit: false }
  }
}

/** From one place of the batch to another, counted from 1. */
interface ArrivalRow {
  readonly from: number
  readonly to: number
  readonly metas: string
}

function rowsOf(items: readonly AppendItem[]): ArrivalRow[] {
  const rows: ArrivalRow[] = []
  let metas = ''
  let from = 0
  let size = 0
  const close = (to: number): void => {
    rows.push({ from: from + 1, to, metas: `[${metas}]` })
    metas = ''
    size = 0
    from = to
  }
  for (const [place, item] of items.entries()) {
    const meta = metaText(item)
    const needed = MESSAGE_BYTES + meta.length + item.payload.byteLength
    const isFull = size + needed > ROW_BYTES || place - from === MOST_IN_ROW
    if (place > from && (isFull || item.companyId !== items[from]!.companyId)) close(place)
    metas += metas === '' ? meta : `,${meta}`
    size += needed
  }
  close(items.length)
  return rows
}

function metaText(item: AppendItem): string {
  return JSON.stringify([
    item.accountId,
    item.receivedAt,
    item.keyId,
    item.scope,
    item.route,
    item.origin,
    item.contentType,
    item.requestId,
    item.sourceRef,
    item.channelRef,
    item.idempotencyKey,
    item.traceparent,
    item.userAgent,
    item.remoteAddr,
  ])
}
