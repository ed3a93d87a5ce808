// Whether this node holds the pen (pen.ts): it asks for it in a burst, and learns from the answers to its batches that it was
// taken away. While it holds it, the keys in `dedupe` are read, so that it knows of most others that they are new.

import { setTimeout as pause } from 'node:timers/promises'
import type { Place } from '../key-bits.ts'
import type { Statement } from './connection.ts'
import { type Entry, type Heard, Pen } from './pen.ts'
import type { Pool } from './pool.ts'

/** What it takes its time with. */
export interface PenPace {
  /** When it was not to be had, or is over, it is asked for again after so long: at least, and for each ms that it took to read the keys. */
  readonly askAgainMs: number
  readonly askAgainPerMs: number
  /** Reading rests for so many times what a slice took: with 4 it takes a fifth of a core at most. */
  readonly restShare: number
}

/** A slice may have waited for a connection or a lock. */
const MOST_REST_MS = 1000

const PACE: PenPace = { askAgainMs: 60_000, askAgainPerMs: 10, restShare: 4 }

/** With it, about how many keys there are, as the statistics have it: none before the first of them, and the table of bits grows as it is read. */
const TAKE: Statement = {
  name: 'intray_take_pen',
  text: `SELECT intray.take_pen($1) AS is_given, greatest(reltuples, 0)::bigint AS keys
  FROM pg_class WHERE oid = 'intray.dedupe'::regclass`,
}
const SELECT_KEYS: Statement = {
  name: 'intray_keys_behind',
  text: `SELECT company_id, digest FROM intray.dedupe WHERE (company_id, digest) > ($1, $2)
  ORDER BY company_id, digest LIMIT $3`,
}

export class PenHolder {
  readonly #pool: Pool
  readonly #pace: PenPace
  #pen: Pen | null = null
  /** Not asked for before; by `performance.now`. */
  #askFrom = 0
  #isReading = false
  /** For this pen, rests included. */
  #readMs = 0
  #isClosed = false

  constructor(pool: Pool, pace = PACE) {
    this.#pool = pool
    this.#pace = pace
  }

  /** The one that is asked for or held, if it is not over. */
  current(): Pen | null {
    const since = this.#pen?.overSince ?? null
    if (since !== null) {
      this.#askFrom = since + Math.max(this.#pace.askAgainMs, this.#pace.askAgainPerMs * this.#readMs)
      this.#pen = null
    }
    return this.#pen
  }

  /** Asks for it if there is none. Until it is given and the keys are read, what is sent under it has its own put at once. */
  ask(): Pen | null {
    const current = this.current()
    if (current || this.#isClosed || performance.now() < this.#askFrom) return current
    const pen = new Pen()
    this.#pen = pen
    this.#readMs = 0
    this.#take(pen).catch(() => pen.letGo())
    return pen
  }

  /** A batch under it is over. As long as it is held, the keys that were there before are read, if they are not known yet. */
  left(pen: Pen, entry: Entry, keys: Uint8Array, heard: Heard | undefined): void {
    pen.leave(entry, keys, heard)
    if (pen.bits.hasMore && pen === this.current() && !this.#isReading && !this.#isClosed) void this.#read(pen)
  }

  close(): void {
    this.#isClosed = true
  }

  /** In a row with the batches: those before it are over by then. */
  async #take(pen: Pen): Promise<void> {
    const connection = await this.#pool.shared()
    const [row] = await connection.query<{ is_given: boolean; keys: number }>(TAKE, [pen.name])
    if (row!.is_given) pen.give(row!.keys)
    else pen.letGo()
  }

  async #read(pen: Pen): Promise<void> {
    this.#isReading = true
    try {
      while (pen.bits.hasMore && pen === this.current() && !this.#isClosed) {
        const startedAt = performance.now()
        const next = pen.bits.next()
        pen.bits.learn(await this.#pool.use((connection) => connection.rows<Place>(SELECT_KEYS, next)))
        const restMs = this.#pace.restShare * (performance.now() - startedAt)
        if (pen.bits.hasMore) await pause(Math.min(restMs, MOST_REST_MS), undefined, { ref: false })
        this.#readMs += performance.now() - startedAt
      }
    } catch {
      // The next batch tries again: until then keys are put at once.
    } finally {
      this.#isReading = false
    }
  }
}
