// Indexing on PostgreSQL: a step determines the watermark, reads the next rows up to it, derives, and moves the cursor
// in one transaction. A step of the second cursor reads the payloads again, up to the first cursor. One node at a time: the lock is
// held for the step, so a node that dies loses it with its connection, and another node goes on. Other steps wait for the lock.

import { countRepeats, endOfStep, type JournalRow, type ResendRow, tallyTraffic } from '../../../model/index-step.ts'
import { type ConversationKeys, createConversationKeys } from '../../../model/erasure.ts'
import type { IndexLimits, IndexProgress, IndexStepResult, WordLimits } from '../../contract/indexing.ts'
import type { Connection, Statement } from '../connection/connection.ts'
import { sqlState, storeFailure } from '../connection/failure.ts'
import { LOCKS } from '../connection/locks.ts'
import type { Pool } from '../connection/pool.ts'
import { type Ids, readLastIds, Watermark } from '../journal/watermark.ts'
import { withoutGaps } from '../../../model/id-gaps.ts'
import { readGaps } from '../admin/recovery.ts'
import { clearSome } from './clearing.ts'
import {
  type WriteEvents,
  type WriteWords,
  writeEachAlone,
  writeEachWordsAlone,
  writeEvents,
  writeRepeats,
  writeTraffic,
  writeWords,
} from './index-writes.ts'
import { pruneTraffic } from './traffic.ts'
import { deriveInTurns } from './turns.ts'

/** The values of this many rows are packed for one statement on the main thread, which also reads requests. */
const MAX_STEP_ROWS = 1000
/** How long a step waits for another node's step. */
const TURN_MS = 2000
export const LOCK_NOT_AVAILABLE = '55P03'
/** The lag is counted up to here; beyond, it is computed from ids, some of which have no row. */
const COUNTED = 2000
/** A node that stalls in the middle of a step loses the lock after this long. */
const MAX_SILENCE_MS = 5000

/** Held to the end of the transaction, whose other locks have the same timeout. */
export const TAKE_TURN = `SET LOCAL lock_timeout = ${TURN_MS};
SET LOCAL idle_in_transaction_session_timeout = ${MAX_SILENCE_MS};
SELECT pg_advisory_xact_lock(${LOCKS.indexer.join()})`
const SELECT_CURSORS: Statement = {
  name: 'intray_cursors',
  text: 'SELECT source, position, watermark, clearing FROM intray.index_cursors',
}
const MOVE_CURSORS: Statement = {
  name: 'intray_move_cursors',
  text: `UPDATE intray.index_cursors SET
    position = CASE source WHEN 'events' THEN $1::bigint ELSE $2::bigint END,
    watermark = greatest(watermark, CASE source WHEN 'events' THEN $3::bigint ELSE $4::bigint END)
  WHERE source IN ('events', 'resends')`,
}
const MOVE_WORDS: Statement = {
  name: 'intray_move_words',
  text: `UPDATE intray.index_cursors SET position = $1 WHERE source = 'words'`,
}
const COUNT_LAG: Statement = {
  name: 'intray_count_lag',
  text: `SELECT (SELECT count(*) FROM (SELECT FROM intray.events WHERE id > $1 LIMIT ${COUNTED + 1}) e) AS events,
    (SELECT count(*) FROM (SELECT FROM intray.resends WHERE id > $2 LIMIT ${COUNTED + 1}) r) AS resends,
    (SELECT count(*) FROM (SELECT FROM intray.events WHERE id > $3 LIMIT ${COUNTED + 1}) w) AS words`,
}
/** The next rows, bounded by count and bytes; at least one if there is one. */
const SELECT_EVENTS: Statement = {
  name: 'intray_next_events',
  text: `SELECT id, kind, revises, account_id AS "accountId", company_id AS "companyId", received_at AS "receivedAt",
    channel_ref AS "channelRef", size, sha256, key_id AS "keyId", scope, request_id AS "requestId",
    erased_at AS "erasedAt", payload
  FROM intray.events WHERE id > $1 AND id <= (
    SELECT max(id) FROM (
      SELECT id, sum(size::bigint) OVER (ORDER BY id ROWS UNBOUNDED PRECEDING) - size AS bytes_before FROM (
        SELECT id, size FROM intray.events WHERE id > $1 AND id <= $2 ORDER BY id LIMIT $3) sizes) page
    WHERE bytes_before < $4)
  ORDER BY id`,
}
const SELECT_RESENDS: Statement = {
  name: 'intray_next_resends',
  // The account is in the event's row.
  text: `SELECT r.id, r.company_id AS "companyId", r.event_id AS "eventId", r.received_at AS "receivedAt",
    r.key_id AS "keyId", e.account_id AS "accountId" FROM (
      SELECT id, company_id, event_id, received_at, key_id FROM intray.resends
      WHERE id > $1 AND id <= $2 ORDER BY id LIMIT $3) r
    LEFT JOIN intray.events e ON e.id = r.event_id AND e.company_id = r.company_id
  ORDER BY r.id`,
}
/**
 * From this many events on the planner needs statistics: it takes a table without them for one with a single row per
 * tenant, and then any index that begins with the tenant looks equally good. (Measured: 11 ms instead of 0.1 ms for a
 * read of 20,000 events, and growing with them.) Later autovacuum keeps the statistics.
 */
