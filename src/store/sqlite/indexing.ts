// The index on SQLite: a step reads the next journal rows, derives, and moves the cursor in one transaction of the index's
// own file.

import type { DatabaseSync, StatementSync } from 'node:sqlite'
import type { EventKind } from '../../model/event.ts'
import { type Extract, extract, storable } from '../../model/extract.ts'
import type { Tenant } from '../../model/principal.ts'
import { TrafficTally } from '../../model/traffic.ts'
import { foldEmail, spanOf, wordPrefix } from '../../model/words.ts'
import type { IndexLimits, IndexProgress, IndexStepResult } from '../contract/indexing.ts'
import { DAMAGED, isIntact } from '../rows.ts'
import { filedThrough } from './arrivals.ts'
import { inTransaction, storeFailure } from './connection.ts'
import { clearSome } from './index-clearing.ts'
import { readSequence } from './sequence.ts'
import { UPSERT_TRAFFIC } from './traffic.ts'

const SELECT_CURSORS = 'SELECT lane, position, clearing FROM index_cursors'
const MOVE_CURSOR = 'UPDATE index_cursors SET position = ? WHERE lane = ?'
const SELECT_EVENTS = `SELECT id, kind, revises, account_id, company_id, received_at, channel_ref, size, sha256, payload, key_id,
    scope, request_id FROM events WHERE id > ? AND id <= ? ORDER BY id LIMIT ? + 0`
const NOTE_LAST = 'UPDATE index_origin SET last_id = ?, last_request = ?'
const REWIND_CURSORS = 'UPDATE index_cursors SET position = 0, clearing = 1'
const FORGET_LAST = `UPDATE index_origin SET last_id = 0, last_request = '',
  database_uuid = (SELECT CAST(value AS TEXT) FROM meta WHERE key = 'database_uuid')`
/** The account stands with the event. */
const SELECT_RESENDS = `SELECT r.id, r.company_id, r.event_id, r.received_at, r.key_id, e.account_id
  FROM resends AS r LEFT JOIN events AS e ON e.id = r.event_id WHERE r.id > ? ORDER BY r.id LIMIT ? + 0`
