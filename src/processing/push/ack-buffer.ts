// Acks of one endpoint: those that come up while earlier ones are being stored go together in the next call.

import type { LeaseItem, Settled } from '../../model/processing-plan.ts'

/** As many as the store settles in one transaction. */
const MAX_ITEMS = 200
/**
 * Between two calls, unless as many wait: each call is a transaction, and those of a few endpoints that ack every event by itself
 * took nine tenths of the messages that the writer could store beside them.
 */
const GAP_MS = 100
/** After a failure of the store the same acks are tried again, since an ack that is repeated is answered the same. */
const RETRY_MS = [100, 200, 400, 800, 1600, 3200]

export interface AckBufferOptions {
  /** Null: the subscription is gone. */
  readonly ack: (items: readonly LeaseItem[]) => Promise<readonly Settled[] | null>
  readonly onTrouble: (doing: string, error: unknown) => void
}

export class AckBuffer {
  readonly #options: AckBufferOptions
  #waiting: LeaseItem[] = []
  #flushing: Promise<void> | null = null
  #calledAt = Number.NEGATIVE_INFINITY
  /** Ends the wait for more. */
  #hurry: (() => void) | null = null
  #isEnding = false

  constructor(options: AckBufferOptions) {
    this.#options = options
  }

  add(item: LeaseItem): void {
    this.#waiting.push(item)
    if (this.#waiting.length >= MAX_ITEMS) this.#hurry?.()
    this.#flushing ??= this.#flush().finally(() => {
      this.#flushing = null
    })
  }

  /** Waits for no more; resolves when nothing is left. */
  async settled(): Promise<void> {
    this.#isEnding = true
    this.#hurry?.()
    while (this.#flushing) await this.#flushing
  }

  async #flush(): Promise<void> {
    // Results that come in the same turn of the event loop go together.
    await new Promise((resolve) => setImmediate(resolve))
    while (this.#waiting.length > 0) {
      await this.#forMore()
      this.#calledAt = performance.now()
      await this.#store(this.#waiting.splice(0, MAX_ITEMS))
    }
  }

  #forMore(): Promise<void> {
    const waitMs = this.#calledAt + GAP_MS - performance.now()
    if (this.#isEnding || waitMs <= 0 || this.#waiting.length >= MAX_ITEMS) return Promise.resolve()
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, waitMs)
      this.#hurry = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  async #store(items: readonly LeaseItem[]): Promise<void> {
    for (let tries = 0; ; tries++) {
      try {
        await this.#options.ack(items)
        return
      } catch (error) {
        const wait = RETRY_MS[tries]
        if (wait !== undefined) {
          await new Promise((resolve) => setTimeout(resolve, wait))
          continue
        }
        // Their leases expire, and they are delivered once more, under the same id.
        this.#options.onTrouble(`acknowledge ${items.length} pushed events`, error)
        return
      }
    }
  }
}