const ANALYZE_FROM = 1000
const IS_ANALYZED = {
  entries: `SELECT bool_and(reltuples >= 0) AS analyzed FROM pg_class
    WHERE oid IN ('intray.event_index'::regclass, 'intray.conversations'::regclass)`,
  words: `SELECT reltuples > 0 AS analyzed FROM pg_class WHERE oid = 'intray.event_words'::regclass`,
} as const
const ANALYZE = {
  entries: 'ANALYZE intray.event_index, intray.conversations, intray.events',
  words: 'ANALYZE intray.event_words',
} as const
const REQUEST_REBUILD = 'UPDATE intray.index_cursors SET position = 0, clearing = true'

interface Cursors {
  readonly position: Ids
  readonly words: number
  readonly watermark: Ids
  readonly clearing: boolean
}

export function createIndexing(pool: Pool, dedupeKey: Uint8Array) {
  const conversationKeys = createConversationKeys(dedupeKey)
  const watermark = new Watermark()
  const analyzed = { entries: false, words: false }

  /** Missing statistics only cost speed: a failure is left to autovacuum. */
  async function analyzeOnce(what: keyof typeof ANALYZE, position: number): Promise<void> {
    if (analyzed[what] || position < ANALYZE_FROM) return
    analyzed[what] = true
    await pool
      .use(async (connection) => {
        const [row] = await connection.query<{ analyzed: boolean }>(IS_ANALYZED[what])
        if (!row!.analyzed) await connection.query(ANALYZE[what])
      })
      .catch(() => {})
  }

  async function step(limits: IndexLimits, write: WriteEvents): Promise<IndexStepResult> {
    return pool.use(async (connection) => {
      const before = await readCursors(connection)
      const isIdle = !before.clearing && isCovered(before)
      const found = await watermark.find(connection, before.watermark, isIdle)
      if (isIdle && !found) return nothingDone(connection, before)
      return inTurn(connection, () => stepInTurn(connection, conversationKeys, limits, found, write))
    })
  }

  async function stepWords(limits: WordLimits, write: WriteWords): Promise<IndexStepResult> {
    return pool.use(async (connection) => {
      const before = await readCursors(connection)
      if (before.words >= before.position.events) return nothingDone(connection, before)
      return inTurn(connection, () => stepWordsInTurn(connection, conversationKeys, limits, write))
    })
  }

  return {
    step: async (limits: IndexLimits): Promise<IndexStepResult> => {
      const result = await eachAloneIfRejected(
        () => step(limits, writeEvents),
        () => step(limits, writeEachAlone),
      )
      await analyzeOnce('entries', result.cursor)
      return result
    },
    stepWords: async (limits: WordLimits): Promise<IndexStepResult> => {
      const result = await eachAloneIfRejected(
        () => stepWords(limits, writeWords),
        () => stepWords(limits, writeEachWordsAlone),
      )
      await analyzeOnce('words', result.searchable)
      return result
    },
    progress: (): Promise<IndexProgress> =>
      pool.use(async (connection) => progressAt(connection, await readCursors(connection))),
    requestRebuild: (): Promise<void> =>
      pool.transaction(async (connection) => {
        await connection.script(TAKE_TURN)
        await connection.query(REQUEST_REBUILD)
      }),
    // In turn with the steps: a rebuild that counts what it clears would miss rows that were deleted meanwhile.
    pruneTraffic: (minutesBefore: number, hoursBefore: number): Promise<void> =>
      pool.transaction(async (connection) => {
        await connection.script(TAKE_TURN)
        await pruneTraffic(connection, minutesBefore, hoursBefore)
      }, 'reads'),
  }
}

/** If a row cannot be written, the step is repeated with each row in its own savepoint, and the bad one is marked. */
async function eachAloneIfRejected(
  together: () => Promise<IndexStepResult>,
  eachAlone: () => Promise<IndexStepResult>,
): Promise<IndexStepResult> {
  try {
    return await together()
  } catch (error) {
    if (storeFailure(error).kind !== 'rejected') throw error
    return eachAlone()
  }
}

/** Runs a step under the lock of the indexer; does nothing if another node holds it for too long. */
async function inTurn(connection: Connection, step: () => Promise<IndexStepResult>): Promise<IndexStepResult> {
  try {
    return await connection.transaction(() => {
      // A step reads first: the statement goes out together with this one.
      connection.send(TAKE_TURN)
      return step()
    }, 'reads')
  } catch (error) {
    if (sqlState(storeFailure(error).cause) !== LOCK_NOT_AVAILABLE) throw error
    return nothingDone(connection, await readCursors(connection))
  }
}

