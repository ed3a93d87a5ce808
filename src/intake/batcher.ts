// Group commit: messages that arrive in one turn of the event loop, or while enough appends are in flight, are appended
// together. An idle store gets a message at once. The queue is bounded by count, bytes and expected waiting time; above,
// messages are refused at once (backpressure).

import type { Problem } from '../model/errors.ts'
import type { Service } from '../runtime/service.ts'
import type { Appender, AppendItem, AppendOutcome } from '../store/contract/append.ts'

export interface BatcherLimits {
  readonly queueMaxEvents: number
  readonly queueMaxBytes: number
  /** In ms: a message that would probably wait longer is refused. */
  readonly queueMaxWait: number
  readonly batchMaxEvents: number
  readonly batchMaxBytes: number
}

export interface BatcherOptions {
  readonly journal: Appender
  readonly limits: BatcherLimits
  /** Concurrent appends. */
  readonly maxInFlight: number
  /** This many messages are appended without waiting for the end of the turn. */
  readonly eagerEvents: number
  /** After each successful append. */
  readonly onCommitted: () => void
  /** After each append: its failure or null, its messages, and when it began. */
  readonly onOutcome: (failure: unknown, items: readonly AppendItem[], startedAt: number) => void
  /** A monotonic clock in milliseconds. */
  readonly now?: () => number
  /** A message of a batch that could not be stored, and why. */
  readonly onItemFailed: (item: AppendItem, reason: string) => void
}

export type Receipt = Exclude<AppendOutcome, { outcome: 'failed' }>
export type SubmitResult = Receipt | { readonly problem: Problem }

const OVERLOADED: SubmitResult = { problem: { code: 'overloaded' } }
const STOPPED: SubmitResult = { problem: { code: 'shutting_down' } }
const UNKNOWN: SubmitResult = { problem: { code: 'storage_unavailable' } }
const FAILED_ALONE: SubmitResult = { problem: { code: 'internal_error' } }
const DAMAGED: SubmitResult = { problem: { code: 'storage_damaged' } }
/** Of a message that was accepted before its tenant was moved. */
const MOVED: SubmitResult = { problem: { code: 'tenant_moved' } }

const NO_OUTCOME: AppendOutcome = { outcome: 'failed', reason: 'the store gave no outcome' }

interface Waiting {
  readonly item: AppendItem
  readonly settle: (result: SubmitResult) => void
}

interface InFlight {
  readonly batch: readonly Waiting[]
  readonly items: readonly AppendItem[]
  readonly startedAt: number
}

/** How long a batch that is smaller than those in flight waits for more messages. */
const MAX_LINGER_MS = 20

/** Weight of the newest append in the moving average of append times. */
const NEWEST_WEIGHT = 0.2

export class Batcher implements Service {
  readonly #options: BatcherOptions
  readonly #now: () => number
  #queue: Waiting[] = []
  /** Accepted and not committed yet, queued or in flight; bounded by the limits. */
  #events = 0
  #bytes = 0
  readonly #inFlight: InFlight[] = []
  /** Moving average of append times. */
  #appendMs = 0
  #scheduled = false
  #lingerTimer: NodeJS.Timeout | null = null
  #stopped = false
  readonly #idle = Promise.withResolvers<void>()

  constructor(options: BatcherOptions) {
    this.#options = options
    this.#now = options.now ?? (() => performance.now())
  }

  start(): void {}

