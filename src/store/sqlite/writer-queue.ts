// Who is next on the writer: intake goes before indexing, but an indexer that has fallen behind gets its share.
//
// While the lag is small, indexing runs only when no append is waiting. Past MAX_LAG every millisecond of appending
// earns the indexer enough credit for INDEX_SHARE of the writer's time, and it goes first as long as it has credit.
// Control operations (tokens, refusals, probes) are rare and short, and a revoked token must not wait: they go first.

import type { OperationName } from './operations.ts'

const MAX_LAG = 1000
const INDEX_SHARE = 0.3

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

  next(lag: number): Job | undefined {
    const { control, intake, index } = this.#lanes
    if (control.length > 0) return control.shift()
    const indexFirst = lag > MAX_LAG && this.#indexCreditMs > 0
    return (indexFirst ? index.shift() : intake.shift()) ?? intake.shift() ?? index.shift()
  }

  /** Accounts for the time a job took. */
  ran(job: Job, ms: number, lag: number): void {
    const lane = laneOf(job)
    if (lag <= MAX_LAG) this.#indexCreditMs = 0
    else if (lane === 'intake') this.#indexCreditMs += (ms * INDEX_SHARE) / (1 - INDEX_SHARE)
    else if (lane === 'index') this.#indexCreditMs -= ms
  }
}

function laneOf(job: Job): Lane {
  if (job.name === 'append') return 'intake'
  return job.name === 'indexStep' ? 'index' : 'control'
}
