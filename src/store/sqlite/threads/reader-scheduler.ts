// Schedules the reader's jobs: tenants in turn, one step of a job at a time. A step is what a job does between two calls
// of its `turn`: one statement, or a bounded number of look-ups. So a tenant waits for one step of each other tenant at
// most, whatever they have asked for.

import { FairQueue } from '../../../runtime/fair-queue.ts'
import { callerGone } from '../../contract/failure.ts'

/** Resolves when the job may do its next step. Rejects if the job was cancelled. */
export type Turn = () => Promise<void>

interface Job {
  readonly holder: string
  isCancelled: boolean
}

export class ReaderScheduler {
  readonly #steps = new FairQueue<() => void>()
  readonly #jobs = new Map<number, Job>()
  #isScheduled = false

  /** Jobs that are not finished. */
  get size(): number {
    return this.#jobs.size
  }

  /** Runs a job in the holder's turns. */
  async run<T>(seq: number, holder: string, work: (turn: Turn) => T | Promise<T>): Promise<T> {
    const job = { holder, isCancelled: false }
    this.#jobs.set(seq, job)
    try {
      await this.#turn(job, (step) => this.#steps.push(holder, step))
      return await work(() => this.#turn(job, (step) => this.#steps.putBack(holder, step)))
    } finally {
      this.#jobs.delete(seq)
    }
  }

  /** The job ends before its next step. */
  cancel(seq: number): void {
    const job = this.#jobs.get(seq)
    if (job) job.isCancelled = true
  }

  #turn(job: Job, queue: (step: () => void) => void): Promise<void> {
    return new Promise((resolve, reject) => {
      queue(() => {
        if (job.isCancelled) reject(callerGone())
        else resolve()
      })
      this.#schedule()
    })
  }

  /** One step in each turn of the event loop, so that messages of the main thread arrive between two steps. */
  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(() => {
      this.#isScheduled = false
      this.#steps.next()?.()
      if (this.#steps.size > 0) this.#schedule()
    })
  }
}
