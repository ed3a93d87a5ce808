// Who is next on the writer. All appends that are waiting are next together, up to a bound: they share one commit.
//
// - Control operations (tokens, nodes, probes) are rare and short, and a revoked token must not wait: they go first.
// - Intake goes before notes (refusals, uses of tokens, filing), which nobody waits for; they run when no append is waiting, and at
//   the latest after NOTES_EVERY turns.
// - What the writer does for itself (reading keys) comes when there is nothing else, and at the latest after SPARE_EVERY turns.
// - Processing (claims, acks, sessions of operators) and intake take turns: neither can starve the other.
//
// After a commit its senders come back, a moment later. On a disk that syncs slowly the next commit waits for them, or it would
// leave with the few that are there, and every other commit would be almost empty: half of what the disk can do.

import type { AppendBatch } from './append-batch.ts'
import type { OperationName } from './operations.ts'
import type { Job } from './thread-jobs.ts'

const NOTES_EVERY = 50
const SPARE_EVERY = 50
/** One commit takes no more than this (or one batch): it delays everything behind it. */
const MAX_COMMIT_BYTES = 16 * 1024 * 1024
const MAX_COMMIT_BATCHES = 16
/** Of what the last commit took: the next waits no longer than this. Below a millisecond it does not wait at all. */
const WAIT_SHARE = 0.25
/** After a stall of the disk, nobody may be left to wait for. */
const MAX_WAIT_MS = 50

type Lane = 'control' | 'intake' | 'processing' | 'notes' | 'spare'

const LANES: Partial<Record<WriterJob['name'], Lane>> = {
  readKeys: 'spare',
  append: 'intake',
  claim: 'processing',
  ack: 'processing',
  extend: 'processing',
  release: 'processing',
  requeue: 'processing',
  clearSubscriptions: 'processing',
  findKey: 'processing',
  // Whoever tries to sign in must not get ahead of messages.
  openSession: 'processing',
  closeSession: 'processing',
  closeSessions: 'processing',
  useSignInLink: 'processing',
  addAudit: 'processing',
  // Filed at once where somebody waits for it.
  fileNow: 'processing',
  file: 'notes',
  addRefusals: 'notes',
  touchTokens: 'notes',
  touchSession: 'notes',
  pruneOperators: 'notes',
}

/** `readKeys`: of the writer's own. */
export type WriterJob = Job<OperationName | 'readKeys'>

export class WriterQueue {
  readonly #lanes: Record<Lane, WriterJob[]> = { control: [], intake: [], processing: [], notes: [], spare: [] }
  #turnsWithoutNotes = 0
  #turnsWithoutSpare = 0
  #processingRanLast = false
  /** So many appends are worth waiting for, until then. */
  #expected = 0
  #waitUntil = 0

  push(job: WriterJob): void {
    this.#lanes[laneOf(job)].push(job)
  }

  get isEmpty(): boolean {
    return Object.values(this.#lanes).every((lane) => lane.length === 0)
  }

  /** A commit of so many appends ended now, and took so long. */
  committed(appends: number, ms: number, now: number): void {
    const waitMs = Math.min(ms * WAIT_SHARE, MAX_WAIT_MS)
    this.#expected = waitMs < 1 ? 0 : appends
    this.#waitUntil = now + waitMs
  }

  /** For how many ms it is better to wait for more; 0: go on. */
  pause(now: number): number {
    const { control, intake, processing } = this.#lanes
    if (intake.length === 0 || intake.length >= this.#expected) return 0
    if (control.length > 0 || processing.length > 0) return 0
    return Math.max(0, this.#waitUntil - now)
  }

  get #hasOnlySpare(): boolean {
    const { control, intake, processing, notes } = this.#lanes
    return control.length + intake.length + processing.length + notes.length === 0
  }

  /** The jobs to run now: one, or the appends that are waiting. None if there is nothing to do. */
  next(): WriterJob[] {
    const { control, intake, processing, notes, spare } = this.#lanes
    if (control.length > 0) return control.splice(0, 1)
    if (spare.length > 0 && (this.#hasOnlySpare || ++this.#turnsWithoutSpare >= SPARE_EVERY)) {
      this.#turnsWithoutSpare = 0
      return spare.splice(0, 1)
    }
    if (notes.length > 0 && (intake.length === 0 || ++this.#turnsWithoutNotes >= NOTES_EVERY)) {
      this.#turnsWithoutNotes = 0
      return notes.splice(0, 1)
    }
    if (processing.length > 0 && !(this.#processingRanLast && intake.length > 0)) {
      this.#processingRanLast = true
      return processing.splice(0, 1)
    }
    this.#processingRanLast = false
    return intake.splice(0, commitSize(intake))
  }
}

function laneOf({ name }: WriterJob): Lane {
  return LANES[name] ?? 'control'
}

/** How many of the waiting appends fit into one commit; at least one. */
function commitSize(intake: readonly WriterJob[]): number {
  let bytes = 0
  let count = 0
  for (const { args } of intake) {
    bytes += (args[0] as AppendBatch).bytes.byteLength
    if (count > 0 && (bytes > MAX_COMMIT_BYTES || count >= MAX_COMMIT_BATCHES)) break
    count += 1
  }
  return count
}
