// Indexing on PostgreSQL: a step determines the watermark, reads the next rows up to it, derives, and moves the cursor
// in one transaction. A step of the second cursor reads the payloads again, up to the first cursor. One node at a time: the lock is
// held for the step, so a node that dies loses it with its connection, and another node goes on. Other steps wait for the lock.

import { countRepeats, endOfStep, tallyTraffic } from '../../../model/index-step.ts'
import { type ConversationKeys, createConversationKeys } from '../../../model/erasure.ts'
import type { IndexLimits, IndexProgress, IndexStepResult, WordLimits } from '../../contract/indexing.ts'
import type { Connection, Statement } from '../connection/connection.ts'
import { sqlState, storeFailure, unlessDamaged } from '../connection/failure.ts'
import { LOCKS } from '../connection/locks.ts'
import type { Pool } from '../connection/pool.ts'
import { type Ids, readLastIds, Watermark } from '../journal/watermark.ts'
import { withoutGaps } from '../../../model/id-gaps.ts'
import { readGaps } from '../admin/recovery.ts'
import { clearAtOnce, clearSome } from './clearing.ts'
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
import {
  readNext,
  readNextResends,
  readOneByOne,
  readResendsOneByOne,
  type ResendsAround,
  type RowsAround,
} from './journal-rows.ts'
import { customRecipesOf } from './custom-recipes.ts'
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
const EXTEND_LOST = `UPDATE intray.unreadable SET last_id = $1
  WHERE first_id = (SELECT max(first_id) FROM intray.unreadable) AND last_id = $1::bigint - 1`
