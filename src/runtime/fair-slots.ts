// Fair slots: runs a bounded number of jobs at once, and fewer of one holder, so that a slot is left for others. Who waits
// for a slot is served in turn of holders, so that one holder with many jobs delays the others by one job each.

import { FairQueue } from './fair-queue.ts'

export interface FairSlotsOptions {
  readonly slots: number
  readonly maxPerHolder: number
  readonly maxWaitingPerHolder: number
}

interface Waiting {
  readonly holder: string
  readonly begin: () => void
}

export class FairSlots {
  readonly #maxPerHolder: number
  readonly #waiting: FairQueue<Waiting>
  readonly #runningOf = new Map<string, number>()
  #free: number

  constructor({ slots, maxPerHolder, maxWaitingPerHolder }: FairSlotsOptions) {
    this.#free = slots
    this.#maxPerHolder = maxPerHolder
    this.#waiting = new FairQueue(maxWaitingPerHolder)
  }

  /** Null if too many jobs of the holder wait already. */
  run<T>(holder: string, work: () => Promise<T>): Promise<T> | null {
    if (this.#free > 0 && this.#mayBegin(holder)) {
      this.#take(holder)
      return this.#finish(holder, work)
    }
    const slot = Promise.withResolvers<void>()
    if (!this.#waiting.push(holder, { holder, begin: slot.resolve })) return null
    return slot.promise.then(() => this.#finish(holder, work))
  }

  #mayBegin = (holder: string): boolean => (this.#runningOf.get(holder) ?? 0) < this.#maxPerHolder

  #take(holder: string): void {
    this.#free -= 1
    this.#runningOf.set(holder, (this.#runningOf.get(holder) ?? 0) + 1)
  }

  async #finish<T>(holder: string, work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } finally {
      this.#giveBack(holder)
    }
  }

  #giveBack(holder: string): void {
    this.#free += 1
    const running = (this.#runningOf.get(holder) ?? 1) - 1
    if (running === 0) this.#runningOf.delete(holder)
    else this.#runningOf.set(holder, running)
    const next = this.#waiting.next(this.#mayBegin)
    if (!next) return
    this.#take(next.holder)
    next.begin()
  }
}
