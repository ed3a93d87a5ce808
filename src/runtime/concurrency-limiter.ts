// Concurrency limiter with a share per holder: bounds how many operations are in progress at once, and how many of them
// belong to one holder, so that no holder can use up all slots.

/** Gives the slot back. Calling it again is fine. */
export type Release = () => void

export class ConcurrencyLimiter {
  readonly #max: number
  readonly #maxPerHolder: number
  readonly #inUseBy = new Map<string, number>()
  #inUse = 0

  /** A holder may use this percentage of the slots, and at least one. */
  constructor(max: number, percentPerHolder: number) {
    this.#max = max
    this.#maxPerHolder = Math.max(1, Math.floor((max * percentPerHolder) / 100))
  }

  get inUse(): number {
    return this.#inUse
  }

  /** Null if no slot is free, or the holder's share is used up. An urgent operation may exceed the share. */
  acquire(holder: string, isUrgent = false): Release | null {
    const own = this.#inUseBy.get(holder) ?? 0
    if (this.#inUse >= this.#max || (own >= this.#maxPerHolder && !isUrgent)) return null
    this.#inUse += 1
    this.#inUseBy.set(holder, own + 1)
    let isReleased = false
    return () => {
      if (isReleased) return
      isReleased = true
      this.#release(holder)
    }
  }

  #release(holder: string): void {
    this.#inUse -= 1
    const own = (this.#inUseBy.get(holder) ?? 1) - 1
    if (own === 0) this.#inUseBy.delete(holder)
    else this.#inUseBy.set(holder, own)
  }
}
