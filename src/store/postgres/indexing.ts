// The index on PostgreSQL: a step finds out how far the journal is complete, reads the next rows up to there, derives, and
// moves the cursor in one transaction. One runner among all nodes: the lock is held for the step, so whoever dies loses it
// with its connection, and the next node's step goes on. Another runner's step waits for its turn.

import { type Extract, extract } from '../../model/extract.ts'
import { TrafficTally } from '../../model/traffic.ts'
import type { IndexLimits, IndexProgress, IndexStepResult } from '../contract/indexing.ts'
import { DAMAGED, isIntact } from '../rows.ts'
import type { Connection, Statement } from './connection.ts'
import { sqlState, storeFailure } from './failure.ts'
import { fileSome, takeTurn } from './filing.ts'
import {
  type Derived,
  foldAll,
  foldEachAlone,
  foldResends,
  type JournalRow,
  type ResendRow,
  reasonOf,
} from './index-writes.ts'
import type { Pool } from './pool.ts'
import { pruneTraffic, writeTraffic } from './traffic.ts'
import { type Ids, readLastIds, Watermark } from './watermark.ts'

/** How long a step waits for another runner's. */
const TURN_MS = 2000
const LOCK_NOT_AVAILABLE = '55P03'
/** Up to here the lag is counted; beyond, it is told from the ids, among which some have no row. */
const COUNTED = 2000
/** Of arrivals, each of which is a page of its own. */
const COUNTED_ROWS = 100

const SELECT_CURSORS: Statement = {
  name: 'intray_cursors',
  text: 'SELECT lane, position, watermark, clearing FROM intray.index_cursors',
}
const MOVE_CURSORS: Statement = {
  name: 'intray_move_cursors',
  text: `UPDATE intray.index_cursors SET
    position = CASE lane WHEN 'events' THEN $1::bigint ELSE $2::bigint END,
    watermark = greatest(watermark, CASE lane WHEN 'events' THEN $3::bigint ELSE $4::bigint END)`,
}
const COUNT_LAG: Statement = {
  name: 'intray_count_lag',
  text: `SELECT (SELECT count(*) FROM (SELECT FROM intray.events WHERE id > $1 LIMIT ${COUNTED + 1}) e)
      + (SELECT CASE WHEN count(*) > ${COUNTED_ROWS} THEN ${COUNTED + 1} ELSE coalesce(sum(last_id - first_id + 1), 0) END::bigint
        FROM (SELECT first_id, last_id FROM intray.arrivals WHERE first_id > $1
          ORDER BY first_id LIMIT ${COUNTED_ROWS + 1}) a) AS events,
    (SELECT count(*) FROM (SELECT FROM intray.resends WHERE id > $2 LIMIT ${COUNTED + 1}) r) AS resends`,
}
/** The next rows, bounded by count and by bytes; always at least one if there is one. */
const SELECT_EVENTS: Statement = {
  name: 'intray_next_events',
  text: `SELECT id, kind, revises, account_id, company_id, received_at, channel_ref, size, sha256, key_id, scope, payload
  FROM intray.events WHERE id > $1 AND id <= (
    SELECT max(id) FROM (
      SELECT id, sum(size::bigint) OVER (ORDER BY id ROWS UNBOUNDED PRECEDING) - size AS bytes_before FROM (
        SELECT id, size FROM intray.events WHERE id > $1 AND id <= $2 ORDER BY id LIMIT $3) sizes) page
    WHERE bytes_before < $4)
  ORDER BY id`,
}
const SELECT_RESENDS: Statement = {
  name: 'intray_next_resends',
  // The account stands with the event.
  text: `SELECT r.id, r.company_id, r.event_id, r.received_at, r.key_id, e.account_id FROM (
      SELECT id, company_id, event_id, received_at, key_id FROM intray.resends
      WHERE id > $1 AND id <= $2 ORDER BY id LIMIT $3) r
    LEFT JOIN intray.events e ON e.id = r.event_id AND e.company_id = r.company_id
  ORDER BY r.id`,
}
/**
 * From so many events on the planner needs figures: it takes a table it knows nothing of for one with a single row of each
 * tenant, and then any index that begins with the tenant is as good as another. (Measured: 11 ms instead of 0.1 for a look at
 * 20,000 events, and growing with them.) Later autovacuum keeps the figures.
 */
