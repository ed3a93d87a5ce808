// Group commit: messages that arrive in one turn of the event loop go to the store together, and so do those that had to
// wait because enough appends were under way. No timer here adds latency. Bounded by count, bytes and time: what does not
// fit is refused at once, while its sender still waits.

import type { Problem } from '../model/errors.ts'
import type { Service } from '../runtime/service.ts'
import type { Appender, AppendItem, AppendOutcome } from '../store/contract/append.ts'

export interface BatcherLimits {
  readonly queueMaxEvents: number
  readonly queueMaxBytes: number
  /** In ms: what would have to wait for longer, as things go, is not taken. */
  readonly queueMaxWait: number
  readonly batchMaxEvents: number
  readonly batchMaxBytes: number
}

export interface BatcherOptions {
  readonly journal: Appender
  readonly limits: BatcherLimits
  /** Appends under way at once. */
  readonly maxInFlight: number
  /** This many messages are sent to the store at once, in the middle of a turn. */
  readonly eagerEvents: number
  /** After each append that was answered: there may be something new. */
  readonly onCommitted: () => void
  /** After each append, with the failure if it failed: how many messages it had and how long it took. */
  readonly onOutcome: (failure: unknown, events: number, ms: number) => void
  /** Milliseconds that only go forward. */
  readonly now?: () => number
  /** A message that alone could not be stored, and why. */
  readonly onItemFailed: (item: AppendItem, reason: string) => void
}

export type Receipt = Exclude<AppendOutcome, { outcome: 'failed' }>
export type SubmitResult = Receipt | { readonly problem: Problem }

const OVERLOADED: SubmitResult = { problem: { code: 'overloaded' } }
const STOPPED: SubmitResult = { problem: { code: 'shutting_down' } }
const UNKNOWN: SubmitResult = { problem: { code: 'storage_unavailable' } }
const FAILED_ALONE: SubmitResult = { problem: { code: 'internal_error' } }

const NO_OUTCOME: AppendOutcome = { outcome: 'failed', reason: 'the store gave no outcome' }

interface Waiting {
  readonly item: AppendItem
  readonly settle: (result: SubmitResult) => void
}

interface UnderWay {
  readonly batch: readonly Waiting[]
  readonly startedAt: number
}

/** What is too little to set out behind a larger append waits no longer than this for more. */
const COMPANY_MS = 20

/** How much the newest append counts in what one takes. */
const NEWEST_COUNTS = 0.2

export class Batcher implements Service {
  readonly #options: BatcherOptions
  readonly #now: () => number
  #queue: Waiting[] = []
  /** Taken and not on disk yet, in the queue or under way to the store: what the limits are about. */
  #events = 0
  #bytes = 0
  readonly #underWay: UnderWay[] = []
  /** What an append takes, lately. */
  #appendMs = 0
  #scheduled = false
  #patience: NodeJS.Timeout | null = null
  #stopped = false
  readonly #idle = Promise.withResolvers<void>()

  constructor(options: BatcherOptions) {
    this.#options = options
    this.#now = options.now ?? (() => performance.now())
  }

  start(): void {}

