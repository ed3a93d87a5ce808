// Indexer loop: take a step, then pause or wait. A step reads committed rows only and keeps its position in the
// database, so it can be killed at any point.
//
// Intake has priority: after each step the loop pauses for PAUSE_FACTOR times the duration of the step. It does not
// pause while a reader waits for the index, while it lags by more than MAX_LAG, or while rows are left and no message
// waits for the disk. With no rows left it waits for a hint; hints may be lost, so it polls every LOOK_EVERY_MS.

import type { Service } from '../runtime/service.ts'
import { Signal } from '../runtime/signal.ts'
import type { IndexLimits, IndexStepResult, IndexStore } from '../store/contract/indexing.ts'

/** Poll interval, since a command beside the server may store messages without a hint. Also the delay after a failure. */
const LOOK_EVERY_MS = 1000
/**
 * The indexer uses a tenth of the time that intake could use. One commit for many rows also costs less than many small
 * ones.
 */
const PAUSE_FACTOR = 9
/** In rows: a few seconds of work. A larger lag would delay processors too much. */
const MAX_LAG = 100_000

export interface IndexerOptions {
  readonly index: IndexStore
  readonly limits: IndexLimits
  readonly onStep?: (result: IndexStepResult) => void
  readonly onTrouble: (doing: string, error: unknown) => void
  /** Messages that wait for a commit now. */
  readonly waiting: () => number
}

export class Indexer implements Service {
  readonly #options: IndexerOptions
  readonly #wake = new Signal()
  readonly #hurry = new Signal()
  readonly #halt = new Signal()
  #running: Promise<void> = Promise.resolve()
  #stopped = false

  constructor(options: IndexerOptions) {
    this.#options = options
  }

  start(): void {
    this.#running = this.#run()
  }

  /** Hints at new rows. */
  wake(): void {
    this.#wake.raise()
  }

  /** Hints that a reader waits for the index: counts for one step. */
  hurry(): void {
    this.#wake.raise()
    this.#hurry.raise()
  }

  async stop(): Promise<void> {
    this.#stopped = true
    this.hurry()
    this.#halt.raise()
    await this.#running
  }

  async #run(): Promise<void> {
    const { index, limits, onStep, onTrouble } = this.#options
    while (!this.#stopped) {
      try {
        const startedAt = performance.now()
        const result = await index.step(limits)
        onStep?.(result)
        if (!result.more || (result.lag <= MAX_LAG && this.#options.waiting() > 0)) {
          // The step may include a wait for another node or an open transaction, so the pause is bounded.
          const pauseMs = PAUSE_FACTOR * (performance.now() - startedAt)
          await this.#hurry.wait(Math.min(pauseMs, LOOK_EVERY_MS))
        }
        if (!result.more) await this.#wake.wait(LOOK_EVERY_MS)
      } catch (error) {
        onTrouble('index the journal', error)
        if (!this.#stopped) await this.#halt.wait(LOOK_EVERY_MS)
      }
    }
  }
}
