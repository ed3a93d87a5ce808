// Append on PostgreSQL: one statement, one round trip, one commit for a batch (intray.append_messages in migrations/0001_schema.sql).
//
// What can become of a try, and what is done:
//
//   committed, confirmed                          → the outcomes
//   40P01, 40001: two batches collided            → the same again, after a short random pause
//   frozen: the database is being copied          → refused at once
//   about the data                                → the batch in halves, down to the row that fails alone
//   connection lost, silent, or the commit not    → unknown: the same again on a new connection, for GIVE_UP_MS. The keys
//   confirmed by the standby                        the node minted tell its own rows, so nothing is stored twice.
//   no connection to be had                       → refused at once, unless an earlier try is unknown
//
// A statement that is given up is never cancelled: a cancel is what turns a wait for the standby into a false answer.
//
// All batches of a node go over one connection, the next one sent before the last is answered: the server runs them one after
// the other. Only one whose fate is unknown is tried again on a connection of its own.

import { setTimeout as pause } from 'node:timers/promises'
import type { AppendItem, AppendOutcome } from '../../contract/append.ts'
import type { StoreFailure } from '../../contract/failure.ts'
import { appendValid } from '../../validate-items.ts'
import { BindMessage } from '../connection/bind-message.ts'
import type { Connection } from '../connection/connection.ts'
import { FROZEN_STATE, isRetryable, notAcknowledged, sqlState, storeFailure } from '../connection/failure.ts'
import type { Pool } from '../connection/pool.ts'
import { APPEND, type AppendRows, createPackRows, splitRows } from './append-rows.ts'

/** How long a batch whose fate is unknown is tried again; a large one longer. */
const GIVE_UP_MS = 10_000
/** One try: a server that fell silent leaves time for another. */
const TRY_MS = 4000
/** What a slow way to the server carries in a millisecond: a batch of 100 MB has 50 s more. */
const BYTES_PER_MS = 2000
/** Deadlocks and serialization failures in a row; each costs the server a second to notice. */
const MAX_COLLISIONS = 8
const RETRY_PAUSE_MS = 25

/** So many messages are kept to be written to again, each of no more than this. */
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
    // Its only try was answered, so no socket holds anything of it any longer.
    if (!message.isSpoiled && free.length < MAX_KEPT_MESSAGES && message.capacity <= MAX_KEPT_BYTES) free.push(message)
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
    if (rows.count === 1) return [{ outcome: 'failed', reason: failure.message }]
    const [first, second] = splitRows(rows)
    return [...(await appendRows(pool, first)), ...(await appendRows(pool, second))]
  }
}

/** Until it is known what became of it, or for too long. */
async function commit(pool: Pool, { count, message }: AppendRows): Promise<AppendOutcome[]> {
  const largeMs = message.bytes.byteLength / BYTES_PER_MS
  const deadline = performance.now() + GIVE_UP_MS + 2 * largeMs
  let unknown: StoreFailure | null = null
  for (let collisions = 0; ; ) {
    // A batch that may be stuck does not hold up the others a second time.
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
      message.isSpoiled = true
      const failure = storeFailure(error)
      if (isRetryable(failure)) {
        if (++collisions > MAX_COLLISIONS) throw failure
      } else if (sqlState(failure.cause) === FROZEN_STATE) {
        throw failure
      } else if (failure.kind === 'unavailable') {
        unknown = failure
        // Other connections to that server may be as dead.
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

/** '{5,6,7}', and null or '{s,d,c}'. */
function readOutcomes(count: number, [ids, letters]: readonly unknown[]): AppendOutcome[] {
  const found = typeof ids === 'string' ? ids.slice(1, -1).split(',').map(Number) : []
  const outcomes = typeof letters === 'string' ? letters.slice(1, -1).split(',') : null
  if (found.length !== count || !found.every((id) => id > 0)) throw notAcknowledged('it gave no ids')
  return found.map((id, n) => ({ outcome: OUTCOMES[(outcomes?.[n] ?? 's') as keyof typeof OUTCOMES], id }))
}