  /** Never rejects. When it answers with a receipt, the message is on disk. */
  submit(item: AppendItem): Promise<SubmitResult> {
    if (this.#stopped) return Promise.resolve(STOPPED)
    const { queueMaxEvents, queueMaxBytes } = this.#options.limits
    const bytes = this.#bytes + item.payload.byteLength
    if (this.#events >= queueMaxEvents || (bytes > queueMaxBytes && this.#events > 0) || this.#isLate()) {
      return Promise.resolve(OVERLOADED)
    }
    this.#events += 1
    this.#bytes = bytes
    return new Promise((settle) => {
      this.#queue.push({ item, settle })
      // Under load a turn reads many sockets: the writer starts on the first messages while we read the others.
      if (this.#queue.length >= this.#options.eagerEvents) this.#appendNext()
      else this.#schedule()
    })
  }

  /** What was taken and is not on disk yet; since when, by the time the oldest was received. */
  get waiting(): { readonly events: number; readonly bytes: number; readonly oldestReceivedAt: number | null } {
    const oldest = [...this.#underWay.map(({ batch }) => batch), this.#queue].flatMap(([first]) =>
      first ? [first.item.receivedAt] : [],
    )
    const oldestReceivedAt = oldest.length === 0 ? null : Math.min(...oldest)
    return { events: this.#events, bytes: this.#bytes, oldestReceivedAt }
  }

  /** More than half full: what can wait should not come now. */
  get isPressed(): boolean {
    const { queueMaxEvents, queueMaxBytes } = this.#options.limits
    return this.#events > queueMaxEvents / 2 || this.#bytes > queueMaxBytes / 2
  }

  /** Refuses what comes from now on; resolves when everything taken before has been answered. */
  async stop(): Promise<void> {
    this.#stopped = true
    if (this.#underWay.length === 0 && this.#queue.length === 0) return
    await this.#idle.promise
  }

  /**
   * What is taken now would wait for longer than its sender is likely to. Told by how long appends took lately, and the one
   * under way: not by how many messages they had, which is few where there is little to do. One round of full batches may
   * always wait, so that the store never does for want of messages.
   */
  #isLate(): boolean {
    const { maxInFlight, limits } = this.#options
    const round = maxInFlight * limits.batchMaxEvents
    if (this.#queue.length < round) return false
    const oldest = this.#underWay[0]
    const appendMs = Math.max(this.#appendMs, oldest ? this.#now() - oldest.startedAt : 0)
    return this.#queue.length >= round * Math.floor(limits.queueMaxWait / appendMs)
  }

  /** At the end of this turn of the event loop: whatever else this turn read from its sockets goes with it. */
  #schedule(): void {
    if (this.#scheduled || this.#underWay.length >= this.#options.maxInFlight) return
    if (!this.#isWorthIt()) {
      this.#patience ??= setTimeout(() => {
        this.#patience = null
        if (this.#underWay.length < this.#options.maxInFlight) this.#append()
      }, COMPANY_MS)
      return
    }
    this.#scheduled = true
    setImmediate(() => {
      this.#scheduled = false
      this.#appendNext()
    })
  }

  /**
   * An append costs nearly the same however few it has, so it does not set out behind a larger one with less. What is too little now
   * goes with what comes, when one of those is back, or after COMPANY_MS: one of those may be stuck.
   */
  #isWorthIt(): boolean {
    const { eagerEvents } = this.#options
    return this.#underWay.every(({ batch }) => this.#queue.length >= Math.min(batch.length, eagerEvents))
  }

  #appendNext(): void {
    if (this.#underWay.length >= this.#options.maxInFlight) return
    if (this.#isWorthIt()) this.#append()
    else if (this.#queue.length > 0) this.#schedule()
  }

  #append(): void {
    const batch = this.#takeBatch()
    if (batch.length === 0) {
      if (this.#stopped && this.#underWay.length === 0) this.#idle.resolve()
      return
    }
    const underWay: UnderWay = { batch, startedAt: this.#now() }
    this.#underWay.push(underWay)
    const items = batch.map((waiting) => waiting.item)
    Promise.try(() => this.#options.journal.append(items)).then(
      (outcomes) => {
        this.#afterAppend(null, underWay)
        for (const [index, waiting] of batch.entries()) this.#settle(waiting, outcomes[index])
        this.#options.onCommitted()
      },
      (failure: unknown) => {
        this.#afterAppend(failure, underWay)
        for (const waiting of batch) waiting.settle(UNKNOWN)
      },
    )
    if (this.#queue.length > 0) this.#schedule()
  }

  /** The next batch is on its way before the answers of this one are written: the writer does not wait for us. */
  #afterAppend(failure: unknown, underWay: UnderWay): void {
    const { batch, startedAt } = underWay
    this.#underWay.splice(this.#underWay.indexOf(underWay), 1)
    this.#events -= batch.length
    for (const { item } of batch) this.#bytes -= item.payload.byteLength
    const ms = this.#now() - startedAt
    this.#appendMs += (ms - this.#appendMs) * (this.#appendMs === 0 ? 1 : NEWEST_COUNTS)
    this.#options.onOutcome(failure, batch.length, ms)
    this.#appendNext()
  }

  #settle({ item, settle }: Waiting, outcome: AppendOutcome = NO_OUTCOME): void {
    if (outcome.outcome === 'failed') this.#options.onItemFailed(item, outcome.reason)
    settle(outcome.outcome === 'failed' ? FAILED_ALONE : outcome)
  }

  #takeBatch(): Waiting[] {
    const { batchMaxEvents, batchMaxBytes } = this.#options.limits
    let count = 0
    let bytes = 0
    for (const { item } of this.#queue) {
      if (count >= batchMaxEvents || (count > 0 && bytes + item.payload.byteLength > batchMaxBytes)) break
      count += 1
      bytes += item.payload.byteLength
    }
    return this.#queue.splice(0, count)
  }
}
