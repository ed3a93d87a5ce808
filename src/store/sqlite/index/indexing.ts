// Indexing on SQLite: a step reads the next journal rows, derives, and moves its cursor in one transaction of the index
// file. A step of the second cursor reads the payloads again: to keep the words between the two would cost as much.

import type { DatabaseSync } from 'node:sqlite'
import { countRepeats, endOfStep, tallyTraffic } from '../../../model/index-step.ts'
import { createConversationKeys } from '../../../model/erasure.ts'
import type { IndexLimits, IndexProgress, IndexStepResult, WordLimits } from '../../contract/indexing.ts'
import { inTransaction, isDamage, storeFailure } from '../connection.ts'
import { type IdGap, withoutGaps } from '../../../model/id-gaps.ts'
import { readGaps } from '../admin/recovery.ts'
import { readSequence } from '../journal/sequence.ts'
import { readMeta } from '../schema.ts'
import { clearSome } from './clearing.ts'
import { type IndexWrites, prepareIndexWrites } from './index-writes.ts'
import { prepareJournalRows, type ResendsAround, type RowsAround } from './journal-rows.ts'

const SELECT_CURSORS = 'SELECT source, position, clearing FROM index_cursors'
const MOVE_CURSOR = 'UPDATE index_cursors SET position = ? WHERE source = ?'
const NOTE_LAST = 'UPDATE index_origin SET last_id = ?, last_request = ?'
const REWIND_CURSORS = 'UPDATE index_cursors SET position = 0, clearing = 1'
const FORGET_LAST = `UPDATE index_origin SET last_id = 0, last_request = '', purged = 0, followed = 0,
  database_uuid = (SELECT CAST(value AS TEXT) FROM meta WHERE key = 'database_uuid')`
const EXTEND_LOST = `UPDATE unreadable SET last_id = ?1
  WHERE first_id = (SELECT max(first_id) FROM unreadable) AND last_id = ?1 - 1`
const INSERT_LOST = 'INSERT OR IGNORE INTO unreadable (first_id, last_id) VALUES (?1, ?1)'

export interface Cursors {
  readonly events: number
  readonly resends: number
  readonly words: number
  readonly clearing: boolean
}

type WriteEvents = IndexWrites['writeEvents']
type WriteWords = IndexWrites['writeWords']

/** What was read one by one before the transaction of the step. */
interface Around {
  readonly events: RowsAround
  readonly resends: ResendsAround
}

export function prepareIndexing(db: DatabaseSync) {
  const writes = prepareIndexWrites(db)
  const gaps = readGaps(db)
  const rows = prepareJournalRows(db, createConversationKeys(readMeta(db, 'dedupe_key')), gaps)
  const moveCursor = db.prepare(MOVE_CURSOR)
  const noteLast = db.prepare(NOTE_LAST)
  const extendLost = db.prepare(EXTEND_LOST)
  const insertLost = db.prepare(INSERT_LOST)

  function step(limits: IndexLimits, writeEvents: WriteEvents, around: Around | null): IndexStepResult {
    const before = readCursors(db)
    if (before.clearing) {
      clearSome(db, limits.maxRows)
      return { ...readProgress(db, gaps), indexed: 0, unindexed: 0, unreadable: 0, more: true }
    }
    const newest = readSequence(db, 'events')
    // Another process may have taken a step meanwhile.
    const found = around?.events.after === before.events && around.resends.after === before.resends ? around : null
    const derived = writeEvents(found ? found.events.derived : rows.next(before.events, newest, limits))
    const resends = found ? found.resends.resends : rows.nextResends(before.resends, limits)
    writes.writeRepeats(countRepeats(derived, resends))
    writes.writeTraffic(tallyTraffic(derived, resends))
    const lost = found?.events.lost ?? []
    for (const id of lost) if (extendLost.run(id).changes === 0) insertLost.run(id)
    const end = found ? endAround(found.events, newest) : endOfStep(derived, newest, limits)
    const lastResend = found ? found.resends.position : (resends.at(-1)?.id ?? before.resends)
    const after = { ...before, events: end.position, resends: lastResend }
    if (after.events !== before.events) moveCursor.run(after.events, 'events')
    if (after.resends !== before.resends) moveCursor.run(after.resends, 'resends')
    const last = derived.at(-1)
    if (last) noteLast.run(last.row.id, last.row.requestId)
    const unindexed = derived.filter((one) => one.unindexed !== null).length
    const more = end.isFull || resends.length === limits.maxRows
    return { ...progressAt(db, after, gaps), indexed: derived.length, unindexed, unreadable: lost.length, more }
  }

  function stepWords(limits: WordLimits, writeWords: WriteWords, around: RowsAround | null): IndexStepResult {
    const before = readCursors(db)
    const found = around?.after === before.words ? around : null
    const derived = found ? found.derived : rows.next(before.words, before.events, limits)
    const unindexed = writeWords(derived, limits.maxWords)
    const end = found ? endAround(found, before.events) : endOfStep(derived, before.events, limits)
    if (end.position !== before.words) moveCursor.run(end.position, 'words')
    const progress = progressAt(db, { ...before, words: end.position }, gaps)
    return { ...progress, indexed: derived.length, unindexed, unreadable: 0, more: end.isFull }
  }

  /**
   * If a row cannot be read, the step is repeated with rows that were read one by one before it. If a row cannot be written, it is
   * repeated with each row in its own savepoint, and the bad one is marked.
   */
  function inTurn<A>(
    together: (around: A | null) => IndexStepResult,
    eachAlone: (around: A | null) => IndexStepResult,
    readAround: () => A,
  ): IndexStepResult {
    const attempt = (around: A | null): IndexStepResult => {
      try {
        return inTransaction(db, () => together(around))
      } catch (error) {
        if (isDamage(error) || storeFailure(error).kind !== 'rejected') throw error
        return inTransaction(db, () => eachAlone(around))
      }
    }
    try {
      return attempt(null)
    } catch (error) {
      if (!isDamage(error)) throw error
      return attempt(readAround())
    }
  }

  return {
    step: (limits: IndexLimits): IndexStepResult =>
      inTurn<Around>(
        (around) => step(limits, writes.writeEvents, around),
        (around) => step(limits, writes.writeEachAlone, around),
        () => {
          const { events, resends } = readCursors(db)
          return {
            events: rows.oneByOne(events, readSequence(db, 'events'), limits),
            resends: rows.resendsOneByOne(resends),
          }
        },
      ),
    stepWords: (limits: WordLimits): IndexStepResult =>
      inTurn<RowsAround>(
        (around) => stepWords(limits, writes.writeWords, around),
        (around) => stepWords(limits, writes.writeEachWordsAlone, around),
        () => {
          const { words, events } = readCursors(db)
          return rows.oneByOne(words, events, limits)
        },
      ),
    requestRebuild: (): void => inTransaction(db, () => startAgain(db)),
  }
}

function endAround({ position }: RowsAround, upTo: number): ReturnType<typeof endOfStep> {
  return { position, isFull: position < upTo }
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
