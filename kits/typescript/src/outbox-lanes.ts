// Which row may be claimed next, kept in memory for the outbox in a plain file: channels in order, rows by the time they are due.

import { MinHeap } from './min-heap.ts'
import { CLAIM_MS } from './outbox.ts'

/** A row without its body. */
export interface Entry {
  readonly id: number
  readonly source_ref: string
  readonly channel_ref: string | null
  readonly traceparent: string | null
  readonly created_at: number
  attempts: number
  next_at: number | null
  claimed_until: number
  status: 'waiting' | 'refused'
  last_error: string | null
}

interface Due {
  readonly at: number
  readonly entry: Entry
}

/** The waiting rows of a channel. */
interface Lane<T> {
  /** By id. */
  readonly rows: T[]
  /** The one row that has a time: it is claimed, or may be. */
  active: T | null
}

export class OutboxLanes<T extends Entry> {
  readonly #lanes = new Map<string, Lane<T>>()
  /** Holds outdated places too: one counts only if its time is still that of the row. */
  readonly #due = new MinHeap<Due>((a, b) => a.at < b.at || (a.at === b.at && a.entry.id < b.entry.id))

  /** A waiting row: due at `at`, unless others of its channel come first. */
  add(entry: T, at: number): void {
    entry.status = 'waiting'
    entry.claimed_until = 0
    entry.next_at = null
    if (entry.channel_ref === null) {
      this.#setDue(entry, at)
      return
    }
    const lane = this.#lanes.get(entry.channel_ref) ?? { rows: [], active: null }
    this.#lanes.set(entry.channel_ref, lane)
    let place = lane.rows.length
    while (place > 0 && lane.rows[place - 1]!.id > entry.id) place -= 1
    lane.rows.splice(place, 0, entry)
    // A row that is sent again comes before later ones, unless one of them is under way.
    if (lane.active && lane.active.id > entry.id && lane.active.claimed_until === 0) {
      lane.active.next_at = null
      lane.active = null
    }
    this.#wake(lane, at)
  }

  claim(limit: number, now: number): T[] {
    const claimed: T[] = []
    for (let at = this.nextAt(); claimed.length < limit && at !== null && at <= now; at = this.nextAt()) {
      const entry = this.#due.pop()!.entry as T
      entry.claimed_until = now + CLAIM_MS
      entry.attempts += 1
      this.#setDue(entry, entry.claimed_until)
      claimed.push(entry)
    }
    return claimed
  }

  /** A claimed row was not sent: due at `at`, or behind a row that came before it meanwhile. */
  retry(entry: T, at: number, now: number): void {
    entry.claimed_until = 0
    const lane = this.#laneOf(entry)
    if (!lane || lane.rows[0] === entry) {
      this.#setDue(entry, at)
      return
    }
    entry.next_at = null
    lane.active = null
    this.#wake(lane, now)
  }

  /** It no longer waits. */
  remove(entry: T, now: number): void {
    entry.claimed_until = 0
    entry.next_at = null
    const lane = this.#laneOf(entry)
    if (!lane) return
    lane.rows.splice(lane.rows.indexOf(entry), 1)
    if (lane.active === entry) lane.active = null
    if (lane.rows.length === 0) this.#lanes.delete(entry.channel_ref!)
    else this.#wake(lane, now)
  }

  nextAt(): number | null {
    for (let first = this.#due.peek(); first; first = this.#due.peek()) {
      if (first.entry.next_at === first.at) return first.at
      this.#due.pop()
    }
    return null
  }

  #laneOf(entry: T): Lane<T> | undefined {
    return entry.channel_ref === null ? undefined : this.#lanes.get(entry.channel_ref)
  }

  #wake(lane: Lane<T>, now: number): void {
    const [first] = lane.rows
    if (!first || lane.active) return
    lane.active = first
    this.#setDue(first, now)
  }

  #setDue(entry: T, at: number): void {
    entry.next_at = at
    this.#due.push({ at, entry })
  }
}
