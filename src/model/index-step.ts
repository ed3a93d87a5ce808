// One step of the indexer, independent of the database: derives index entries, conversations, re-send counts, traffic
// counts and search words from the next journal rows, and says where the step ends.

import type { EventKind } from './event.ts'
import { type Extract, storable } from './extract.ts'
import { DAMAGED, isIntact, UNREADABLE } from './payload.ts'
import { type PayloadReading, readWhole } from './payload-reading.ts'
import type { Tenant } from './principal.ts'
import { TrafficTally } from './traffic.ts'
import { firstWords, spanOf, wordPrefix } from './text-search.ts'

const MAX_REASON = 200

/** The columns of an event that a step reads. */
export interface JournalRow extends Tenant {
  readonly id: number
  readonly kind: EventKind
  readonly revises: number | null
  readonly receivedAt: number
  readonly channelRef: string | null
  /** The key of its conversation (model/erasure.ts); null without a channel_ref. */
  readonly channelKey: string | null
  readonly erasedAt: number | null
  readonly size: number
  readonly sha256: Uint8Array
  readonly keyId: string
  readonly scope: string
  readonly requestId: string
  readonly contentType: string
  /** Of a hook's event. */
  readonly recipe: string | null
  readonly payload: Uint8Array | null
}

/** A re-send with bytes that were already stored. */
export interface ResendRow {
  readonly id: number
  readonly companyId: number
  readonly eventId: number
  readonly receivedAt: number
  readonly keyId: string
  /** From the event's row; null if the event was purged. */
  readonly accountId: number | null
}

export interface Derived {
  readonly row: JournalRow
  readonly fields: Extract | null
  /** Why extraction failed; null if it did not. */
  readonly unindexed: string | null
}

/** `reading`: of the row's payload; null for an erased event. */
export function derive(row: JournalRow, reading: PayloadReading | null): Derived {
  // An erased event keeps its place in the conversation and has no fields.
  if (row.payload === null || reading === null) return { row, fields: null, unindexed: null }
  // Damaged bytes are not indexed: a list would show text that no sender sent.
  if (!isIntact(row.payload, row.sha256)) return { row, fields: null, unindexed: DAMAGED }
  try {
    return { row, fields: readWhole(reading), unindexed: null }
  } catch (error) {
    return unindexed(row, error)
  }
}

/** A row whose payload cannot be read. */
export function unreadable(row: JournalRow): Derived {
  return { row, fields: null, unindexed: UNREADABLE }
}

/** Whether every column holds what an append writes. A page may be damaged and still look like one. */
export function isWhole(row: Omit<JournalRow, 'channelKey'>): boolean {
  const { id, kind, revises, accountId, companyId, receivedAt, channelRef, size, sha256, erasedAt, payload } = row
  return (
    [id, accountId, companyId, receivedAt, size, revises ?? 0, erasedAt ?? 0].every(Number.isSafeInteger) &&
    [kind, row.keyId, row.scope, row.requestId, row.contentType, row.recipe ?? '', channelRef ?? ''].every(
      (text) => typeof text === 'string',
    ) &&
    (kind === 'event' || (kind === 'revision' && revises !== null)) &&
    sha256 instanceof Uint8Array &&
    (payload === null || payload instanceof Uint8Array)
  )
}

/** Marks a row as unindexed. The message of a SyntaxError would quote the payload. */
export function unindexed(row: JournalRow, error: unknown): Derived {
  const text = error instanceof Error ? error.message : String(error)
  const reason = error instanceof SyntaxError ? 'the payload is not JSON' : storable(text, MAX_REASON)
  return { row, fields: null, unindexed: reason }
}

/** The key of an event's conversation; null if it belongs to none. */
export function conversationKey({ kind, companyId, accountId, channelKey }: JournalRow): string | null {
  return kind === 'revision' || channelKey === null ? null : `${companyId}:${accountId}:${channelKey}`
}

/** Events by conversation key, in id order. */
export function groupByConversation(derived: readonly Derived[]): Map<string, Derived[]> {
  const groups = new Map<string, Derived[]>()
  for (const one of derived) {
    const key = conversationKey(one.row)
    if (key === null) continue
    const group = groups.get(key)
    if (group) group.push(one)
    else groups.set(key, [one])
  }
  return groups
}

/** How often an event was sent again. */
export interface RepeatCount {
  readonly companyId: number
  readonly eventId: number
  resends: number
  revisions: number
  lastSeenAt: number
}

/** One count for each event: a statement may upsert a row only once. */
export function countRepeats(derived: readonly Derived[], resends: readonly ResendRow[]): RepeatCount[] {
  const counts = new Map<number, RepeatCount>()
  const countOf = (companyId: number, eventId: number, seenAt: number): RepeatCount => {
    let count = counts.get(eventId)
    if (!count) counts.set(eventId, (count = { companyId, eventId, resends: 0, revisions: 0, lastSeenAt: 0 }))
    count.lastSeenAt = Math.max(count.lastSeenAt, seenAt)
    return count
  }
  for (const { row } of derived) {
    if (row.kind === 'revision') countOf(row.companyId, row.revises!, row.receivedAt).revisions += 1
  }
  for (const { companyId, eventId, receivedAt, accountId } of resends) {
    if (accountId !== null) countOf(companyId, eventId, receivedAt).resends += 1
  }
  return Array.from(counts.values())
}

export function tallyTraffic(derived: readonly Derived[], resends: readonly ResendRow[]): TrafficTally {
  const tally = new TrafficTally()
  for (const { row } of derived) {
    tally.add(row.companyId, row.accountId, row.receivedAt, row.keyId, row.kind === 'event' ? 'events' : 'revisions')
  }
  for (const { companyId, accountId, receivedAt, keyId } of resends) {
    if (accountId !== null) tally.add(companyId, accountId, receivedAt, keyId, 'resends')
  }
  return tally
}

/** The search words of an event, separated by spaces; null if it has none. Name and e-mail come before the text. */
export function indexedWords({ row, fields }: Derived, maxWords: number): string | null {
  if (fields === null) return null
  const words = firstWords(maxWords, fields.contactName, fields.contactEmail, fields.text)
  if (words.length === 0) return null
  const prefix = wordPrefix(row, spanOf(row.id))
  return prefix + words.join(` ${prefix}`)
}

/** What one step reads at most; always at least one row if there is one. */
export interface StepLimits {
  readonly maxRows: number
  readonly maxBytes: number
  /** Of each payload, string values not counted: fields that begin behind are not found. Not given: all of it. */
  readonly extractBytes?: number
}

/**
 * Where the cursor goes: to the last row of a step that ended at its limits, else to `upTo`, so that ids without a row are not
 * waited for.
 */
export function endOfStep(
  derived: readonly Derived[],
  upTo: number,
  { maxRows, maxBytes }: StepLimits,
): { readonly position: number; readonly isFull: boolean } {
  const isFull = derived.length >= maxRows || derived.reduce((sum, { row }) => sum + row.size, 0) >= maxBytes
  return { position: isFull ? derived.at(-1)!.row.id : upTo, isFull }
}