async function stepInTurn(
  connection: Connection,
  conversationKeys: ConversationKeys,
  limits: IndexLimits,
  found: Ids | null,
  write: WriteEvents,
): Promise<IndexStepResult> {
  const before = await readCursors(connection)
  const upTo = {
    events: Math.max(before.watermark.events, found?.events ?? 0),
    resends: Math.max(before.watermark.resends, found?.resends ?? 0),
  }
  if (before.clearing) {
    const clearing = !(await clearSome(connection, limits.maxRows))
    await connection.query(MOVE_CURSORS, [0, 0, upTo.events, upTo.resends])
    const progress = await progressAt(connection, { ...NOWHERE, watermark: upTo, clearing })
    return { ...progress, indexed: 0, unindexed: 0, more: true }
  }
  const bounds = { maxRows: Math.min(limits.maxRows, MAX_STEP_ROWS), maxBytes: limits.maxBytes }
  const { maxRows, maxBytes } = bounds
  const { events: after } = before.position
  const rows = await readRows(connection, conversationKeys, [after, upTo.events, maxRows, maxBytes])
  const derived = await write(connection, await deriveInTurns(rows, limits.extractBytes))
  const resends = await connection.query<ResendRow>(SELECT_RESENDS, [before.position.resends, upTo.resends, maxRows])
  writeRepeats(connection, countRepeats(derived, resends))
  writeTraffic(connection, tallyTraffic(derived, resends))
  const end = endOfStep(derived, upTo.events, bounds)
  const position = {
    events: end.position,
    resends: resends.length < maxRows ? upTo.resends : resends.at(-1)!.id,
  }
  connection.send(MOVE_CURSORS, [position.events, position.resends, upTo.events, upTo.resends])
  const progress = await progressAt(connection, { ...before, position, watermark: upTo })
  return {
    ...progress,
    indexed: derived.length,
    unindexed: derived.filter((one) => one.unindexed !== null).length,
    more: end.isFull || resends.length === maxRows,
  }
}

async function stepWordsInTurn(
  connection: Connection,
  conversationKeys: ConversationKeys,
  limits: WordLimits,
  write: WriteWords,
): Promise<IndexStepResult> {
  const before = await readCursors(connection)
  const upTo = before.position.events
  const { maxRows, maxBytes, maxWords, extractBytes } = limits
  const bounds = { maxRows: Math.min(maxRows, MAX_STEP_ROWS), maxBytes }
  const rows = await readRows(connection, conversationKeys, [before.words, upTo, bounds.maxRows, maxBytes])
  const derived = await deriveInTurns(rows, extractBytes)
  const unindexed = await write(connection, derived, maxWords)
  const end = endOfStep(derived, upTo, bounds)
  connection.send(MOVE_WORDS, [end.position])
  const progress = await progressAt(connection, { ...before, words: end.position })
  return { ...progress, indexed: derived.length, unindexed, more: end.isFull }
}

async function readRows(
  connection: Connection,
  keys: ConversationKeys,
  values: readonly number[],
): Promise<JournalRow[]> {
  const rows = await connection.query<Omit<JournalRow, 'channelKey'>>(SELECT_EVENTS, values)
  return rows.map((row) => ({ ...row, channelKey: keys.ofRow(row) }))
}

const NOWHERE = { position: { events: 0, resends: 0 }, words: 0 } as const

interface CursorRow {
  readonly source: keyof Ids | 'words'
  readonly position: number
  readonly watermark: number
  readonly clearing: boolean
}

async function readCursors(connection: Connection): Promise<Cursors> {
  const rows = await connection.query<CursorRow>(SELECT_CURSORS)
  const at = (source: CursorRow['source'], column: 'position' | 'watermark') =>
    rows.find((row) => row.source === source)?.[column] ?? 0
  return {
    position: { events: at('events', 'position'), resends: at('resends', 'position') },
    words: at('words', 'position'),
    watermark: { events: at('events', 'watermark'), resends: at('resends', 'watermark') },
    clearing: rows.some((row) => row.clearing),
  }
}

function isCovered({ position, watermark }: Cursors): boolean {
  return position.events >= watermark.events && position.resends >= watermark.resends
}

async function nothingDone(connection: Connection, at: Cursors): Promise<IndexStepResult> {
  return { ...(await progressAt(connection, at)), indexed: 0, unindexed: 0, more: false }
}

async function progressAt(connection: Connection, at: Cursors): Promise<IndexProgress> {
  const { position, words: searchable, clearing } = at
  const [counted] = await connection.query<{ events: number; resends: number; words: number }>(COUNT_LAG, [
    position.events,
    position.resends,
    searchable,
  ])
  let { events, resends, words } = counted!
  if (events > COUNTED || resends > COUNTED || words > COUNTED) {
    const last = await readLastIds(connection)
    const gaps = await readGaps(connection)
    const newest = withoutGaps(gaps, last.events)
    if (events > COUNTED) events = newest - withoutGaps(gaps, position.events)
    if (resends > COUNTED) resends = last.resends - position.resends
    if (words > COUNTED) words = newest - withoutGaps(gaps, searchable)
  }
  return { cursor: position.events, lag: events + resends, searchable, searchLag: words, clearing }
}
