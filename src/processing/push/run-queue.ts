// The claimed runs of an endpoint: consecutive events of one conversation, or a single event. A bounded number is under way; the
// others wait in the order of the claims.

import type { ClaimedEvent } from '../../store/contract/processing.ts'

export class Run {
  readonly #events: readonly ClaimedEvent[]
  #at = 0
  leaseUntil: number

  constructor(events: readonly ClaimedEvent[]) {
    this.#events = events
    this.leaseUntil = events[0]!.leaseExpiresAt
  }

  /** The next event to deliver; undefined at the end. */
  get current(): ClaimedEvent | undefined {
    return this.#events[this.#at]
  }

  advance(): void {
    this.#at += 1
  }
}

export class RunQueue {
  readonly #concurrency: number
  readonly #work: (run: Run) => Promise<void>
  readonly #underWay = new Set<Run>()
  #waiting: Run[] = []
  #listeners: (() => void)[] = []

  /** `work` must not reject. */
  constructor(concurrency: number, work: (run: Run) => Promise<void>) {
    this.#concurrency = concurrency
    this.#work = work
  }

  /** Those with an event that is still to be delivered. */
  all(): Run[] {
    return [...this.#underWay, ...this.#waiting].filter(({ current }) => current !== undefined)
  }

  add(claimed: readonly ClaimedEvent[]): void {
    const runs = Map.groupBy(claimed, ({ conversationId, event }) => conversationId ?? `event ${event.id}`)
    for (const events of runs.values()) this.#waiting.push(new Run(events))
    this.#begin()
  }

  /** Takes those that are not under way. */
  takeWaiting(): Run[] {
    return this.#waiting.splice(0)
  }

  /** Resolves when fewer runs wait than may be under way: the next claim is made while these are delivered. */
  hasRoom(): Promise<void> {
    return this.#until(() => this.#waiting.length < this.#concurrency)
  }

  idle(): Promise<void> {
    return this.#until(() => this.#waiting.length === 0 && this.#underWay.size === 0)
  }

  async #until(condition: () => boolean): Promise<void> {
    while (!condition()) await new Promise<void>((resolve) => this.#listeners.push(resolve))
  }

  #begin(): void {
    while (this.#underWay.size < this.#concurrency) {
      const run = this.#waiting.shift()
      if (!run) break
      this.#underWay.add(run)
      void this.#work(run).then(() => {
        this.#underWay.delete(run)
        this.#begin()
        for (const notify of this.#listeners.splice(0)) notify()
      })
    }
  }
}
