// Computations on the main thread, cut into slices: all of them together do a bounded amount of work in one turn of the event loop.
// While work waits, its holders are served in turn; the work of one holder is finished in order.

import { FairQueue } from './fair-queue.ts'

/** Work that can stop and go on. */
export interface Sliceable {
  readonly isDone: boolean
  /** Does at most so many units, and returns how many. */
  run(maxUnits: number): number
}

export interface SlicedWorkOptions {
  readonly unitsPerTurn: number
  /** Of one holder, before the next one's turn. */
  readonly unitsPerSlice: number
  /** Calls back in the next turn of the event loop. */
  readonly nextTurn?: (run: () => void) => void
}

/** For scans whose units are bytes: about 1 ms in a turn. */
export const SCANNED_BYTES = { unitsPerTurn: 64 * 1024, unitsPerSlice: 16 * 1024 } as const

interface Waiting {
  readonly holder: string
  readonly work: Sliceable
  readonly done: () => void
  readonly failed: (error: unknown) => void
}

export class SlicedWork {
  readonly #options: SlicedWorkOptions
  readonly #nextTurn: (run: () => void) => void
  readonly #waiting = new FairQueue<Waiting>()
  /** What may still be done in this turn. */
  #left: number
  #isScheduled = false

  constructor(options: SlicedWorkOptions) {
    this.#options = options
    this.#nextTurn = options.nextTurn ?? setImmediate
    this.#left = options.unitsPerTurn
  }

  /** Null if the work was done at once, as small work is. Fails, now or later, if the work throws; other work goes on. */
  finish(holder: string, work: Sliceable): Promise<void> | null {
    if (this.#waiting.size === 0) this.#run(work)
    if (work.isDone) return null
    return new Promise((done, failed) => {
      this.#waiting.push(holder, { holder, work, done, failed })
    })
  }

  #run(work: Sliceable): void {
    this.#schedule()
    const units = Math.min(this.#left, this.#options.unitsPerSlice)
    if (units >= SMALLEST_SLICE) this.#left -= work.run(units)
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    this.#nextTurn(() => this.#takeTurn())
  }

  #takeTurn(): void {
    this.#isScheduled = false
    this.#left = this.#options.unitsPerTurn
    while (this.#left >= SMALLEST_SLICE) {
      const next = this.#waiting.next()
      if (!next) return
      try {
        this.#run(next.work)
        if (next.work.isDone) next.done()
        else this.#waiting.putBack(next.holder, next)
      } catch (error) {
        next.failed(error)
      }
    }
    this.#schedule()
  }
}

/** Less is not worth a start. */
const SMALLEST_SLICE = 512
