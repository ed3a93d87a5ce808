// Who is next on the writer. All appends that are waiting are next together, up to a bound: they share one commit.
//
// - Control operations (tokens, nodes, probes) are rare and short, and a revoked token must not wait: they go first.
// - Intake goes before indexing and before notes (refusals, uses of tokens), which nobody waits for.
// - While the lag is small, indexing runs only when intake has been quiet for QUIET_MS: senders who wait for their answers
//   send again a moment later, and a step in that moment would hold up all of them. It waits for that at most PATIENCE_MS
//   since intake began to be busy, as somebody may wait for the index. Past MAX_LAG every millisecond of
//   appending earns the indexer enough credit for INDEX_SHARE of the writer's time, and it goes first as long as it has credit.
// - Processing (claims, acks) and intake with its indexing take turns: neither can starve the other.
// - Notes run when no append is waiting, and at the latest after NOTES_EVERY turns.

import type { AppendBatch } from './append-batch.ts'
import type { OperationName } from './operations.ts'

const MAX_LAG = 1000
const INDEX_SHARE = 0.3
const QUIET_MS = 5
const PATIENCE_MS = 50
/** Neither side may save up more than this: what counts is the share now, not an hour ago. */
const MAX_CREDIT_MS = 100
const NOTES_EVERY = 50
/** One commit takes no more than this (or one batch): it delays everything behind it. */
const MAX_COMMIT_BYTES = 16 * 1024 * 1024
const MAX_COMMIT_BATCHES = 16

type Lane = 'control' | 'intake' | 'processing' | 'index' | 'notes'

const LANES: Partial<Record<OperationName, Lane>> = {
  append: 'intake',
  claim: 'processing',
  ack: 'processing',
  extend: 'processing',
  release: 'processing',
  requeue: 'processing',
  clearSubscriptions: 'processing',
  indexStep: 'index',
  addRefusals: 'notes',
  touchTokens: 'notes',
  touchSession: 'notes',
  pruneOperators: 'notes',
  pruneTraffic: 'notes',
}

export interface Job {
  readonly seq: number
  readonly name: OperationName
  readonly args: readonly unknown[]
}

export class WriterQueue {
  readonly #lanes: Record<Lane, Job[]> = { control: [], intake: [], processing: [], index: [], notes: [] }
  #indexCreditMs = 0
  #lastIntakeAt = Number.NEGATIVE_INFINITY
  #lastIndexedAt = Number.NEGATIVE_INFINITY
  #turnsWithoutNotes = 0
  #processingRanLast = false

  push(job: Job): void {
    this.#lanes[laneOf(job)].push(job)
  }

  get isEmpty(): boolean {
    return Object.values(this.#lanes).every((lane) => lane.length === 0)
  }

  /** How long the indexer, if it is all that waits, has to wait until intake counts as quiet. */
  pauseMs(now: number): number {
    return Math.max(0, Math.min(this.#lastIntakeAt + QUIET_MS, this.#lastIndexedAt + PATIENCE_MS) - now)
  }

  /** The jobs to run now: one, or the appends that are waiting. None, if only the indexer waits and has to go on waiting. */
  next(lag: number, now: number): Job[] {
    const { control, intake, processing, index, notes } = this.#lanes
    if (control.length > 0) return control.splice(0, 1)
    if (notes.length > 0 && (intake.length === 0 || ++this.#turnsWithoutNotes >= NOTES_EVERY)) {
      this.#turnsWithoutNotes = 0
      return notes.splice(0, 1)
    }
    const indexFirst = lag > MAX_LAG && this.#indexCreditMs > 0
    const isQuiet = intake.length === 0 && this.pauseMs(now) === 0
    const indexMayRun = index.length > 0 && (indexFirst || isQuiet)
    const othersWait = intake.length > 0 || indexMayRun
    if (processing.length > 0 && !(this.#processingRanLast && othersWait)) {
      this.#processingRanLast = true
      return processing.splice(0, 1)
    }
    this.#processingRanLast = false
    if (indexMayRun) return index.splice(0, 1)
    return intake.splice(0, commitSize(intake))
  }

  /** Accounts for the time that took. */
  ran([job]: readonly Job[], ms: number, lag: number, now: number): void {
    const lane = job && laneOf(job)
    if (lane === 'intake') this.#lastIntakeAt = now
    if (lane === 'index') this.#lastIndexedAt = now
    if (lag <= MAX_LAG) this.#indexCreditMs = 0
    else if (lane === 'intake' || lane === 'processing') this.#indexCreditMs += (ms * INDEX_SHARE) / (1 - INDEX_SHARE)
    else if (lane === 'index') this.#indexCreditMs -= ms
    this.#indexCreditMs = Math.max(-MAX_CREDIT_MS, Math.min(MAX_CREDIT_MS, this.#indexCreditMs))
  }
}

function laneOf({ name }: Job): Lane {
  return LANES[name] ?? 'control'
}

/** How many of the waiting appends fit into one commit; at least one. */
function commitSize(intake: readonly Job[]): number {
  let bytes = 0
  let count = 0
  for (const { args } of intake) {
    bytes += (args[0] as AppendBatch).bytes.byteLength
    if (count > 0 && (bytes > MAX_COMMIT_BYTES || count >= MAX_COMMIT_BATCHES)) break
    count += 1
  }
  return count
}
