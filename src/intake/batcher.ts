// Group commit: messages that arrive in one turn of the event loop go to the store together, and so do those that had to
// wait because enough appends were under way. No timer adds latency. Bounded by count and bytes: what does not fit is
// refused at once, while its sender still waits.

import type { Problem } from '../model/errors.ts'
import type { Service } from '../runtime/service.ts'
import type { Appender, AppendItem, AppendOutcome } from '../store/contract/append.ts'

export interface BatcherLimits {
  readonly queueMaxEvents: number
  readonly queueMaxBytes: number
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

export class Batcher implements Service {
  readonly #options: BatcherOptions
  #queue: Waiting[] = []
  #queuedBytes = 0
  #inFlight = 0
  #scheduled = false
  #stopped = false
  readonly #idle = Promise.withResolvers<void>()

  constructor(options: BatcherOptions) {
    this.#options = options
  }

  start(): void {}

  /** Never rejects. When it answers with a receipt, the message is on disk. */
  submit(item: AppendItem): Promise<SubmitResult> {
    if (this.#stopped) return Promise.resolve(STOPPED)
    const { queueMaxEvents, queueMaxBytes } = this.#options.limits
    const bytes = this.#queuedBytes + item.payload.byteLength
    if (this.#queue.length >= queueMaxEvents || (bytes > queueMaxBytes && this.#queue.length > 0)) {
      return Promise.resolve(OVERLOADED)
    }
    this.#queuedBytes = bytes
    return new Promise((settle) => {
      this.#queue.push({ item, settle })
      // Under load a turn reads many sockets: the writer starts on the first messages while we read the others.
      if (this.#queue.length >= this.#options.eagerEvents) this.#appendNext()
      else this.#schedule()
    })
  }

  /** What waits to be handed to the store; since when, by the time the oldest was received. */
  get waiting(): { readonly events: number; readonly bytes: number; readonly oldestReceivedAt: number | null } {
    const oldestReceivedAt = this.#queue[0]?.item.receivedAt ?? null
    return { events: this.#queue.length, bytes: this.#queuedBytes, oldestReceivedAt }
  }

  /** Refuses what comes from now on; resolves when everything taken before has been answered. */
  async stop(): Promise<void> {
    this.#stopped = true
    if (this.#inFlight === 0 && this.#queue.length === 0) return
    await this.#idle.promise
  }

  /** At the end of this turn of the event loop: whatever else this turn read from its sockets goes with it. */
  #schedule(): void {
    if (this.#scheduled || this.#inFlight >= this.#options.maxInFlight) return
    this.#scheduled = true
    setImmediate(() => {
      this.#scheduled = false
      this.#appendNext()
    })
  }

  #appendNext(): void {
    if (this.#inFlight >= this.#options.maxInFlight) return
    const batch = this.#takeBatch()
    if (batch.length === 0) {
      if (this.#stopped && this.#inFlight === 0) this.#idle.resolve()
      return
    }
    this.#inFlight += 1
    const startedAt = performance.now()
    const items = batch.map((waiting) => waiting.item)
    Promise.try(() => this.#options.journal.append(items)).then(
      (outcomes) => {
        this.#afterAppend(null, batch.length, startedAt)
        for (const [index, waiting] of batch.entries()) this.#settle(waiting, outcomes[index])
        this.#options.onCommitted()
      },
      (failure: unknown) => {
        this.#afterAppend(failure, batch.length, startedAt)
        for (const waiting of batch) waiting.settle(UNKNOWN)
      },
    )
    if (this.#queue.length > 0) this.#schedule()
  }

  /** The next batch is on its way before the answers of this one are written: the writer does not wait for us. */
  #afterAppend(failure: unknown, events: number, startedAt: number): void {
    this.#inFlight -= 1
    this.#options.onOutcome(failure, events, performance.now() - startedAt)
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
    this.#queuedBytes -= bytes
    return this.#queue.splice(0, count)
  }
}
