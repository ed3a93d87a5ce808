// The lifecycle of every running part, and a periodic task. Stopping twice, or before a start, is fine.

export interface Service {
  start(): void | Promise<void>
  stop(): Promise<void>
}

/** A task on a timer that never overlaps itself; `stop` waits for a run in progress. */
export class PeriodicTask implements Service {
  readonly #task: () => Promise<void>
  readonly #everyMs: number
  #timer: NodeJS.Timeout | null = null
  #running: Promise<void> = Promise.resolve()
  #stopped = false

  constructor(everyMs: number, task: () => Promise<void>) {
    this.#everyMs = everyMs
    this.#task = task
  }

  start(): void {
    this.#schedule()
  }

  async stop(): Promise<void> {
    this.#stopped = true
    if (this.#timer) clearTimeout(this.#timer)
    await this.#running
  }

  #schedule(): void {
    if (this.#stopped) return
    this.#timer = setTimeout(() => {
      this.#running = this.#task().finally(() => this.#schedule())
    }, this.#everyMs)
    this.#timer.unref()
  }
}
