// Follows the journal: after each commit a hint wakes it, and it steps until nothing is left. It reads committed rows
// only and keeps its place in the database, so it can be killed anywhere.
//
// After a step that took all there was it rests for REST_MS: under load each step then takes many rows and
// one sync, instead of running behind every single commit. On an idle server the first hint is followed at once.

import type { Service } from '../runtime/service.ts'
import { Signal } from '../runtime/signal.ts'
import type { IndexLimits, IndexStepResult, IndexStore } from '../store/contract/indexing.ts'

const REST_MS = 50
/** Without any hint: changes made by a command beside the server, and hints that were lost. */
const LOOK_EVERY_MS = 1000
const RETRY_MS = 1000

export interface IndexerOptions {
  readonly index: IndexStore
  readonly limits: IndexLimits
  readonly onStep?: (result: IndexStepResult) => void
  readonly onTrouble: (doing: string, error: unknown) => void
}

export class Indexer implements Service {
  readonly #options: IndexerOptions
  readonly #wake = new Signal()
  readonly #halt = new Signal()
  #running: Promise<void> = Promise.resolve()
  #stopped = false

  constructor(options: IndexerOptions) {
    this.#options = options
  }

  start(): void {
    this.#running = this.#run()
  }

  /** A hint that there is something new. */
  wake(): void {
    this.#wake.raise()
  }

  async stop(): Promise<void> {
    this.#stopped = true
    this.#wake.raise()
    this.#halt.raise()
    await this.#running
  }

  async #run(): Promise<void> {
    const { index, limits, onStep, onTrouble } = this.#options
    while (!this.#stopped) {
      try {
        const result = await index.step(limits)
        onStep?.(result)
        if (result.clearing || result.lag >= limits.maxRows) continue
        const restedUntil = performance.now() + REST_MS
        if (result.lag === 0) await this.#wake.wait(LOOK_EVERY_MS)
        await this.#rest(restedUntil - performance.now())
      } catch (error) {
        onTrouble('index the journal', error)
        await this.#rest(RETRY_MS)
      }
    }
  }

  async #rest(ms: number): Promise<void> {
    if (!this.#stopped && ms > 0) await this.#halt.wait(ms)
  }
}
