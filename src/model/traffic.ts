// Traffic counts by minute and, for each sender, by hour. A step of the indexer sums them up in memory, so that it
// writes one row for each tenant and minute and one for each sender and hour, whatever the number of messages.

import type { Tenant } from './principal.ts'

export const MINUTE_MS = 60_000
export const HOUR_MS = 3_600_000

/** How long rows by minute and by hour are kept. */
export const KEEP_MINUTES_MS = 48 * HOUR_MS
export const KEEP_HOURS_MS = 35 * 24 * HOUR_MS

/** Counts of a queue stop here: this value means this many or more. */
export const MAX_QUEUE_COUNT = 10_000

/** Rows of traffic that one call reads, the latest: the hours of two days for 200 tokens that are used in each. */
export const MAX_TRAFFIC_ROWS = 10_000
/** How many of the latest refusals are read to count them. */
export const REFUSAL_SCAN_ROWS = 1000

export interface TrafficCounts {
  events: number
  resends: number
  revisions: number
}

export type TrafficSpan = 'minute' | 'hour'

export interface TrafficRow extends Readonly<TrafficCounts>, Tenant {
  readonly span: TrafficSpan
  /** When the minute or hour begins. */
  readonly at: number
  /** '' in rows by minute, which count all senders. */
  readonly keyId: string
}

type Counted = { -readonly [K in keyof TrafficRow]: TrafficRow[K] }

/** The rows that a sender's last message was counted in. */
interface Last {
  readonly minute: Counted
  readonly hour: Counted
}

export class TrafficTally {
  readonly #rows = new Map<string, Counted>()
  /** Most messages of a sender share tenant and minute with its previous one: this saves building their keys. */
  readonly #lasts = new Map<string, Last>()

  add(companyId: number, accountId: number, receivedAt: number, keyId: string, what: keyof TrafficCounts): void {
    const at = receivedAt - (receivedAt % MINUTE_MS)
    let last = this.#lasts.get(keyId)
    if (last?.minute.at !== at || last.minute.accountId !== accountId || last.minute.companyId !== companyId) {
      const minute = this.#rowOf(companyId, accountId, 'minute', at, '')
      const hour = this.#rowOf(companyId, accountId, 'hour', receivedAt - (receivedAt % HOUR_MS), keyId)
      last = { minute, hour }
      this.#lasts.set(keyId, last)
    }
    last.minute[what] += 1
    last.hour[what] += 1
  }

  rows(): readonly TrafficRow[] {
    return Array.from(this.#rows.values())
  }

  #rowOf(companyId: number, accountId: number, span: TrafficSpan, at: number, keyId: string): Counted {
    const key = `${companyId}:${accountId}:${at}:${keyId}:${span}`
    const known = this.#rows.get(key)
    if (known) return known
    const row = { companyId, accountId, span, at, keyId, events: 0, resends: 0, revisions: 0 }
    this.#rows.set(key, row)
    return row
  }
}