const ANALYZE_FROM = 1000
const IS_ANALYZED = `SELECT bool_and(reltuples >= 0) AS analyzed FROM pg_class
  WHERE oid IN ('intray.event_index'::regclass, 'intray.conversations'::regclass)`
const ANALYZE = 'ANALYZE intray.event_index, intray.event_words, intray.conversations, intray.events'
const REQUEST_REBUILD = 'UPDATE intray.index_cursors SET position = 0, clearing = true'
const DERIVED_TABLES = ['event_index', 'event_words', 'conversations', 'repeats', 'traffic'] as const

interface Cursors {
  readonly position: Ids
  readonly watermark: Ids
  readonly clearing: boolean
}

type Fold = (connection: Connection, derived: readonly Derived[]) => Promise<readonly Derived[]>

export function createIndexing(pool: Pool) {
  const watermark = new Watermark()
  let analyzed = false

  /** Without figures everything works, only slower: a failure is left to autovacuum. */
  async function analyzeOnce({ cursor }: IndexProgress): Promise<void> {
    if (analyzed || cursor < ANALYZE_FROM) return
    analyzed = true
    await pool
      .use(async (connection) => {
        const [row] = await connection.query<{ analyzed: boolean }>(IS_ANALYZED)
        if (!row!.analyzed) await connection.query(ANALYZE)
      })
      .catch(() => {})
  }

  async function step(limits: IndexLimits, fold: Fold): Promise<IndexStepResult> {
    return pool.use(async (connection) => {
      const before = await readCursors(connection)
      const isIdle = !before.clearing && isCovered(before)
      const found = await watermark.find(connection, before.watermark, isIdle)
      if (isIdle && !found) return nothingDone(connection, before)
      try {
        return await connection.transaction(async () => {
          await takeTurn(connection, TURN_MS)
          return stepInTurn(connection, limits, found, fold)
        }, 'reads')
      } catch (error) {
        if (sqlState(storeFailure(error).cause) !== LOCK_NOT_AVAILABLE) throw error
        return nothingDone(connection, await readCursors(connection))
      }
    })
  }

  return {
    step: async (limits: IndexLimits): Promise<IndexStepResult> => {
      try {
        const result = await step(limits, foldAll)
        await analyzeOnce(result)
        return result
      } catch (error) {
        // A row in it cannot be written: the same again, each row in a savepoint of its own, and the bad one marked.
        if (storeFailure(error).kind !== 'rejected') throw error
        return step(limits, foldEachAlone)
      }
    },
    progress: (): Promise<IndexProgress> =>
      pool.use(async (connection) => progressAt(connection, await readCursors(connection))),
    requestRebuild: (): Promise<void> =>
      pool.transaction(async (connection) => {
        await takeTurn(connection, TURN_MS)
        await connection.query(REQUEST_REBUILD)
      }),
    pruneTraffic: (minutesBefore: number, hoursBefore: number): Promise<void> =>
      pool.use((connection) => pruneTraffic(connection, minutesBefore, hoursBefore)),
  }
}

export async function readWatermark(connection: Connection): Promise<number> {
  return (await readCursors(connection)).watermark.events
}

async function stepInTurn(
  connection: Connection,
  limits: IndexLimits,
  found: Ids | null,
  fold: Fold,
): Promise<IndexStepResult> {
  const before = await readCursors(connection)
  const upTo = {
    events: Math.max(before.watermark.events, found?.events ?? 0),
    resends: Math.max(before.watermark.resends, found?.resends ?? 0),
  }
  if (before.clearing) {
    const clearing = !(await clearSome(connection, limits.maxRows))
    await connection.query(MOVE_CURSORS, [0, 0, upTo.events, upTo.resends])
    const progress = await progressAt(connection, { position: { events: 0, resends: 0 }, watermark: upTo, clearing })
    return { ...progress, indexed: 0, unindexed: 0 }
  }
  const reached = await fileSome(connection, before.position.events, upTo.events, limits.maxRows)
  const rows = await connection.query<JournalRow>(SELECT_EVENTS, [
    before.position.events,
    reached,
    limits.maxRows,
    limits.maxBytes,
  ])
  const derived = await fold(connection, rows.map(derive))
  const waiting = await connection.query<ResendRow>(SELECT_RESENDS, [
    before.position.resends,
    upTo.resends,
    limits.maxRows,
  ])
  // One of an event that is not filed waits for it, and what came behind it waits as well.
  const early = waiting.findIndex((resend) => resend.event_id > reached)
  const resends = early === -1 ? waiting : waiting.slice(0, early)
  await foldResends(connection, resends)
  await writeTraffic(connection, tallyOf(rows, resends))
  const isWhole = early === -1 && resends.length < limits.maxRows
  const position = {
    events: positionAfter(rows, reached, limits),
    resends: isWhole ? upTo.resends : (resends.at(-1)?.id ?? before.position.resends),
  }
  await connection.query(MOVE_CURSORS, [position.events, position.resends, upTo.events, upTo.resends])
  const progress = await progressAt(connection, { position, watermark: upTo, clearing: false })
  return {
    ...progress,
    indexed: derived.length,
    unindexed: derived.filter((one) => one.unindexed !== null).length,
  }
}

