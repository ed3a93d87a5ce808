// Who is next on the writer. All appends that are waiting are next together, up to a bound: they share one commit.
//
// - Control operations (tokens, nodes, probes) are rare and short, and a revoked token must not wait: they go first.
// - Intake goes before notes (refusals, uses of tokens), which nobody waits for; they run when no append is waiting, and at
//   the latest after NOTES_EVERY turns.
// - Processing (claims, acks, sessions of operators) and intake take turns: neither can starve the other.

import type { AppendBatch } from './append-batch.ts'
import type { OperationName } from './operations.ts'
import type { Job } from './thread-jobs.ts'

const NOTES_EVERY = 50
/** One commit takes no more than this (or one batch): it delays everything behind it. */
const MAX_COMMIT_BYTES = 16 * 1024 * 1024
const MAX_COMMIT_BATCHES = 16

type Lane = 'control' | 'intake' | 'processing' | 'notes'

const LANES: Partial<Record<OperationName, Lane>> = {
  append: 'intake',
  claim: 'processing',
  ack: 'processing',
  extend: 'processing',
  release: 'processing',
  requeue: 'processing',
  clearSubscriptions: 'processing',
  // Whoever tries to sign in must not get ahead of messages.
  openSession: 'processing',
  closeSession: 'processing',
  closeSessions: 'processing',
  useSignInLink: 'processing',
  addAudit: 'processing',
  addRefusals: 'notes',
  touchTokens: 'notes',
  touchSession: 'notes',
  pruneOperators: 'notes',
}

export type WriterJob = Job<OperationName>

export class WriterQueue {
  readonly #lanes: Record<Lane, WriterJob[]> = { control: [], intake: [], processing: [], notes: [] }
  #turnsWithoutNotes = 0
  #processingRanLast = false

  push(job: WriterJob): void {
    this.#lanes[laneOf(job)].push(job)
  }

  get isEmpty(): boolean {
    return Object.values(this.#lanes).every((lane) => lane.length === 0)
  }

  /** The jobs to run now: one, or the appends that are waiting. None if there is nothing to do. */
  next(): WriterJob[] {
    const { control, intake, processing, notes } = this.#lanes
    if (control.length > 0) return control.splice(0, 1)
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
