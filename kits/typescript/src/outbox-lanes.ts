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

export class OutboxLanes<T extends Entry> {
  /** The waiting rows of each channel, by id. */
  readonly #channels = new Map<string, T[]>()
  /** Holds outdated places too: one counts only if its time is still that of the row. */
  readonly #due = new MinHeap<Due>((a, b) => a.at < b.at || (a.at === b.at && a.entry.id < b.entry.id))

  /** A waiting row: due at `at`, unless others of its channel come first. */
  add(entry: T, at: number): void {
    entry.status = 'waiting'
    entry.claimed_until = 0
    entry.next_at = null
    const lane = this.#laneOf(entry)
    if (!lane) {
      if (entry.channel_ref !== null) this.#channels.set(entry.channel_ref, [entry])
      this.#setDue(entry, at)
      return
    }
    let place = lane.length
    while (place > 0 && lane[place - 1]!.id > entry.id) place -= 1
    lane.splice(place, 0, entry)
    // A row that is sent again comes before later ones, unless one of them is under way.
    if (place < lane.length - 1 && !lane.some(isClaimed)) {
      for (const later of lane.slice(place + 1)) later.next_at = null
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

  retry(entry: T, at: number, now: number): void {
    entry.claimed_until = 0
    entry.next_at = null
    const lane = this.#laneOf(entry)
    if (!lane || lane[0] === entry) this.#setDue(entry, at)
    else this.#wake(lane, now)
  }

  /** It no longer waits. */
  remove(entry: T, now: number): void {
    entry.claimed_until = 0
    entry.next_at = null
    const lane = this.#laneOf(entry)
    if (!lane) return
    lane.splice(lane.indexOf(entry), 1)
    if (lane.length === 0) this.#channels.delete(entry.channel_ref!)
    else this.#wake(lane, now)
  }

  nextAt(): number | null {
    for (let first = this.#due.peek(); first; first = this.#due.peek()) {
      if (first.entry.next_at === first.at) return first.at
      this.#due.pop()
    }
    return null
  }

  #laneOf(entry: T): T[] | undefined {
    return entry.channel_ref === null ? undefined : this.#channels.get(entry.channel_ref)
  }

  #wake(lane: readonly T[], now: number): void {
    const first = lane[0]
    if (first && first.next_at === null && !lane.some(isClaimed)) this.#setDue(first, now)
  }

  #setDue(entry: T, at: number): void {
    entry.next_at = at
    this.#due.push({ at, entry })
  }
}

const isClaimed = (entry: Entry): boolean => entry.claimed_until > 0
