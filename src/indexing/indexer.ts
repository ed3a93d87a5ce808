// Follows the journal: after each commit a hint wakes it, and it steps until nothing is left. It reads committed rows
// only and keeps its place in the database, so it can be killed anywhere.
//
// After a step that took all there was it rests for REST_MS: under load each step then takes many rows and
// one sync, instead of running behind every single commit. On an idle server the first hint is followed at once.
//
// Messages that come in go first: while they keep this process busy, it works a twentieth of the time and falls behind in a burst, to
// catch up after it. Not if somebody waits for the index, and not without end: past MOST_BEHIND it takes all the time it can get.

import type { Service } from '../runtime/service.ts'
import { Signal } from '../runtime/signal.ts'
import type { IndexLimits, IndexStepResult, IndexStore } from '../store/contract/indexing.ts'

const REST_MS = 50
/** Without any hint: changes made by a command beside the server, and hints that were lost. */
const LOOK_EVERY_MS = 1000
const RETRY_MS = 1000
/** While messages come in and this process is busy for more than so much of its time … */
const BUSY = 0.5
/** … it rests for so many times what the step before took. */
const REST_SHARE = 19
/** A step may have waited for a disk, or for another node. */
const MOST_REST_MS = 2000
/** In rows. */
const MOST_BEHIND = 1_000_000

export interface IndexerOptions {
  readonly index: IndexStore
  readonly limits: IndexLimits
  readonly onStep?: (result: IndexStepResult) => void
  readonly onTrouble: (doing: string, error: unknown) => void
  /** How much of its time, from 0 to 1, this process was busy since this was last asked. */
  readonly busyShare?: () => number
}

export class Indexer implements Service {
  readonly #options: IndexerOptions
  readonly #wake = new Signal()
  readonly #hurry = new Signal()
  readonly #halt = new Signal()
  #running: Promise<void> = Promise.resolve()
  #stopped = false
  /** Since the last step began: something was committed, somebody asked. */
  #hasNews = false
  #isAwaited = false

  constructor(options: IndexerOptions) {
    this.#options = options
  }

  start(): void {
    this.#running = this.#run()
  }

  /** A hint that there is something new. */
  wake(): void {
    this.#hasNews = true
    this.#wake.raise()
  }

  /** A hint that somebody waits for it. */
  hurry(): void {
    this.#isAwaited = true
    this.#wake.raise()
    this.#hurry.raise()
  }

  async stop(): Promise<void> {
    this.#stopped = true
    this.#wake.raise()
    this.#hurry.raise()
    this.#halt.raise()
    await this.#running
  }

  async #run(): Promise<void> {
    const { index, limits, onStep, onTrouble, busyShare = createBusyShare() } = this.#options
    let lag = 0
    while (!this.#stopped) {
      try {
        const startedAt = performance.now()
        const isUrgent = this.#isAwaited || lag > MOST_BEHIND
        this.#hasNews = false
        this.#isAwaited = false
        const result = await index.step({ ...limits, isUrgent })
        lag = result.lag
        onStep?.(result)
        const endedAt = performance.now()
        if (result.clearing || lag > MOST_BEHIND) continue
        const hasMore = lag >= limits.maxRows
        if (hasMore && (!this.#hasNews || this.#isAwaited)) continue
        if (lag === 0) await this.#wake.wait(LOOK_EVERY_MS)
        await this.#rest(endedAt + REST_MS - performance.now())
        const giveWayMs = Math.min(REST_SHARE * (endedAt - startedAt), MOST_REST_MS)
        if (busyShare() > BUSY && this.#hasNews) await this.#giveWay(endedAt + giveWayMs - performance.now())
      } catch (error) {
        onTrouble('index the journal', error)
        await this.#rest(RETRY_MS)
      }
    }
  }

  async #rest(ms: number): Promise<void> {
    if (!this.#stopped && ms > 0) await this.#halt.wait(ms)
  }

  /** As long as nobody waits for the index. */
  async #giveWay(ms: number): Promise<void> {
    if (!this.#stopped && !this.#isAwaited && ms > 0) await this.#hurry.wait(ms)
  }
}

function createBusyShare(): () => number {
  let last = performance.eventLoopUtilization()
  return () => {
    const now = performance.eventLoopUtilization()
    const { utilization } = performance.eventLoopUtilization(now, last)
    last = now
    return utilization
  }
}
