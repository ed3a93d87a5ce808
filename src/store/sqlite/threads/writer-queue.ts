// Which job the writer runs next. All appends that are waiting run together, up to a bound: they share one commit.
//
// - `control` (tokens, nodes, probes) is rare and short, and a revoked token must not wait: it goes first.
// - `intake` goes before `background` (refusals, uses of tokens), which nobody waits for; background jobs run when no append is
//   waiting, and at the latest after BACKGROUND_EVERY turns.
// - `processing` (claims, acks, sessions of operators) and intake take turns: neither can starve the other.
//
// After a commit its senders come back, a moment later. On a disk that syncs slowly the next commit waits for them, or it would
// leave with the few that are there, and every other commit would be almost empty: half of what the disk can do.

import type { AppendBatch } from '../journal/append-batch.ts'
import type { OperationName } from '../operations.ts'
import type { Job } from './thread-jobs.ts'

const BACKGROUND_EVERY = 50
/** One commit takes no more than this (or one batch): it delays everything behind it. */
const MAX_COMMIT_BYTES = 16 * 1024 * 1024
const MAX_COMMIT_BATCHES = 16
/** Of what the last commit took: the next waits no longer than this. Below a millisecond it does not wait at all. */
const WAIT_SHARE = 0.25
/** After a stall of the disk, nobody may be left to wait for. */
const MAX_WAIT_MS = 50

type Priority = 'control' | 'intake' | 'processing' | 'background'

const PRIORITIES: Partial<Record<OperationName, Priority>> = {
  append: 'intake',
  claim: 'processing',
  ack: 'processing',
  extend: 'processing',
  release: 'processing',
  requeue: 'processing',
  clearSubscriptions: 'processing',
  // Attempts to sign in must not get ahead of messages.
  openSession: 'processing',
  closeSession: 'processing',
  closeSessions: 'processing',
  useSignInLink: 'processing',
  addAudit: 'processing',
  addRefusals: 'background',
  touchTokens: 'background',
  touchSession: 'background',
  pruneOperators: 'background',
}

export type WriterJob = Job<OperationName>

export class WriterQueue {
  readonly #waiting: Record<Priority, WriterJob[]> = { control: [], intake: [], processing: [], background: [] }
  #turnsWithoutBackground = 0
  #processingRanLast = false
  /** So many appends are worth waiting for, until then. */
  #expected = 0
  #waitUntil = 0

  push(job: WriterJob): void {
    this.#waiting[PRIORITIES[job.name] ?? 'control'].push(job)
  }

  get isEmpty(): boolean {
    return Object.values(this.#waiting).every((jobs) => jobs.length === 0)
  }

  /** A commit of so many appends ended now, and took so long. */
  committed(appends: number, ms: number, now: number): void {
    const waitMs = Math.min(ms * WAIT_SHARE, MAX_WAIT_MS)
    this.#expected = waitMs < 1 ? 0 : appends
    this.#waitUntil = now + waitMs
  }

  /** For how many ms it is better to wait for more; 0: go on. */
  pause(now: number): number {
    const { control, intake, processing } = this.#waiting
    if (intake.length === 0 || intake.length >= this.#expected) return 0
    if (control.length > 0 || processing.length > 0) return 0
    return Math.max(0, this.#waitUntil - now)
  }

  /** The jobs to run now: one, or the appends that are waiting. None if there is nothing to do. */
  next(): WriterJob[] {
    const { control, intake, processing, background } = this.#waiting
    if (control.length > 0) return control.splice(0, 1)
    if (background.length > 0 && (intake.length === 0 || ++this.#turnsWithoutBackground >= BACKGROUND_EVERY)) {
      this.#turnsWithoutBackground = 0
      return background.splice(0, 1)
    }
    if (processing.length > 0 && !(this.#processingRanLast && intake.length > 0)) {
      this.#processingRanLast = true
      return processing.splice(0, 1)
    }
    this.#processingRanLast = false
    return intake.splice(0, commitSize(intake))
  }
}

/** How many of the waiting appends fit into one commit; at least one. */
function commitSize(intake: readonly WriterJob[]): number {
  let bytes = 0
  let count = 0
  for (const { args } of intake) {
    bytes += (args[0] as AppendBatch).payloads.byteLength
    if (count > 0 && (bytes > MAX_COMMIT_BYTES || count >= MAX_COMMIT_BATCHES)) break
    count += 1
  }
  return count
}
