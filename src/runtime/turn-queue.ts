// Bounds what runs in one turn of the event loop: a turn reads every socket that has bytes, however many there are.
// Further jobs wait for the next turns and are served fairly over holders: client addresses, since the tenant is not known yet.

import { FairQueue } from './fair-queue.ts'

/** Tens of microseconds each. */
const MAX_PER_TURN = 64
/** For jobs that take longer. What else there is to do, such as answers of the database, then has most of the time. */
const MAX_TURN_MS = 1

/** The turns of one holder. */
export interface Turns {
  /** Whether one more job may run in this turn, if none waits; counts it. */
  hasRoom(): boolean
  /** Runs the job in a later turn. */
  runLater(job: () => void): void
}

export interface TurnQueueOptions {
  readonly maxPerTurn?: number
  readonly maxTurnMs?: number
  readonly now?: () => number
}

export class TurnQueue {
  readonly #maxPerTurn: number
  readonly #maxTurnMs: number
  readonly #now: () => number
  readonly #waiting = new FairQueue<() => void>()
  #ran = 0
  #beganAt = 0
  #isScheduled = false

  constructor({
    maxPerTurn = MAX_PER_TURN,
    maxTurnMs = MAX_TURN_MS,
    now = () => performance.now(),
  }: TurnQueueOptions = {}) {
    this.#maxPerTurn = maxPerTurn
    this.#maxTurnMs = maxTurnMs
    this.#now = now
  }

  get size(): number {
    return this.#waiting.size
  }

  of(holder: string): Turns {
    return {
      hasRoom: () => this.#waiting.size === 0 && this.#takeRoom(),
      runLater: (job) => {
        this.#waiting.push(holder, job)
        this.#schedule()
      },
    }
  }

  #takeRoom(): boolean {
    if (this.#ran === 0) this.#beganAt = this.#now()
    else if (this.#ran >= this.#maxPerTurn || this.#now() - this.#beganAt >= this.#maxTurnMs) return false
    this.#ran += 1
    this.#schedule()
    return true
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(() => this.#nextTurn())
  }

  #nextTurn(): void {
    this.#isScheduled = false
    this.#ran = 0
    // Schedules the turn after it, also when nothing waits then, so that the count starts again.
    while (this.#waiting.size > 0 && this.#takeRoom()) this.#waiting.next()!()
  }
}
