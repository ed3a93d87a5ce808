// Indexing on SQLite: a step reads the next journal rows, derives, and moves its cursor in one transaction of the index
// file. A step of the second cursor reads the payloads again: to keep the words between the two would cost as much.

import type { DatabaseSync } from 'node:sqlite'
import {
  countRepeats,
  type Derived,
  derive,
  endOfStep,
  type JournalRow,
  type ResendRow,
  tallyTraffic,
} from '../../../model/index-step.ts'
import { scanWhole } from '../../../model/message-scan.ts'
import { type ConversationKeys, createConversationKeys } from '../../../model/erasure.ts'
import type { IndexLimits, IndexProgress, IndexStepResult, WordLimits } from '../../contract/indexing.ts'
import { inTransaction, storeFailure } from '../connection.ts'
import { type IdGap, withoutGaps } from '../../../model/id-gaps.ts'
import { readGaps } from '../admin/recovery.ts'
import { readSequence } from '../journal/sequence.ts'
import { readMeta } from '../schema.ts'
import { clearSome } from './clearing.ts'
import { type IndexWrites, prepareIndexWrites } from './index-writes.ts'

const SELECT_CURSORS = 'SELECT source, position, clearing FROM index_cursors'
const MOVE_CURSOR = 'UPDATE index_cursors SET position = ? WHERE source = ?'
const SELECT_EVENTS = `SELECT id, kind, revises, account_id, company_id, received_at, channel_ref, size, sha256, payload, key_id,
    scope, request_id, erased_at FROM events WHERE id > ? AND id <= ? ORDER BY id LIMIT ? + 0`
const NOTE_LAST = 'UPDATE index_origin SET last_id = ?, last_request = ?'
const REWIND_CURSORS = 'UPDATE index_cursors SET position = 0, clearing = 1'
const FORGET_LAST = `UPDATE index_origin SET last_id = 0, last_request = '', purged = 0, followed = 0,
  database_uuid = (SELECT CAST(value AS TEXT) FROM meta WHERE key = 'database_uuid')`
/** The account is in the event's row. */
const SELECT_RESENDS = `SELECT r.id, r.company_id AS companyId, r.event_id AS eventId, r.received_at AS receivedAt,
    r.key_id AS keyId, e.account_id AS accountId
  FROM resends AS r LEFT JOIN events AS e ON e.id = r.event_id WHERE r.id > ? ORDER BY r.id LIMIT ? + 0`

export interface Cursors {
  readonly events: number
  readonly resends: number
  readonly words: number
  readonly clearing: boolean
}

type WriteEvents = IndexWrites['writeEvents']
type WriteWords = IndexWrites['writeWords']

