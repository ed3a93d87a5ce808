// Follows the journal: after each commit a hint wakes it, and it steps until nothing is left. It reads committed rows
// only and keeps its place in the database, so it can be killed anywhere.
//
// After a step that took all there was it rests for REST_MS: under load each step then takes many rows and
// one sync, instead of running behind every single commit. On an idle server the first hint is followed at once.
//
// Messages that come in go first: in a burst it works a fiftieth of the time and falls behind, to catch up after it; with a steady load
// it keeps up. The two are told apart by what waits for the disk while the index rests, since its own work makes messages wait under
// either: so now and then it rests for a look. It gives way to nobody who waits for the index, and not without end: past MOST_BEHIND
// it takes all the time it can get.

import type { Service } from '../runtime/service.ts'
import { Signal } from '../runtime/signal.ts'
import type { IndexLimits, IndexStepResult, IndexStore } from '../store/contract/indexing.ts'

const REST_MS = 50
/** Without any hint: changes made by a command beside the server, and hints that were lost. */
const LOOK_EVERY_MS = 1000
const RETRY_MS = 1000
/**
 * So long it works at a stretch while messages come in, before it rests for a look: at first not beyond a step that a crowd stands before; twice
 * as long after each look that found no burst, and as at first after one that did, or when nothing came in for a step.
 */
const FIRST_STRETCH_MS = 200
const LONGEST_STRETCH_MS = 3200
/** A burst: on average so many messages wait for the disk, and not for a slow one, since this process is busy as well. */
const CROWD = 24
const BUSY = 0.4
/**
 * How long a look is, and a further one: what came while the index worked may crowd in as soon as it rests, and a burst may stop for
 * a moment. And how often it counts.
 */
const LOOK_MS = 100
const LONG_LOOK_MS = 250
/** What crowds in and is gone within so many further looks came while the index worked. */
const FEW_LOOKS = 3
const COUNT_EVERY_MS = 10
/** In a burst it rests for so many times what the step before took; one that had few rows says nothing about the next, and the last whole one counts. */
const REST_SHARE = 49
/** A step may have waited for a disk, or for another node. */
const MOST_REST_MS = 5000
/** Where they lie ready: the more rows are written together, the more of them share a page, a conversation and a commit. */
const STEPS_AT_ONCE = 4
/** In rows. */
const MOST_BEHIND = 2_000_000

export interface IndexerOptions {
  readonly index: IndexStore
  readonly limits: IndexLimits
  readonly onStep?: (result: IndexStepResult) => void
  readonly onTrouble: (doing: string, error: unknown) => void
  /** How many messages wait for the disk now. */
  readonly waiting: () => number
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
  /** It found a burst when it last looked. */
  #givesWay = false
  #restedAt = 0
  #wholeStepMs = 0
  #stretchMs = FIRST_STRETCH_MS
  readonly #busyShare: () => number

  constructor(options: IndexerOptions) {
    this.#options = options
    this.#busyShare = options.busyShare ?? createBusyShare()
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
    const { index, limits, onStep, onTrouble } = this.#options
    let lag = 0
    this.#restedAt = performance.now()
    while (!this.#stopped) {
      try {
        const startedAt = performance.now()
        const isUrgent = this.#isAwaited || lag > MOST_BEHIND
        const isOver = startedAt - this.#restedAt >= this.#stretchMs || this.#looksLikeBurst
        const isLast = !isUrgent && (this.#givesWay || isOver)
        this.#hasNews = false
        this.#isAwaited = false
        const result = await index.step({ ...limits, isUrgent, isLast, stepsAtOnce: isLast ? 1 : STEPS_AT_ONCE })
        // On PostgreSQL what is behind a transaction that somebody left open has to wait for its end.
        const isMoving = result.indexed > 0 || result.lag < lag
        lag = result.lag
        onStep?.(result)
        const endedAt = performance.now()
        if (result.clearing || (isMoving && lag > MOST_BEHIND)) continue
        const isLookDue = isLast && this.#hasNews
        if (!this.#hasNews) this.#rested(false, FIRST_STRETCH_MS)
        const tookMs = endedAt - startedAt
        if (result.indexed >= limits.maxRows) this.#wholeStepMs = (tookMs * limits.maxRows) / result.indexed
        const hasMore = isMoving && lag >= limits.maxRows
        if (hasMore && (!isLookDue || this.#isAwaited)) continue
        if (lag === 0) await this.#wake.wait(LOOK_EVERY_MS)
        await this.#rest(endedAt + REST_MS - performance.now())
        if (isLookDue) await this.#giveWay(REST_SHARE * Math.max(tookMs, this.#wholeStepMs))
      } catch (error) {
        onTrouble('index the journal', error)
        await this.#rest(RETRY_MS)
      }
    }
  }

  /** It begins as a crowd: the first look is then not put off for a whole stretch. */
  get #looksLikeBurst(): boolean {
    return this.#stretchMs === FIRST_STRETCH_MS && this.#options.waiting() > CROWD
  }

  async #rest(ms: number): Promise<void> {
    if (!this.#stopped && ms > 0) await this.#halt.wait(ms)
  }

  #rested(givesWay: boolean, stretchMs: number): void {
    this.#givesWay = givesWay
    this.#stretchMs = stretchMs
    this.#restedAt = performance.now()
  }

  /** Looks, and rests for no longer than this while there is a burst. As long as nobody waits for the index. */
  async #giveWay(ms: number): Promise<void> {
    const until = performance.now() + Math.min(ms, MOST_REST_MS)
    const isCrowded = await this.#isCrowded(LOOK_MS)
    // It did not look to the end: the look is due after the next step.
    if (this.#stopped || this.#isAwaited) return
    let isBurst = isCrowded
    let looks = 0
    for (; isBurst && performance.now() < until; looks++) isBurst = await this.#isCrowded(LONG_LOOK_MS)
    // Whoever waits cuts it short, which says nothing about the burst.
    if (this.#isAwaited) isBurst = isCrowded
    const isSteady = !isBurst && looks <= FEW_LOOKS
    this.#rested(isBurst, isSteady ? Math.min(2 * this.#stretchMs, LONGEST_STRETCH_MS) : FIRST_STRETCH_MS)
  }

  async #isCrowded(ms: number): Promise<boolean> {
    this.#busyShare()
    let waiting = 0
    for (let left = ms; left > 0; left -= COUNT_EVERY_MS) {
      if (this.#stopped || this.#isAwaited) return false
      await this.#hurry.wait(COUNT_EVERY_MS)
      waiting += this.#options.waiting()
    }
    return this.#busyShare() > BUSY && (waiting * COUNT_EVERY_MS) / ms > CROWD
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