const INSERT_ENTRY = `INSERT INTO event_index (company_id, account_id, event_id, kind, received_at, key_id, scope,
    conversation_id, contact_name, contact_email, email_key, message_type, snippet, warnings, unindexed)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
const INSERT_WORDS = 'INSERT INTO event_words (rowid, words) VALUES (?, ?)'
const UPSERT_CONVERSATION = `INSERT INTO conversations (company_id, account_id, channel_ref, id, event_count,
    first_received_at, last_event_id, last_received_at, first_contact_name, first_contact_email, last_contact_name,
    last_contact_email, last_snippet)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
  ON CONFLICT (company_id, account_id, channel_ref) DO UPDATE SET
    event_count = event_count + excluded.event_count,
    last_event_id = excluded.last_event_id,
    last_received_at = excluded.last_received_at,
    last_contact_name = excluded.last_contact_name,
    last_contact_email = excluded.last_contact_email,
    last_snippet = excluded.last_snippet
  RETURNING id`
const UPSERT_REPEATS = `INSERT INTO repeats (company_id, event_id, resends, revisions, last_seen_at)
  VALUES (?, ?, ?, ?, ?)
  ON CONFLICT (company_id, event_id) DO UPDATE SET
    resends = resends + excluded.resends,
    revisions = revisions + excluded.revisions,
    last_seen_at = max(last_seen_at, excluded.last_seen_at)`

/** A row of SELECT_EVENTS. */
type JournalCells = [
  id: number,
  kind: EventKind,
  revises: number | null,
  accountId: number,
  companyId: number,
  receivedAt: number,
  channelRef: string | null,
  size: number,
  sha256: Uint8Array,
  payload: Uint8Array | null,
  keyId: string,
  scope: string,
  requestId: string,
]

interface JournalRow extends Tenant {
  readonly id: number
  readonly kind: EventKind
  readonly revises: number | null
  readonly receivedAt: number
  readonly channelRef: string | null
  readonly size: number
  readonly keyId: string
  readonly scope: string
  readonly requestId: string
}

const MAX_REASON = 200

interface ResendRow {
  readonly id: number
  readonly company_id: number
  readonly event_id: number
  readonly received_at: number
  readonly key_id: string
  readonly account_id: number | null
}

interface Derived {
  readonly row: JournalRow
  readonly fields: Extract | null
  readonly unindexed: string | null
}

export interface Cursors {
  readonly events: number
  readonly resends: number
  readonly clearing: boolean
}

export function prepareIndexing(db: DatabaseSync) {
  const statements = prepareStatements(db)
  return {
    step: (limits: IndexLimits): IndexStepResult => {
      try {
        return inTransaction(db, () => step(db, statements, limits, foldAll))
      } catch (error) {
        // A row in it cannot be written: the same again, each row in a savepoint of its own, and the bad one marked.
        if (storeFailure(error).kind !== 'rejected') throw error
        return inTransaction(db, () => step(db, statements, limits, foldEachAlone))
      }
    },
    requestRebuild: (): void => inTransaction(db, () => startAgain(db)),
  }
}

/** Whatever is derived is emptied by the steps that follow, and made again. */
export function startAgain(db: DatabaseSync): void {
  db.exec(REWIND_CURSORS)
  db.exec(FORGET_LAST)
}

export function readProgress(db: DatabaseSync): IndexProgress {
  return progressAt(db, readCursors(db))
}

type Fold = (db: DatabaseSync, statements: Statements, derived: readonly Derived[]) => readonly Derived[]

function step(
  db: DatabaseSync,
  statements: Statements,
  { maxRows, maxBytes, stepsAtOnce = 1 }: IndexLimits,
  foldRows: Fold,
): IndexStepResult {
  const before = readCursors(db)
  if (before.clearing) {
    clearSome(db, maxRows)
    return { ...readProgress(db), indexed: 0, unindexed: 0 }
  }
  const limits = { maxRows: stepsAtOnce * maxRows, maxBytes }
  const filed = filedThrough(db)
  const derived = foldRows(db, statements, readDerived(statements, before.events, filed, limits))
  const tally = new TrafficTally()
  for (const { row } of derived) tally.add(row.companyId, row.accountId, row.receivedAt, row.keyId, counterOf(row.kind))
  const resends = foldResends(statements, before.resends, filed, limits.maxRows, tally)
  writeTraffic(statements, tally)
  const after = { events: positionAfter(derived, before.events, filed, limits), resends, clearing: false }
  if (after.events !== before.events) statements.moveCursor.run(after.events, 'events')
  const last = derived.at(-1)
  if (last) statements.noteLast.run(last.row.id, last.row.requestId)
  if (after.resends !== before.resends) statements.moveCursor.run(after.resends, 'resends')
  const unindexed = derived.filter((one) => one.unindexed !== null).length
  return { ...progressAt(db, after), indexed: derived.length, unindexed }
}

/** When nothing is left to read the cursor goes to the last id that is filed, so that ids without a row are not waited for. */
function positionAfter(derived: readonly Derived[], before: number, filed: number, limits: IndexLimits): number {
  const bytes = derived.reduce((sum, one) => sum + one.row.size, 0)
  if (derived.length === limits.maxRows || bytes >= limits.maxBytes) return derived.at(-1)?.row.id ?? before
  return Math.max(before, filed)
}

export function readCursors(db: DatabaseSync): Cursors {
  const rows = db.prepare(SELECT_CURSORS).all() as unknown as { lane: string; position: number; clearing: number }[]
  const at = (lane: string) => rows.find((row) => row.lane === lane)?.position ?? 0
  return { events: at('events'), resends: at('resends'), clearing: rows.some((row) => row.clearing === 1) }
}

function progressAt(db: DatabaseSync, at: Cursors): IndexProgress {
  const lag = readSequence(db, 'events') - at.events + (readSequence(db, 'resends') - at.resends)
  return { cursor: at.events, lag, clearing: at.clearing }
}

type Statements = ReturnType<typeof prepareStatements>

function prepareStatements(db: DatabaseSync) {
  const selectEvents = db.prepare(SELECT_EVENTS)
  selectEvents.setReturnArrays(true)
  return {
    selectEvents,
    selectResends: db.prepare(SELECT_RESENDS),
    insertEntry: db.prepare(INSERT_ENTRY),
    insertWords: db.prepare(INSERT_WORDS),
    upsertConversation: db.prepare(UPSERT_CONVERSATION),
    upsertRepeats: db.prepare(UPSERT_REPEATS),
    upsertTraffic: db.prepare(UPSERT_TRAFFIC),
    moveCursor: db.prepare(MOVE_CURSOR),
    noteLast: db.prepare(NOTE_LAST),
  } satisfies Record<string, StatementSync>
}

/** The next rows, bounded by count and by bytes; always at least one if there is one. */
function readDerived(statements: Statements, after: number, filed: number, limits: IndexLimits): Derived[] {
  const derived: Derived[] = []
  let bytes = 0
  for (const found of statements.selectEvents.iterate(after, filed, limits.maxRows)) {
    const cells = found as unknown as JournalCells
    derived.push(derive(cells))
    bytes += cells[7]
    if (bytes >= limits.maxBytes) break
  }
  return derived
}

function derive([
  id,
  kind,
  revises,
  accountId,
  companyId,
  receivedAt,
  channelRef,
  size,
  sha256,
  payload,
  keyId,
  scope,
  requestId,
]: JournalCells): Derived {
  const row = { id, kind, revises, accountId, companyId, receivedAt, channelRef, size, keyId, scope, requestId }
  // Erased content leaves its place in the conversation, and nothing else.
  if (payload === null) return { row, fields: null, unindexed: null }
  // Else a list would show the beginning of bytes that nobody sent.
  if (!isIntact(payload, sha256)) return { row, fields: null, unindexed: DAMAGED }
  try {
    return { row, fields: extract(payload), unindexed: null }
  } catch (error) {
    return { row, fields: null, unindexed: reason(error) }
  }
}

function foldAll(_db: DatabaseSync, statements: Statements, derived: readonly Derived[]): readonly Derived[] {
  fold(statements, derived)
  return derived
}

function foldEachAlone(db: DatabaseSync, statements: Statements, derived: readonly Derived[]): readonly Derived[] {
  return derived.map((one) => foldAlone(db, statements, one))
}

/** As it is; else without what was read from it, but in its conversation; else as a bare entry. */
function foldAlone(db: DatabaseSync, statements: Statements, one: Derived): Derived {
  const attempt = (write: () => void): string | null => {
    db.exec('SAVEPOINT one_row')
    try {
      write()
      db.exec('RELEASE one_row')
      return null
    } catch (error) {
      if (storeFailure(error).kind !== 'rejected') throw error
      db.exec('ROLLBACK TO one_row; RELEASE one_row')
      return reason(error)
    }
  }
  const failed = attempt(() => fold(statements, [one]))
  if (failed === null) return one
  const marked = { row: one.row, fields: null, unindexed: failed }
  if (attempt(() => fold(statements, [marked])) !== null) insertEntry(statements, marked, null)
  return marked
}

/**
 * One upsert for each conversation of the batch, one entry for each row, and the words of all of them last: a statement that writes more
 * than one row, as an upsert may, makes FTS5 write down what it has gathered. In between, that was a segment for each
 * row, and two thirds of a step.
 */
function fold(statements: Statements, derived: readonly Derived[]): void {
  const conversations = new Map<string, Derived[]>()
  for (const one of derived) {
    if (one.row.kind === 'revision') {
      statements.upsertRepeats.run(one.row.companyId, one.row.revises, 0, 1, one.row.receivedAt)
      insertEntry(statements, one, null)
    } else if (one.row.channelRef === null) {
      insertEntry(statements, one, null)
    } else {
      const key = `${one.row.companyId}:${one.row.accountId}:${one.row.channelRef}`
      const group = conversations.get(key)
      if (group) group.push(one)
      else conversations.set(key, [one])
    }
  }
  for (const group of conversations.values()) {
    const id = upsertConversation(statements, group)
    for (const one of group) insertEntry(statements, one, id)
  }
  for (const one of derived) insertWords(statements, one)
}

function upsertConversation(statements: Statements, group: readonly Derived[]): number {
  const first = group[0]!
  const last = group.at(-1)!
  const found = statements.upsertConversation.get(
    first.row.companyId,
    first.row.accountId,
    first.row.channelRef,
    first.row.id,
    group.length,
    first.row.receivedAt,
    last.row.id,
    last.row.receivedAt,
    first.fields?.contactName ?? null,
    first.fields?.contactEmail ?? null,
    last.fields?.contactName ?? null,
    last.fields?.contactEmail ?? null,
    last.fields?.snippet ?? null,
  )
  return Number(found?.id)
}

function insertEntry(statements: Statements, { row, fields, unindexed }: Derived, conversationId: number | null): void {
  statements.insertEntry.run(
    row.companyId,
    row.accountId,
    row.id,
    row.kind,
    row.receivedAt,
    row.keyId,
    row.scope,
    conversationId,
    fields?.contactName ?? null,
    fields?.contactEmail ?? null,
    fields?.contactEmail ? foldEmail(fields.contactEmail) : null,
    fields?.messageType ?? null,
    fields?.snippet ?? null,
    fields && fields.warnings.length > 0 ? JSON.stringify(fields.warnings) : null,
    unindexed,
  )
}

function insertWords(statements: Statements, { row, fields }: Derived): void {
  if (fields === null || fields.words.length === 0) return
  const prefix = wordPrefix(row, spanOf(row.id))
  statements.insertWords.run(row.id, prefix + fields.words.join(` ${prefix}`))
}

/** Counts the next resends into `repeats`; returns the new position. */
function foldResends(
  statements: Statements,
  after: number,
  filed: number,
  maxRows: number,
  tally: TrafficTally,
): number {
  const counts = new Map<number, { companyId: number; resends: number; lastSeenAt: number }>()
  let position = after
  for (const found of statements.selectResends.iterate(after, maxRows)) {
    const row = found as unknown as ResendRow
    if (row.event_id > filed) break
    const count = counts.get(row.event_id) ?? { companyId: row.company_id, resends: 0, lastSeenAt: 0 }
    count.resends += 1
    count.lastSeenAt = Math.max(count.lastSeenAt, row.received_at)
    counts.set(row.event_id, count)
    if (row.account_id !== null) tally.add(row.company_id, row.account_id, row.received_at, row.key_id, 'resends')
    position = row.id
  }
  for (const [eventId, count] of counts) {
    statements.upsertRepeats.run(count.companyId, eventId, count.resends, 0, count.lastSeenAt)
  }
  return position
}

const counterOf = (kind: EventKind) => (kind === 'event' ? 'events' : 'revisions')

function writeTraffic(statements: Statements, tally: TrafficTally): void {
  for (const row of tally.rows()) {
    const span = row.span === 'minute' ? 0 : 1
    const { companyId, accountId, at, keyId, events, resends, revisions } = row
    statements.upsertTraffic.run(companyId, accountId, span, at, keyId, events, resends, revisions)
  }
}

/** The parser's own sentence quotes the payload, which may hold anything and may be erased one day. */
function reason(error: unknown): string {
  if (error instanceof SyntaxError) return 'the payload is not JSON'
  return storable(error instanceof Error ? error.message : String(error), MAX_REASON)
}
