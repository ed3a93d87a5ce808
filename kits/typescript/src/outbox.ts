// The outbox contract: messages that wait on this machine's disk until the service has them. The same states and rules hold
// in every sender kit.
//
//   add ──► waiting ── claim, 200 ──────────► sent      pruned after some days
//             ▲  │
//             │  └──── claim, another 4xx ──► refused   kept until somebody sends it again
//             └──────────── resend ──────────────┘
//
// A claim is a compare-and-set that holds for 120 s; if its process dies, another one takes the row over. A waiting row holds
// back the later rows of its channel_ref and no others; a refused row holds back nothing. A row that is not sent is never
// deleted, and its bytes never change.

export interface NewMessage {
  readonly source_ref: string
  readonly channel_ref: string | null
  readonly traceparent: string | null
  readonly body: Uint8Array
}

export type RowStatus = 'waiting' | 'sent' | 'refused'

export interface OutboxRow extends NewMessage {
  readonly id: number
  readonly created_at: number
  /** How often it was claimed. */
  readonly attempts: number
  /** When it may be claimed; null behind another row of its channel. */
  readonly next_at: number | null
  readonly claimed_until: number
  readonly status: RowStatus
  readonly last_error: string | null
}

export interface OutboxCounts {
  readonly waiting: number
  readonly refused: number
  /** When the oldest waiting message was given to send(), in ms since 1970. */
  readonly oldest_at: number | null
}

/** Every change resolves when it is on disk. Times are ms since 1970. */
export interface Outbox {
  add(message: NewMessage, now: number): Promise<void>
  /** At most `limit` rows, at most one of each channel, longest due first. They are the caller's for CLAIM_MS. */
  claim(limit: number, now: number): Promise<readonly OutboxRow[]>
  sent(row: OutboxRow, now: number): Promise<void>
  /** Changes nothing if the claim was lost meanwhile; `refused` neither. */
  retry(row: OutboxRow, nextAt: number, error: string, now: number): Promise<void>
  refused(row: OutboxRow, error: string, now: number): Promise<void>
  /** Makes a refused row wait again. False if it is not there. */
  resend(id: number, now: number): Promise<boolean>
  /** Makes rows due now whose time is after `latest`: it is of a clock that has been set back. */
  correctTimes(latest: number, now: number): Promise<void>
  /** When the next row may be claimed; null if none waits. */
  nextAt(): number | null
  counts(): OutboxCounts
  /** Refused rows after an id, oldest first. */
  listRefused(afterId: number, limit: number): Promise<readonly OutboxRow[]>
  /** Deletes sent rows that were sent before. */
  prune(sentBefore: number): Promise<void>
  close(): Promise<void>
}

export const CLAIM_MS = 120_000
