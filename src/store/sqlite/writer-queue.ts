// Who is next on the writer: intake goes before indexing, but an indexer that has fallen behind gets its share. All appends
// that are waiting are next together: they share one commit.
//
// While the lag is small, indexing runs only when no append is waiting. Past MAX_LAG every millisecond of appending
// earns the indexer enough credit for INDEX_SHARE of the writer's time, and it goes first as long as it has credit.
// Control operations (tokens, refusals, probes) are rare and short, and a revoked token must not wait: they go first.

import type { OperationName } from './operations.ts'

const MAX_LAG = 1000
const INDEX_SHARE = 0.3
/** Neither side may save up more than this: what counts is the share now, not an hour ago. */
const MAX_CREDIT_MS = 100

type Lane = 'control' | 'intake' | 'index'

export interface Job {
  readonly seq: number
  readonly name: OperationName
  readonly args: readonly unknown[]
}

export class WriterQueue {
  readonly #lanes: Record<Lane, Job[]> = { control: [], intake: [], index: [] }
  #indexCreditMs = 0

  push(job: Job): void {
    this.#lanes[laneOf(job)].push(job)
  }

  get isEmpty(): boolean {
    return this.#lanes.control.length + this.#lanes.intake.length + this.#lanes.index.length === 0
  }

  /** The jobs to run now: one, or all appends that are waiting. */
  next(lag: number): Job[] {
    const { control, intake, index } = this.#lanes
    if (control.length > 0) return control.splice(0, 1)
    const indexFirst = lag > MAX_LAG && this.#indexCreditMs > 0
    if (index.length > 0 && (indexFirst || intake.length === 0)) return index.splice(0, 1)
    return intake.splice(0)
  }

  /** Accounts for the time that took. */
  ran([job]: readonly Job[], ms: number, lag: number): void {
    const lane = job && laneOf(job)
    if (lag <= MAX_LAG) this.#indexCreditMs = 0
    else if (lane === 'intake') this.#indexCreditMs += (ms * INDEX_SHARE) / (1 - INDEX_SHARE)
    else if (lane === 'index') this.#indexCreditMs -= ms
    this.#indexCreditMs = Math.max(-MAX_CREDIT_MS, Math.min(MAX_CREDIT_MS, this.#indexCreditMs))
  }
}

function laneOf(job: Job): Lane {
  if (job.name === 'append') return 'intake'
  return job.name === 'indexStep' ? 'index' : 'control'
}
