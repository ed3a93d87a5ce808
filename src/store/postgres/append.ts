// Append on PostgreSQL: one statement, one round trip, one commit for a batch. One that is likely to be new lies down in `arrivals` and
// is filed later (migrations/0010_arrivals.sql), any other goes to its places at once (migrations/0009_append_hopefully.sql). Where this
// node writes alone, keys may come later as well (pen.ts).
//
// What can become of a try, and what is done:
//
//   committed, confirmed                          → the outcomes
//   40P01, 40001: two batches got in the way      → the same again, after a short random pause
//   frozen: the database is being copied          → refused at once
//   about the data (never of arrivals)            → the batch in halves, down to the row that fails alone
//   connection lost, silent, or the commit not    → unknown: the same again on a new connection, for GIVE_UP_MS. The keys
//   confirmed by the standby                        the node minted tell its own rows, so nothing is stored twice.
//   no connection to be had                       → refused at once, unless an earlier try is unknown
//
// What is tried again, or sent when its pen was let go of meanwhile, is written under no pen: all that came before has its keys by then.
//
// A statement that is given up is never cancelled: a cancel is what turns a wait for the standby into a false answer.
//
// All batches of a node go over one connection, the next one sent before the last is answered: the server runs them one after
// the other (docs/adr/0036). Only one whose fate is unknown is tried again on a connection of its own.

import { setTimeout as pause } from 'node:timers/promises'
import type { AppendItem, AppendOutcome } from '../contract/append.ts'
import type { StoreFailure } from '../contract/failure.ts'
import { appendSound } from '../sound-items.ts'
import { type AppendRows, type Batch, createItemDigests, createPackRows, disown, splitRows } from './append-rows.ts'
import { createPackArrivals } from './arrival-rows.ts'
import { BindMessage } from './bind-message.ts'
import type { Connection, Statement } from './connection.ts'
import { FROZEN_STATE, isRetryable, notAcknowledged, sqlState, storeFailure } from './failure.ts'
import { Hope } from './hope.ts'
import { type Heard, NO_PEN, type Pen } from './pen.ts'
import type { PenHolder } from './pen-holder.ts'
import type { Pool } from './pool.ts'

/** How long a batch whose fate is unknown is tried again; a large one longer. */
const GIVE_UP_MS = 10_000
/** One try: a server that fell silent leaves time for another. */
const TRY_MS = 4000
/** What a slow way to the server carries in a millisecond: a batch of 100 MB has 50 s more. */
const BYTES_PER_MS = 2000
/** Deadlocks and serialization failures in a row; each costs the server a second to notice. */
const MAX_COLLISIONS = 8
const RETRY_PAUSE_MS = 25

const ARRAYS = Array.from({ length: 19 }, (_, n) => `$${n + 2}`).join(', ')
// Its last argument says whether it hopes, and on the way the database is told of the pen.
const CAREFUL: Statement = {
  name: 'intray_append',
  text: `SELECT ids, outcomes FROM intray.append_messages(${ARRAYS}, set_config('intray.pen', $1, true) <> $1)`,
}
const HOPEFUL: Statement = {
  name: 'intray_append_hopefully',
  text: `SELECT ids, outcomes FROM intray.append_messages(${ARRAYS}, set_config('intray.pen', $1, true) = $1)`,
}

/** So many messages are kept to be written to again, each of no more than this. */
const MOST_KEPT = 4
const LARGEST_KEPT = 1024 * 1024

const OUTCOMES = { s: 'stored', d: 'duplicate', c: 'conflict' } as const

export type Append = (items: readonly AppendItem[]) => Promise<AppendOutcome[]>

/** What came of a batch. */
interface Answer {
  readonly outcomes: AppendOutcome[]
  /** Nothing where it was not sent as arrivals. */
  readonly heard?: Heard
}

/** Without a holder all is written under no pen. */
export function createAppend(
  pool: Pool,
  dedupeKey: Uint8Array,
  holder: PenHolder | null,
  hope: Hope = new Hope(),
): Append {
  const digests = createItemDigests(dedupeKey)
  const packRows = createPackRows(digests)
  const packArrivals = createPackArrivals(digests)
  const free: BindMessage[] = []

  async function append(items: readonly AppendItem[]): Promise<AppendOutcome[]> {
    const keys = digests.keys(items)
    const mayHope = hope.allows(items.length)
    const held = (mayHope ? holder?.ask() : holder?.current()) ?? null
    const entry = held?.enter(keys) ?? null
    if (!held || !entry) {
      const batch = { items, keys, pen: NO_PEN, isLate: false, doubts: [] }
      return (await send(batch, mayHope && !held, null)).outcomes
    }
    let heard: Heard | undefined
    try {
      const batch = { items, keys, pen: held.name, isLate: held.isOpen, doubts: entry.doubts }
      const answer = await send(batch, mayHope, held)
      heard = answer.heard
      return answer.outcomes
    } finally {
      holder?.left(held, entry, keys, heard)
    }
  }

  async function send(batch: Batch, isHopeful: boolean, pen: Pen | null): Promise<Answer> {
    const message = free.pop() ?? new BindMessage()
    const arrivals = isHopeful ? packArrivals(batch, message) : null
    const answer = await appendRows(pool, arrivals ?? packRows(isHopeful ? HOPEFUL : CAREFUL, batch, message), pen)
    hope.learn(answer.outcomes)
    // Its only try was answered, so no socket holds anything of it any longer.
    if (!message.isSpoiled && free.length < MOST_KEPT && message.capacity <= LARGEST_KEPT) free.push(message)
    return answer
  }

  return (items) => appendSound(items, (sound) => inCompanyOrder(sound, append))
}

