// Bounds the jobs that run in one turn of the event loop: a turn reads every socket that has bytes, however many there are.
// Further jobs wait in order for the next turns: the tenant is not known yet.

/** Tens of microseconds each. */
const MAX_PER_TURN = 64

export class TurnQueue {
  readonly #maxPerTurn: number
  readonly #waiting: (() => void)[] = []
  #ran = 0
  #isScheduled = false

  constructor(maxPerTurn = MAX_PER_TURN) {
    this.#maxPerTurn = maxPerTurn
  }

  get size(): number {
    return this.#waiting.length
  }

  /** Whether one more job may run in this turn, if none waits; counts it. */
  hasRoom(): boolean {
    if (this.#ran >= this.#maxPerTurn || this.#waiting.length > 0) return false
    this.#ran += 1
    this.#schedule()
    return true
  }

  /** Runs the job in a later turn. */
  runLater(job: () => void): void {
    this.#waiting.push(job)
    this.#schedule()
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(() => this.#nextTurn())
  }

  #nextTurn(): void {
    this.#isScheduled = false
    const jobs = this.#waiting.splice(0, this.#maxPerTurn)
    this.#ran = jobs.length
    // Also when nothing waits, so that the count starts again.
    if (jobs.length > 0) this.#schedule()
    for (const job of jobs) job()
  }
}