export function prepareIndexing(db: DatabaseSync) {
  const writes = prepareIndexWrites(db)
  const gaps = readGaps(db)
  const conversationKeys = createConversationKeys(readMeta(db, 'dedupe_key'))
  const selectEvents = db.prepare(SELECT_EVENTS)
  selectEvents.setReturnArrays(true)
  const selectResends = db.prepare(SELECT_RESENDS)
  const moveCursor = db.prepare(MOVE_CURSOR)
  const noteLast = db.prepare(NOTE_LAST)

  function step(limits: IndexLimits, writeEvents: WriteEvents): IndexStepResult {
    const before = readCursors(db)
    if (before.clearing) {
      clearSome(db, limits.maxRows)
      return { ...readProgress(db, gaps), indexed: 0, unindexed: 0, more: true }
    }
    const newest = readSequence(db, 'events')
    const derived = writeEvents(readDerived(before.events, newest, limits))
    const resends = selectResends.all(before.resends, limits.maxRows) as unknown as ResendRow[]
    writes.writeRepeats(countRepeats(derived, resends))
    writes.writeTraffic(tallyTraffic(derived, resends))
    const end = endOfStep(derived, newest, limits)
    const after = { ...before, events: end.position, resends: resends.at(-1)?.id ?? before.resends }
    if (after.events !== before.events) moveCursor.run(after.events, 'events')
    if (after.resends !== before.resends) moveCursor.run(after.resends, 'resends')
    const last = derived.at(-1)
    if (last) noteLast.run(last.row.id, last.row.requestId)
    const unindexed = derived.filter((one) => one.unindexed !== null).length
    const more = end.isFull || resends.length === limits.maxRows
    return { ...progressAt(db, after, gaps), indexed: derived.length, unindexed, more }
  }

  function stepWords(limits: WordLimits, writeWords: WriteWords): IndexStepResult {
    const before = readCursors(db)
    const derived = readDerived(before.words, before.events, limits)
    const unindexed = writeWords(derived, limits.maxWords)
    const end = endOfStep(derived, before.events, limits)
    if (end.position !== before.words) moveCursor.run(end.position, 'words')
    const progress = progressAt(db, { ...before, words: end.position }, gaps)
    return { ...progress, indexed: derived.length, unindexed, more: end.isFull }
  }

  /** The next rows, bounded by count and bytes; at least one if there is one. */
  function readDerived(after: number, upTo: number, limits: IndexLimits): Derived[] {
    const derived: Derived[] = []
    let bytes = 0
    for (const found of selectEvents.iterate(after, upTo, limits.maxRows)) {
      const row = journalRow(found as unknown as readonly unknown[], conversationKeys)
      derived.push(derive(row, row.payload === null ? undefined : scanWhole(row.payload, limits.extractBytes)))
      bytes += row.size
      if (bytes >= limits.maxBytes) break
    }
    return derived
  }

  /** If a row cannot be written, the step is repeated with each row in its own savepoint, and the bad one is marked. */
  function inTurn(together: () => IndexStepResult, eachAlone: () => IndexStepResult): IndexStepResult {
    try {
      return inTransaction(db, together)
    } catch (error) {
      if (storeFailure(error).kind !== 'rejected') throw error
      return inTransaction(db, eachAlone)
    }
  }

  return {
    step: (limits: IndexLimits): IndexStepResult =>
      inTurn(
        () => step(limits, writes.writeEvents),
        () => step(limits, writes.writeEachAlone),
      ),
    stepWords: (limits: WordLimits): IndexStepResult =>
      inTurn(
        () => stepWords(limits, writes.writeWords),
        () => stepWords(limits, writes.writeEachWordsAlone),
      ),
    requestRebuild: (): void => inTransaction(db, () => startAgain(db)),
  }
}

/** Maps a row of SELECT_EVENTS, read as an array: half the cost of an object. */
function journalRow(cells: readonly unknown[], conversationKeys: ConversationKeys): JournalRow {
  const row = {
    id: cells[0] as number,
    kind: cells[1] as JournalRow['kind'],
    revises: cells[2] as number | null,
    accountId: cells[3] as number,
    companyId: cells[4] as number,
    receivedAt: cells[5] as number,
    channelRef: cells[6] as string | null,
    size: cells[7] as number,
    sha256: cells[8] as Uint8Array,
    payload: cells[9] as Uint8Array | null,
    keyId: cells[10] as string,
    scope: cells[11] as string,
    requestId: cells[12] as string,
    erasedAt: cells[13] as number | null,
  }
  return { ...row, channelKey: conversationKeys.ofRow(row) }
}

/** Makes the following steps empty the derived tables and fill them again. */
export function startAgain(db: DatabaseSync): void {
  db.exec(REWIND_CURSORS)
  db.exec(FORGET_LAST)
}

export function readProgress(db: DatabaseSync, gaps: readonly IdGap[]): IndexProgress {
  return progressAt(db, readCursors(db), gaps)
}

export function readCursors(db: DatabaseSync): Cursors {
  const rows = db.prepare(SELECT_CURSORS).all() as unknown as { source: string; position: number; clearing: number }[]
  const at = (source: string) => rows.find((row) => row.source === source)?.position ?? 0
  const clearing = rows.some((row) => row.clearing === 1)
  return { events: at('events'), resends: at('resends'), words: at('words'), clearing }
}

function progressAt(db: DatabaseSync, at: Cursors, gaps: readonly IdGap[]): IndexProgress {
  const newest = withoutGaps(gaps, readSequence(db, 'events'))
  const lag = newest - withoutGaps(gaps, at.events) + (readSequence(db, 'resends') - at.resends)
  return {
    cursor: at.events,
    lag,
    searchable: at.words,
    searchLag: newest - withoutGaps(gaps, at.words),
    clearing: at.clearing,
  }
}
