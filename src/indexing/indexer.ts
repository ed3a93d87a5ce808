// Indexer loop: in each round a step for entries and perhaps one for words, then a pause or a wait. A step reads committed rows
// only and keeps its position in the database, so it can be killed at any point.
//
// Entries go first, since a message can be claimed once it has one: while entries are left or messages wait for the disk, only
// every WORDS_EVERY-th round has a step for words, or one for which a search waits.
//
// Messages that come in go before both: after a round the loop pauses for PAUSE_FACTOR times as long as the round took. A reader
// that waits for the index cuts the pause short. There is no pause after a round that left work while no message waits for the
// disk, or when every round for MAX_BEHIND_MS has left entries to do. After a round that left nothing the loop waits for a hint;
// hints may be lost, so it looks by itself every LOOK_EVERY_MS.

import type { Service } from '../runtime/service.ts'
import { Signal } from '../runtime/signal.ts'
import type { IndexLimits, IndexStepResult, IndexStore, WordLimits } from '../store/contract/indexing.ts'

/** Poll interval, since a command beside the server may store messages without a hint. Also the delay after a failure. */
const LOOK_EVERY_MS = 1000
/** So the indexer takes a fifth of the time that intake could use. One commit for many rows also costs less than many for a few. */
const PAUSE_FACTOR = 4
/** A message can be claimed about this long after it came in, however many come: a short burst goes first, a steady load does not. */
const MAX_BEHIND_MS = 2000
/** So search falls behind under a long load, but does not stand still. */
const WORDS_EVERY = 4

export interface IndexerOptions {
  readonly index: IndexStore
  readonly limits: IndexLimits
  readonly wordLimits: WordLimits
  /** After each step for entries: what it did, and when it began. */
  readonly onStep?: (result: IndexStepResult, startedAt: number) => void
  /** After each step for words. */
  readonly onWords?: (result: IndexStepResult) => void
  readonly onTrouble: (doing: string, error: unknown) => void
  /** Messages that wait for a commit now. */
  readonly waiting: () => number
}

export class Indexer implements Service {
  readonly #options: IndexerOptions
  readonly #wake = new Signal()
  readonly #hurry = new Signal()
  readonly #halt = new Signal()
  readonly #watchers = new Set<() => void>()
  #searchWaits = false
  /** Rounds without a step for words. */
  #roundsWithout = 0
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

  /** Hints that a reader waits for the index: counts for one round. */
  hurry(what: 'entries' | 'words' = 'entries'): void {
    if (what === 'words') this.#searchWaits = true
    this.#wake.raise()
    this.#hurry.raise()
  }

  /** Resolves after the next step of this node that indexed anything, or when the time is over. */
  stepped(timeoutMs: number): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer)
        this.#watchers.delete(done)
        resolve()
      }
      const timer = setTimeout(done, timeoutMs)
      this.#watchers.add(done)
    })
  }

  async stop(): Promise<void> {
    this.#stopped = true
    this.hurry()
    this.#halt.raise()
    await this.#running
  }

  async #run(): Promise<void> {
    const { index, limits, onStep, onTrouble } = this.#options
    /** Since when every round has left entries to do. */
    let behindSince = performance.now()
    while (!this.#stopped) {
      try {
        const startedAt = performance.now()
        const entries = await index.step(limits)
        onStep?.(entries, startedAt)
        this.#tellWatchers(entries)
        const more = (await this.#stepWords(entries)) || entries.more
        const endedAt = performance.now()
        if (!entries.more) behindSince = endedAt
        if (!more || (endedAt - behindSince < MAX_BEHIND_MS && this.#options.waiting() > 0)) {
          // A step may have waited for another node, or for a transaction that is open.
          const pauseMs = PAUSE_FACTOR * (endedAt - startedAt)
          await this.#hurry.wait(Math.min(pauseMs, LOOK_EVERY_MS))
        }
        if (!more) await this.#wake.wait(LOOK_EVERY_MS)
      } catch (error) {
        onTrouble('index the journal', error)
        if (!this.#stopped) await this.#halt.wait(LOOK_EVERY_MS)
      }
    }
  }

  /** Takes a step for words, if it is their turn. Resolves with whether words are left that a step could do. */
  async #stepWords({ more, cursor, searchable }: IndexStepResult): Promise<boolean> {
    if (searchable >= cursor) return false
    const isBusy = more || this.#options.waiting() > 0
    if (isBusy && !this.#searchWaits && ++this.#roundsWithout < WORDS_EVERY) return true
    this.#searchWaits = false
    this.#roundsWithout = 0
    const { index, wordLimits, onWords } = this.#options
    const words = await index.stepWords(wordLimits)
    onWords?.(words)
    this.#tellWatchers(words)
    return words.more
  }

  #tellWatchers({ indexed }: IndexStepResult): void {
    if (indexed === 0) return
    for (const done of this.#watchers) done()
  }
}
