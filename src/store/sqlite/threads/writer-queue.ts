// Decides which jobs the writer runs next. All waiting appends run together, up to a bound, and share one commit.
//
// - `control` (tokens, nodes, probes) is rare and short, and a revoked token must not wait: it runs first.
// - `intake` runs before `background` (refusals, token uses), which no caller waits for; a background job runs when no
//   append waits, at the latest after BACKGROUND_EVERY turns.
// - `processing` (claims, acks, operator sessions) and intake alternate: neither can starve the other. Tenants take turns,
//   so that one waits for one job of each other tenant at most.
//
// After a commit its senders send again a moment later. On a slow disk the next commit waits for them; otherwise it
// would start with few messages and every other commit would be almost empty: half of what the disk can do.

import { FairQueue } from '../../../runtime/fair-queue.ts'
import type { AppendBatch } from '../journal/append-batch.ts'
import type { OperationName } from '../operations.ts'
import type { Job } from './thread-jobs.ts'

const BACKGROUND_EVERY = 50
/** One commit takes at most this (or one batch): it delays every job behind it. */
const MAX_COMMIT_BYTES = 16 * 1024 * 1024
const MAX_COMMIT_BATCHES = 16
/** The next commit waits at most this share of the last one's duration. Below 1 ms it does not wait. */
const WAIT_SHARE = 0.25
/** After a disk stall, no sender may be left to wait for. */
const MAX_WAIT_MS = 50

type Priority = 'control' | 'intake' | 'processing' | 'background'

const PRIORITIES: Partial<Record<OperationName, Priority>> = {
  append: 'intake',
  claim: 'processing',
  ack: 'processing',
  extend: 'processing',
  release: 'processing',
  requeue: 'processing',
  createSubscription: 'processing',
  deleteSubscription: 'processing',
  clearSubscriptions: 'processing',
  // Sign-in attempts must not delay messages.
  openSession: 'processing',
  closeSession: 'processing',
  closeSessions: 'processing',
  useSignInLink: 'processing',
  addAudit: 'processing',
  erase: 'processing',
  deleteRefusals: 'processing',
  purgeStep: 'background',
  deleteOld: 'background',
  forgetPurges: 'background',
  truncateWal: 'background',
  addRefusals: 'background',
  touchTokens: 'background',
  touchSession: 'background',
  pruneOperators: 'background',
}

export type WriterJob = Job<OperationName>

export class WriterQueue {
  readonly #waiting = {
    control: [] as WriterJob[],
    intake: [] as WriterJob[],
    background: [] as WriterJob[],
    processing: new FairQueue<WriterJob>(),
  } satisfies Record<Priority, unknown>
  #turnsWithoutBackground = 0
  #processingRanLast = false
  /** How many appends to wait for, and until when. */
  #expected = 0
  #waitUntil = 0

  push(job: WriterJob): void {
    const priority = PRIORITIES[job.name] ?? 'control'
    if (priority === 'processing') this.#waiting.processing.push(job.holder ?? '', job)
    else this.#waiting[priority].push(job)
  }

  get isEmpty(): boolean {
    const { control, intake, processing, background } = this.#waiting
    return control.length + intake.length + processing.size + background.length === 0
  }

  /** Records a commit: its appends, its duration and its end. */
  committed(appends: number, ms: number, now: number): void {
    const waitMs = Math.min(ms * WAIT_SHARE, MAX_WAIT_MS)
    this.#expected = waitMs < 1 ? 0 : appends
    this.#waitUntil = now + waitMs
  }

  /** Milliseconds to wait for more appends; 0: run now. */
  pause(now: number): number {
    const { control, intake, processing } = this.#waiting
    if (intake.length === 0 || intake.length >= this.#expected) return 0
    if (control.length > 0 || processing.size > 0) return 0
    return Math.max(0, this.#waitUntil - now)
  }

  /** The jobs to run now: one, or all waiting appends. Empty if no job waits. */
  next(): WriterJob[] {
    const { control, intake, processing, background } = this.#waiting
    if (control.length > 0) return control.splice(0, 1)
    if (background.length > 0 && (intake.length === 0 || ++this.#turnsWithoutBackground >= BACKGROUND_EVERY)) {
      this.#turnsWithoutBackground = 0
      return background.splice(0, 1)
    }
    if (processing.size > 0 && !(this.#processingRanLast && intake.length > 0)) {
      this.#processingRanLast = true
      return [processing.next()!]
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