  /** Never rejects. A receipt means that the message is on disk. */
  submit(item: AppendItem): Promise<SubmitResult> {
    if (this.#stopped) return Promise.resolve(STOPPED)
    const { queueMaxEvents, queueMaxBytes } = this.#options.limits
    const bytes = this.#bytes + item.payload.byteLength
    if (this.#events >= queueMaxEvents || (bytes > queueMaxBytes && this.#events > 0) || this.#wouldWaitTooLong()) {
      return Promise.resolve(OVERLOADED)
    }
    this.#events += 1
    this.#bytes = bytes
    return new Promise((settle) => {
      this.#queue.push({ item, settle })
      // Under load a turn reads many sockets: the writer starts before the turn ends.
      if (this.#queue.length >= this.#options.eagerEvents) this.#appendNext()
      else this.#schedule()
    })
  }

  /** Accepted messages that are not committed yet, and when the oldest was received. */
  get waiting(): { readonly events: number; readonly bytes: number; readonly oldestReceivedAt: number | null } {
    const oldest = [...this.#inFlight.map(({ batch }) => batch), this.#queue].flatMap(([first]) =>
      first ? [first.item.receivedAt] : [],
    )
    const oldestReceivedAt = oldest.length === 0 ? null : Math.min(...oldest)
    return { events: this.#events, bytes: this.#bytes, oldestReceivedAt }
  }

  /** The queue is more than half full: work that can wait should be shed. */
  get isUnderPressure(): boolean {
    const { queueMaxEvents, queueMaxBytes } = this.#options.limits
    return this.#events > queueMaxEvents / 2 || this.#bytes > queueMaxBytes / 2
  }

  /** Refuses new messages; resolves when all accepted ones are answered. */
  async stop(): Promise<void> {
    this.#stopped = true
    if (this.#inFlight.length === 0 && this.#queue.length === 0) return
    await this.#idle.promise
  }

  /**
   * Whether a new message would probably wait longer than `queueMaxWait`, judged by recent append times and the age of the
   * oldest append in flight. One round of full batches may always wait, so that the store is never idle.
   */
  #wouldWaitTooLong(): boolean {
    const { maxInFlight, limits } = this.#options
    const round = maxInFlight * limits.batchMaxEvents
    if (this.#queue.length < round) return false
    const oldest = this.#inFlight[0]
    const appendMs = Math.max(this.#appendMs, oldest ? this.#now() - oldest.startedAt : 0)
    return this.#queue.length >= round * Math.floor(limits.queueMaxWait / appendMs)
  }

  /** Appends at the end of this turn of the event loop, with everything else that this turn read from its sockets. */
  #schedule(): void {
    if (this.#scheduled || this.#inFlight.length >= this.#options.maxInFlight) return
    if (!this.#isLargeEnough()) {
      this.#lingerTimer ??= setTimeout(() => {
        this.#lingerTimer = null
        if (this.#inFlight.length < this.#options.maxInFlight) this.#append()
      }, MAX_LINGER_MS)
      return
    }
    this.#scheduled = true
    setImmediate(() => {
      this.#scheduled = false
      this.#appendNext()
    })
  }

  /**
   * An append costs nearly the same for any size, so a batch is not sent while a larger one is in flight. It grows until
   * that one ends, or for MAX_LINGER_MS, because that one may be stuck.
   */
  #isLargeEnough(): boolean {
    const { eagerEvents } = this.#options
    return this.#inFlight.every(({ batch }) => this.#queue.length >= Math.min(batch.length, eagerEvents))
  }

  #appendNext(): void {
    if (this.#inFlight.length >= this.#options.maxInFlight) return
    if (this.#isLargeEnough()) this.#append()
    else if (this.#queue.length > 0) this.#schedule()
  }

  #append(): void {
    const batch = this.#takeBatch()
    if (batch.length === 0) {
      if (this.#stopped && this.#inFlight.length === 0) this.#idle.resolve()
      return
    }
    const items = batch.map((waiting) => waiting.item)
    const inFlight: InFlight = { batch, items, startedAt: this.#now() }
    this.#inFlight.push(inFlight)
    Promise.try(() => this.#options.journal.append(items)).then(
      (outcomes) => {
        this.#afterAppend(null, inFlight)
        for (const [index, waiting] of batch.entries()) this.#settle(waiting, outcomes[index])
        this.#options.onCommitted()
      },
      (failure: unknown) => {
        this.#afterAppend(failure, inFlight)
        for (const waiting of batch) waiting.settle(UNKNOWN)
      },
    )
    if (this.#queue.length > 0) this.#schedule()
  }

  /** Sends the next batch before the answers of this one are written, so that the writer does not wait. */
  #afterAppend(failure: unknown, inFlight: InFlight): void {
    const { items, startedAt } = inFlight
    this.#inFlight.splice(this.#inFlight.indexOf(inFlight), 1)
    this.#events -= items.length
    for (const { payload } of items) this.#bytes -= payload.byteLength
    const ms = this.#now() - startedAt
    this.#appendMs += (ms - this.#appendMs) * (this.#appendMs === 0 ? 1 : NEWEST_WEIGHT)
    this.#options.onOutcome(failure, items, startedAt)
    this.#appendNext()
  }

  #settle({ item, settle }: Waiting, outcome: AppendOutcome = NO_OUTCOME): void {
    if (outcome.outcome !== 'failed') {
      settle(outcome)
      return
    }
    if (outcome.isMoved) {
      settle(MOVED)
      return
    }
    this.#options.onItemFailed(item, outcome.reason)
    settle(outcome.isDamaged ? DAMAGED : FAILED_ALONE)
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