/** Those of a company beside each other, in their order; the outcomes as they came. */
async function inCompanyOrder(items: readonly AppendItem[], append: Append): Promise<AppendOutcome[]> {
  const { companyId } = items[0]!
  if (items.every((item) => item.companyId === companyId)) return append(items)
  const places = Array.from(items.keys()).toSorted((a, b) => items[a]!.companyId - items[b]!.companyId)
  const outcomes = await append(places.map((place) => items[place]!))
  const inPlace: AppendOutcome[] = []
  for (const [n, place] of places.entries()) inPlace[place] = outcomes[n]!
  return inPlace
}

async function appendRows(pool: Pool, rows: AppendRows, pen: Pen | null): Promise<Answer> {
  try {
    return await commit(pool, rows, pen)
  } catch (error) {
    const failure = storeFailure(error)
    if (failure.kind !== 'rejected' || !rows.canSplit) throw failure
    if (rows.count === 1) return { outcomes: [{ outcome: 'failed', reason: failure.message }] }
    const [first, second] = splitRows(CAREFUL, rows)
    const { outcomes } = await appendRows(pool, first, null)
    return { outcomes: [...outcomes, ...(await appendRows(pool, second, null)).outcomes] }
  }
}

/** Until it is known what became of it, or for too long. */
async function commit(pool: Pool, packed: AppendRows, pen: Pen | null): Promise<Answer> {
  let rows = packed
  const largeMs = rows.message.bytes.byteLength / BYTES_PER_MS
  const deadline = performance.now() + GIVE_UP_MS + 2 * largeMs
  let unknown: StoreFailure | null = null
  for (let collisions = 0; ; ) {
    // What may be stuck stands in nobody's way a second time.
    const isAlone = unknown !== null
    let connection: Connection
    try {
      connection = isAlone ? await pool.acquire() : await pool.shared()
    } catch (error) {
      pen?.letGo()
      if (unknown === null || performance.now() > deadline) throw unknown ?? error
      await pause(RETRY_PAUSE_MS * (1 + Math.random()))
      continue
    }
    try {
      const left = Math.max(1, deadline - performance.now())
      const limitMs = Math.min(TRY_MS + largeMs, left)
      if (pen && pen.overSince !== null && rows === packed) rows = disown(packed)
      return readAnswer(rows.count, await connection.cells(rows.statement, rows.message, limitMs))
    } catch (error) {
      packed.message.isSpoiled = true
      pen?.letGo()
      const failure = storeFailure(error)
      if (isRetryable(failure)) {
        if (++collisions > MAX_COLLISIONS) throw failure
      } else if (sqlState(failure.cause) === FROZEN_STATE) {
        throw failure
      } else if (failure.kind === 'unavailable') {
        unknown = failure
        // Whatever else is connected to that server may be as dead.
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

/** '{5,6,7}', and null or '{s,d,c}'. Of arrivals also the first id, if their keys come late, and up to where keys are put. */
function readAnswer(count: number, [ids, letters, first, putThrough]: readonly unknown[]): Answer {
  const heard: Heard | undefined =
    putThrough === undefined
      ? undefined
      : {
          lateFrom: typeof first === 'string' ? Number(first) : null,
          putThrough: typeof putThrough === 'string' ? Number(putThrough) : null,
        }
  const outcomes =
    heard && heard.lateFrom !== null ? storedFrom(heard.lateFrom, count) : readOutcomes(count, ids, letters)
  return heard ? { outcomes, heard } : { outcomes }
}

function storedFrom(firstId: number, count: number): AppendOutcome[] {
  if (!(firstId > 0)) throw notAcknowledged('it gave no ids')
  const outcomes: AppendOutcome[] = []
  for (let n = 0; n < count; n++) outcomes.push({ outcome: 'stored', id: firstId + n })
  return outcomes
}

function readOutcomes(count: number, ids: unknown, letters: unknown): AppendOutcome[] {
  const found = typeof ids === 'string' ? ids.slice(1, -1).split(',').map(Number) : []
  const outcomes = typeof letters === 'string' ? letters.slice(1, -1).split(',') : null
  if (found.length !== count || !found.every((id) => id > 0)) throw notAcknowledged('it gave no ids')
  return found.map((id, n) => ({ outcome: OUTCOMES[(outcomes?.[n] ?? 's') as keyof typeof OUTCOMES], id }))
}