function tallyOf(rows: readonly JournalRow[], resends: readonly ResendRow[]): TrafficTally {
  const tally = new TrafficTally()
  for (const { company_id, account_id, received_at, key_id, kind } of rows) {
    tally.add(company_id, account_id, received_at, key_id, kind === 'event' ? 'events' : 'revisions')
  }
  for (const { company_id, account_id, received_at, key_id } of resends) {
    if (account_id !== null) tally.add(company_id, account_id, received_at, key_id, 'resends')
  }
  return tally
}

/** When nothing is left to read the cursor goes to the watermark, so that ids without a row are not waited for. */
function positionAfter(rows: readonly JournalRow[], upTo: number, limits: IndexLimits): number {
  const bytes = rows.reduce((sum, row) => sum + row.size, 0)
  return rows.length === limits.maxRows || bytes >= limits.maxBytes ? rows.at(-1)!.id : upTo
}

function derive(row: JournalRow): Derived {
  // Erased content leaves its place in the conversation, and nothing else.
  if (row.payload === null) return { row, fields: null, unindexed: null }
  // Else a list would show the beginning of bytes that nobody sent.
  if (!isIntact(row.payload, row.sha256)) return { row, fields: null, unindexed: DAMAGED }
  try {
    const fields: Extract = extract(row.payload)
    return { row, fields, unindexed: null }
  } catch (error) {
    return { row, fields: null, unindexed: reasonOf(error) }
  }
}

async function readCursors(connection: Connection): Promise<Cursors> {
  const rows = await connection.query<{ lane: keyof Ids; position: number; watermark: number; clearing: boolean }>(
    SELECT_CURSORS,
  )
  const at = (lane: keyof Ids, column: 'position' | 'watermark') => rows.find((row) => row.lane === lane)?.[column] ?? 0
  return {
    position: { events: at('events', 'position'), resends: at('resends', 'position') },
    watermark: { events: at('events', 'watermark'), resends: at('resends', 'watermark') },
    clearing: rows.some((row) => row.clearing),
  }
}

function isCovered({ position, watermark }: Cursors): boolean {
  return position.events >= watermark.events && position.resends >= watermark.resends
}

async function nothingDone(connection: Connection, at: Cursors): Promise<IndexStepResult> {
  return { ...(await progressAt(connection, at)), indexed: 0, unindexed: 0 }
}

async function progressAt(connection: Connection, { position, clearing }: Cursors): Promise<IndexProgress> {
  const [counted] = await connection.query<{ events: number; resends: number }>(COUNT_LAG, [
    position.events,
    position.resends,
  ])
  let { events, resends } = counted!
  if (events > COUNTED || resends > COUNTED) {
    const last = await readLastIds(connection)
    if (events > COUNTED) events = last.events - position.events
    if (resends > COUNTED) resends = last.resends - position.resends
  }
  return { cursor: position.events, lag: events + resends, clearing }
}

/** One bounded step of a rebuild's first half. True when nothing is left, and the cursors are free to run again. */
async function clearSome(connection: Connection, maxRows: number): Promise<boolean> {
  let cleared = 0
  for (const table of DERIVED_TABLES) {
    const remaining = maxRows - cleared
    if (remaining === 0) return false
    cleared += await connection.execute(
      `DELETE FROM intray.${table} WHERE ctid = ANY (ARRAY(SELECT ctid FROM intray.${table} LIMIT $1))`,
      [remaining],
    )
  }
  if (cleared === maxRows) return false
  await connection.query('UPDATE intray.index_cursors SET clearing = false')
  return true
}
