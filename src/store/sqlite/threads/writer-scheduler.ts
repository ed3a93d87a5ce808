// Schedules the writer's jobs: in the next turn of the event loop, so that jobs arriving in between are queued first;
// or later, if the queue says that waiting pays.
// Promises: every queued job is run, without a further push.

import type { WriterJob, WriterQueue } from './writer-queue.ts'

export interface WriterSchedulerOptions {
  readonly queue: WriterQueue
  readonly execute: (jobs: readonly WriterJob[]) => void
  /** The queue is empty, and no job will follow. */
  readonly onEnd: () => void
}

export class WriterScheduler {
  readonly #options: WriterSchedulerOptions
  #isScheduled = false
  #isEnding = false
  #pausing: NodeJS.Timeout | undefined

  constructor(options: WriterSchedulerOptions) {
    this.#options = options
  }

  push(job: WriterJob): void {
    this.#options.queue.push(job)
    this.#schedule()
  }

  /** Jobs pushed before are still run. */
  end(): void {
    this.#isEnding = true
    this.#schedule()
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(() => {
      this.#isScheduled = false
      clearTimeout(this.#pausing)
      const pauseMs = this.#isEnding ? 0 : this.#options.queue.pause(performance.now())
      if (pauseMs > 0) this.#pausing = setTimeout(() => this.#schedule(), pauseMs)
      else this.#runNext()
    })
  }

  #runNext(): void {
    const { queue, execute, onEnd } = this.#options
    const jobs = queue.next()
    if (jobs.length > 0) execute(jobs)
    if (!queue.isEmpty) this.#schedule()
    else if (this.#isEnding) onEnd()
  }
}