const INSERT_LOST = 'INSERT INTO intray.unreadable (first_id, last_id) VALUES ($1, $1) ON CONFLICT DO NOTHING'
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

  /** `isCareful`: rows are read one by one, before the transaction. */
  async function step(limits: IndexLimits, write: WriteEvents, isCareful: boolean): Promise<IndexStepResult> {
    return pool.use(async (connection) => {
      const before = await readCursors(connection)
      const isIdle = !before.clearing && isCovered(before)
      const found = await watermark.find(connection, before.watermark, isIdle)
      if (isIdle && !found) return nothingDone(connection, before)
      const around = isCareful ? await readAround(connection, before, furthest(before.watermark, found), limits) : null
      return inTurn(connection, () => stepInTurn(connection, conversationKeys, limits, found, around, write))
    })
  }

  async function readAround(
    connection: Connection,
    { position }: Cursors,
    upTo: Ids,
    limits: IndexLimits,
  ): Promise<Around> {
    const range = { after: position.events, upTo: upTo.events }
    const gaps = await readGaps(connection)
    return {
      events: await readOneByOne(connection, conversationKeys, gaps, range, limits),
      resends: await readResendsOneByOne(connection, { after: position.resends, upTo: upTo.resends }),
    }
  }

  async function stepWords(limits: WordLimits, write: WriteWords, isCareful: boolean): Promise<IndexStepResult> {
    return pool.use(async (connection) => {
      const before = await readCursors(connection)
      if (before.words >= before.position.events) return nothingDone(connection, before)
      const range = { after: before.words, upTo: before.position.events }
      const around = isCareful
        ? await readOneByOne(connection, conversationKeys, await readGaps(connection), range, limits)
        : null
      return inTurn(connection, () => stepWordsInTurn(connection, conversationKeys, limits, around, write))
    })
  }

  return {
    step: async (limits: IndexLimits): Promise<IndexStepResult> => {
      const result = await aroundBadRows(
        (isCareful) => step(limits, writeEvents, isCareful),
        (isCareful) => step(limits, writeEachAlone, isCareful),
      )
      await analyzeOnce('entries', result.cursor)
      return result
    },
    stepWords: async (limits: WordLimits): Promise<IndexStepResult> => {
      const result = await aroundBadRows(
        (isCareful) => stepWords(limits, writeWords, isCareful),
        (isCareful) => stepWords(limits, writeEachWordsAlone, isCareful),
      )
      await analyzeOnce('words', result.searchable)
      return result
    },
    progress: (): Promise<IndexProgress> =>
      pool.use(async (connection) => {
        const at = await readCursors(connection)
        return (await unlessDamaged(progressAt(connection, at))) ?? progressAt(connection, at, false)
      }),
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

type Step = (isCareful: boolean) => Promise<IndexStepResult>

/**
 * If a row cannot be read, the step is repeated with rows that were read one by one. If a row cannot be written, it is repeated
 * with each row in its own savepoint, and the bad one is marked.
 */
async function aroundBadRows(together: Step, eachAlone: Step): Promise<IndexStepResult> {
  const attempt: Step = async (isCareful) => {
    try {
      return await together(isCareful)
    } catch (error) {
      if (storeFailure(error).kind !== 'rejected') throw error
      return eachAlone(isCareful)
    }
  }
  try {
    return await attempt(false)
  } catch (error) {
    if (storeFailure(error).kind !== 'damaged') throw error
    return attempt(true)
  }
}

/** What was read one by one before the transaction of the step. */
interface Around {
  readonly events: RowsAround
  readonly resends: ResendsAround
}

function furthest(watermark: Ids, found: Ids | null): Ids {
  return {
    events: Math.max(watermark.events, found?.events ?? 0),
    resends: Math.max(watermark.resends, found?.resends ?? 0),
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
  read: Around | null,
  write: WriteEvents,
): Promise<IndexStepResult> {
  const before = await readCursors(connection)
  const upTo = furthest(before.watermark, found)
  if (before.clearing) {
    const clearing = read === null ? !(await clearSome(connection, limits.maxRows)) : await clearAtOnce(connection)
    await connection.query(MOVE_CURSORS, [0, 0, upTo.events, upTo.resends])
    const progress = await progressAt(connection, { ...NOWHERE, watermark: upTo, clearing }, read === null)
    return { ...progress, indexed: 0, unindexed: 0, unreadable: 0, more: true }
  }
  // Another node may have taken a step meanwhile.
  const isCurrent = read?.events.after === before.position.events && read.resends.after === before.position.resends
  const around = isCurrent ? read : null
  const bounds = { maxRows: Math.min(limits.maxRows, MAX_STEP_ROWS), maxBytes: limits.maxBytes }
  const { maxRows, maxBytes } = bounds
  const { events: after } = before.position
  const next = async () => {
    const rows = await readNext(connection, conversationKeys, [after, upTo.events, maxRows, maxBytes])
    return deriveInTurns(rows, await customRecipesOf(connection, rows), limits.extractBytes)
  }
  const derived = await write(connection, around ? around.events.derived : await next())
  const resends = around
    ? around.resends.resends
    : await readNextResends(connection, [before.position.resends, upTo.resends, maxRows])
  writeRepeats(connection, countRepeats(derived, resends))
  writeTraffic(connection, tallyTraffic(derived, resends))
  const lost = around?.events.lost ?? []
  for (const id of lost) {
    if ((await connection.execute(EXTEND_LOST, [id])) === 0) await connection.execute(INSERT_LOST, [id])
  }
  const end = around ? endAround(around.events, upTo.events) : endOfStep(derived, upTo.events, bounds)
  const lastResend = resends.length < maxRows ? upTo.resends : resends.at(-1)!.id
  const position = { events: end.position, resends: around ? around.resends.position : lastResend }
  connection.send(MOVE_CURSORS, [position.events, position.resends, upTo.events, upTo.resends])
  const progress = await progressAt(connection, { ...before, position, watermark: upTo }, read === null)
  return {
    ...progress,
    indexed: derived.length,
    unindexed: derived.filter((one) => one.unindexed !== null).length,
    unreadable: lost.length,
    more: end.isFull || position.resends < upTo.resends,
  }
}

async function stepWordsInTurn(
  connection: Connection,
  conversationKeys: ConversationKeys,
  limits: WordLimits,
  read: RowsAround | null,
  write: WriteWords,
): Promise<IndexStepResult> {
  const before = await readCursors(connection)
  const around = read?.after === before.words ? read : null
  const upTo = before.position.events
  const { maxRows, maxBytes, maxWords, extractBytes } = limits
  const bounds = { maxRows: Math.min(maxRows, MAX_STEP_ROWS), maxBytes }
  const next = async () => {
    const rows = await readNext(connection, conversationKeys, [before.words, upTo, bounds.maxRows, maxBytes])
    return deriveInTurns(rows, await customRecipesOf(connection, rows), extractBytes)
  }
  const derived = around ? around.derived : await next()
  const unindexed = await write(connection, derived, maxWords)
  const end = around ? endAround(around, upTo) : endOfStep(derived, upTo, bounds)
  connection.send(MOVE_WORDS, [end.position])
  const progress = await progressAt(connection, { ...before, words: end.position }, read === null)
  return { ...progress, indexed: derived.length, unindexed, unreadable: 0, more: end.isFull }
}

function endAround({ position }: RowsAround, upTo: number): ReturnType<typeof endOfStep> {
  return { position, isFull: position < upTo }
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
  return { ...(await progressAt(connection, at)), indexed: 0, unindexed: 0, unreadable: 0, more: false }
}

/** `isCounted`: false where a damaged page may hide rows: the lag is computed from ids. */
async function progressAt(connection: Connection, at: Cursors, isCounted = true): Promise<IndexProgress> {
  const { position, words: searchable, clearing } = at
  const values = [position.events, position.resends, searchable]
  const counted = isCounted
    ? (await connection.query<{ events: number; resends: number; words: number }>(COUNT_LAG, values))[0]!
    : { events: COUNTED + 1, resends: COUNTED + 1, words: COUNTED + 1 }
  let { events, resends, words } = counted
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
