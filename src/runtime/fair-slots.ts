// Fair slots: runs a bounded number of jobs at once. Who waits for a slot is served in turn of holders, so that one holder
// with many jobs delays the others by one job each.

import { FairQueue } from './fair-queue.ts'

export class FairSlots {
  readonly #waiting: FairQueue<() => void>
  #free: number

  constructor(slots: number, maxWaitingPerHolder: number) {
    this.#free = slots
    this.#waiting = new FairQueue(maxWaitingPerHolder)
  }

  /** Null if too many jobs of the holder wait already. */
  run<T>(holder: string, work: () => Promise<T>): Promise<T> | null {
    if (this.#free > 0) {
      this.#free -= 1
      return this.#finish(work)
    }
    const slot = Promise.withResolvers<void>()
    if (!this.#waiting.push(holder, slot.resolve)) return null
    return slot.promise.then(() => this.#finish(work))
  }

  async #finish<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } finally {
      // The slot goes on to the next that waits.
      const next = this.#waiting.next()
      if (next) next()
      else this.#free += 1
    }
  }
}
