// Append on PostgreSQL: one statement, one round trip, one commit a batch (intray.append_messages in
// migrations/0001_schema.sql).
//
// Outcomes of a try:
//
//   committed, confirmed                          → the outcomes
//   40P01, 40001: two batches collided            → retried after a short random pause
//   frozen: the database is being copied          → refused at once
//   rejected data                                 → the batch in halves, down to the row that fails alone
//   connection lost, silent, or the commit not    → unknown: retried on a new connection, for GIVE_UP_MS. The minted
//   confirmed by the standby                        keys identify the node's own rows, so nothing is stored twice.
//   no connection available                       → refused at once, unless an earlier try is unknown
//
// A statement that timed out is never cancelled: a cancel would turn a wait for the standby into a false success.
//
// All batches of a node share one connection, pipelined: the server runs them one after the other. Only a batch whose
// outcome is unknown is retried on a connection of its own.

import { setTimeout as pause } from 'node:timers/promises'
import type { AppendItem, AppendOutcome } from '../../contract/append.ts'
import type { StoreFailure } from '../../contract/failure.ts'
import { appendValid } from '../../validate-items.ts'
import { BindMessage } from '../connection/bind-message.ts'
import type { Connection } from '../connection/connection.ts'
import {
  FROZEN_STATE,
  isRetryable,
  MOVED_STATE,
  notAcknowledged,
  sqlState,
  storeFailure,
} from '../connection/failure.ts'
import type { Pool } from '../connection/pool.ts'
import { APPEND, type AppendRows, createPackRows, splitRows } from './append-rows.ts'

/** How long a batch with an unknown outcome is retried; a large one longer. */
const GIVE_UP_MS = 10_000
/** Limit of one try: if the server is silent, time for another try remains. */
const TRY_MS = 4000
/** Throughput of a slow connection: a batch of 100 MB gets 50 s more. */
const BYTES_PER_MS = 2000
/** Deadlocks and serialization failures in a row; the server takes a second to detect each. */
const MAX_COLLISIONS = 8
const RETRY_PAUSE_MS = 25

/** How many messages are kept for reuse, and the largest of them. */
const MAX_KEPT_MESSAGES = 4
const MAX_KEPT_BYTES = 1024 * 1024

const OUTCOMES = { s: 'stored', d: 'duplicate', c: 'conflict' } as const

export type Append = (items: readonly AppendItem[]) => Promise<AppendOutcome[]>

export function createAppend(pool: Pool, dedupeKey: Uint8Array): Append {
  const packRows = createPackRows(dedupeKey)
  const free: BindMessage[] = []

  async function append(items: readonly AppendItem[]): Promise<AppendOutcome[]> {
    const message = free.pop() ?? new BindMessage()
    const outcomes = await appendRows(pool, packRows(items, message))
    // Its only try was answered, so no socket still holds its bytes.
    if (!message.mayBeInFlight && free.length < MAX_KEPT_MESSAGES && message.capacity <= MAX_KEPT_BYTES)
      free.push(message)
    return outcomes
  }

  return (items) => appendValid(items, append)
}

async function appendRows(pool: Pool, rows: AppendRows): Promise<AppendOutcome[]> {
  try {
    return await commit(pool, rows)
  } catch (error) {
    const failure = storeFailure(error)
    if (failure.kind !== 'rejected') throw failure
    if (rows.count === 1) {
      const isMoved = sqlState(failure.cause) === MOVED_STATE
      return [{ outcome: 'failed', reason: failure.message, ...(isMoved && { isMoved }) }]
    }
    const [first, second] = splitRows(rows)
    return [...(await appendRows(pool, first)), ...(await appendRows(pool, second))]
  }
}

/** Retries until the outcome is known or the deadline has passed. */
async function commit(pool: Pool, { count, message }: AppendRows): Promise<AppendOutcome[]> {
  const largeMs = message.bytes.byteLength / BYTES_PER_MS
  const deadline = performance.now() + GIVE_UP_MS + 2 * largeMs
  let unknown: StoreFailure | null = null
  for (let collisions = 0; ; ) {
    // A batch that may be stuck must not block the others again.
    const isAlone = unknown !== null
    let connection: Connection
    try {
      connection = isAlone ? await pool.acquire() : await pool.shared()
    } catch (error) {
      if (unknown === null || performance.now() > deadline) throw unknown ?? error
      await pause(RETRY_PAUSE_MS * (1 + Math.random()))
      continue
    }
    try {
      const left = Math.max(1, deadline - performance.now())
      const limitMs = Math.min(TRY_MS + largeMs, left)
      return readOutcomes(count, await connection.cells(APPEND, message, limitMs))
    } catch (error) {
      message.mayBeInFlight = true
      const failure = storeFailure(error)
      if (isRetryable(failure)) {
        if (++collisions > MAX_COLLISIONS) throw failure
      } else if (sqlState(failure.cause) === FROZEN_STATE) {
        throw failure
      } else if (failure.kind === 'unavailable') {
        unknown = failure
        // Other connections to that server may be dead as well.
        if (connection.isBroken) pool.dropIdle()
      } else {
        throw failure
      }
      if (performance.now() > deadline) throw failure
    } finally {
      if (isAlone) pool.release(connection)
    }
    await pause(RETRY_PAUSE_MS * (1 + Math.random()))
  }
}

/** Parses '{5,6,7}', and null or '{s,d,c}'. */
function readOutcomes(count: number, [ids, letters]: readonly unknown[]): AppendOutcome[] {
  const found = typeof ids === 'string' ? ids.slice(1, -1).split(',').map(Number) : []
  const outcomes = typeof letters === 'string' ? letters.slice(1, -1).split(',') : null
  if (found.length !== count || !found.every((id) => id > 0)) throw notAcknowledged('it gave no ids')
  return found.map((id, n) => ({ outcome: OUTCOMES[(outcomes?.[n] ?? 's') as keyof typeof OUTCOMES], id }))
}
