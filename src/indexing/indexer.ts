// Indexer loop: take a step, then pause or wait. A step reads committed rows only and keeps its position in the
// database, so it can be killed at any point.
//
// Messages that come in go first: after a step the loop pauses for PAUSE_FACTOR times as long as the step took. A reader that waits
// for the index cuts the pause short. There is no pause after a step that left rows to do while no message waits for the disk, or
// when every step for MAX_BEHIND_MS has left rows to do. After a step that left nothing the loop waits for a hint; hints may be
// lost, so it looks by itself every LOOK_EVERY_MS.

import type { Service } from '../runtime/service.ts'
import { Signal } from '../runtime/signal.ts'
import type { IndexLimits, IndexStepResult, IndexStore } from '../store/contract/indexing.ts'

/** Poll interval, since a command beside the server may store messages without a hint. Also the delay after a failure. */
const LOOK_EVERY_MS = 1000
/** So the indexer takes a fifth of the time that intake could use. One commit for many rows also costs less than many for a few. */
const PAUSE_FACTOR = 4
/** A message can be claimed about this long after it came in, however many come: a short burst goes first, a steady load does not. */
const MAX_BEHIND_MS = 2000

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
    /** Since when every step has left rows to do. */
    let behindSince = performance.now()
    while (!this.#stopped) {
      try {
        const startedAt = performance.now()
        const result = await index.step(limits)
        onStep?.(result)
        const endedAt = performance.now()
        if (!result.more) behindSince = endedAt
        if (!result.more || (endedAt - behindSince < MAX_BEHIND_MS && this.#options.waiting() > 0)) {
          // A step may have waited for another node, or for a transaction that is open.
          const pauseMs = PAUSE_FACTOR * (endedAt - startedAt)
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
